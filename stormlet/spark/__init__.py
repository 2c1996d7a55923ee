"""The bridge to Spark: DataFrames feed spouts, and results go back as DataFrames.

It needs the extra ``spark`` and Java 17 or 21. Importing it loads no pyspark.

The rooms, from the ground up; imports go down only, those for the type checker too (``tests/test_layers.py``)::

    failures       Spark's errors: losses that a retry can mend, ways out, the line to show
    threads        blocking calls and Spark jobs, each in a thread of its own
    files          fsync, directories of Spark's file systems, locks on checkpoints
    frames         checks of a user's DataFrame, its time zone, and the origin of a row
    destinations   the places that exactly-once sinks write to, as a source keeps them
    session        the packages and the Java that Spark needs, and the Spark session of this process
    arrow/         values: from Spark's columns to Python, and back into strictly checked Arrow tables
    source/        ``DataFrameSpout``: a DataFrame, read once
    sink/          ``DataFrameSink``: batches written at least once, epochs exactly once
    stream/        ``stream``: the micro-batches of a streaming DataFrame, each read as a source reads
    engine/        a topology that Spark runs: stages, exchanges, and the ledger over all of them

The way of a row: a read (:mod:`stormlet.spark.source.reading`) brings record batches to the driver, and a conversion
(:mod:`stormlet.spark.arrow.conversion`) makes chunks of values of them. A thread (:mod:`stormlet.spark.source.puller`)
puts the chunks into a bounded queue, and a reader (:mod:`stormlet.spark.source.reader`) emits their rows on the loop.
At the other end a sink (:mod:`stormlet.spark.sink.dataframe_sink`) gathers values into a batch, and a writer
(:mod:`stormlet.spark.sink.writer`) has Spark write their table.
"""

from __future__ import annotations

from stormlet.core.retries import RestartPolicy
from stormlet.errors import SparkFailed, SparkUnavailable
from stormlet.spark.engine.batch.batch import run_on_spark
from stormlet.spark.engine.batch.result import BatchResult
from stormlet.spark.engine.stream.stream import StreamRun, stream_on_spark
from stormlet.spark.frames import Origin
from stormlet.spark.session import spark_session
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.spark.stream.stream import stream

__all__ = [
    "BatchResult",
    "DataFrameSink",
    "DataFrameSpout",
    "Origin",
    "RestartPolicy",
    "SparkFailed",
    "SparkUnavailable",
    "StreamRun",
    "run_on_spark",
    "spark_session",
    "stream",
    "stream_on_spark",
]
