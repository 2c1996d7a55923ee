"""Whole record batches from Spark, through a bolt of ``RecordBatch -> RecordBatch``, and back as Parquet.

Work that pyarrow does for many rows at once need not see each row. With ``batches=True`` a source emits record batches,
each one message; a function turns one into another, and the sink writes them as they are. Rows that cannot be go to a
stream of their own, as a batch is acked, replayed or rejected as a whole.

It costs a small part of what single records do: see "Whole batches" in docs/spark.md.

::

    python -m stormlet run examples/batches_spark.py
    python -m stormlet run examples/batches_spark.py --arg rows=10000000 --arg directory=readings
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import RecordBatch
from pyspark.sql import DataFrame, SparkSession

from stormlet import BasicBolt, Collector, To, Topology, Tuple
from stormlet.spark import DataFrameSink, DataFrameSpout, spark_session

COLDEST = -89.2
"""Degrees Celsius; it was never colder anywhere."""
COLUMNS = pa.schema([("station", pa.int64()), ("hour", pa.int64()), ("celsius", pa.float64())])


def measured(session: SparkSession, rows: int) -> DataFrame:
    """Readings of a hundred stations in degrees Fahrenheit; one in a thousand comes of a broken sensor."""
    return session.range(rows).selectExpr(
        "id % 100 AS station", "id DIV 100 AS hour", "if(id % 1000 = 7, -999, 50 + id % 40) AS fahrenheit"
    )


def converted(batch: RecordBatch) -> Iterator[RecordBatch | To[RecordBatch]]:
    """The readings that can be, in degrees Celsius; and those that cannot, on the stream ``broken``."""
    celsius = pc.divide(pc.subtract(batch["fahrenheit"], 32.0), 1.8)
    readings = RecordBatch.from_arrays([batch["station"], batch["hour"], celsius], schema=COLUMNS)
    can_be = pc.greater_equal(celsius, COLDEST)
    yield readings.filter(can_be)
    broken = readings.filter(pc.invert(can_be))
    if broken.num_rows:
        yield To(broken, stream="broken")


def rows_in(batch: RecordBatch) -> int:
    """The number of rows of a batch; on Spark it travels, and the batch does not."""
    return batch.num_rows


class Report(BasicBolt[int, None]):
    """Adds up rows, and tells how many there were when no more can come."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.rows = 0

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Add those of a batch."""
        self.rows += tup.value

    def finish(self, out: Collector[None]) -> None:
        """Tell."""
        print(f"{self.rows:,} {self.what}")


def readings(directory: str = "", rows: int = 1_000_000) -> Topology:
    """Write readings to ``directory/celsius``; by default to a temporary directory."""
    place = Path(directory or tempfile.mkdtemp(prefix="readings-")) / "celsius"
    topology = Topology("readings")
    source = topology.spout("readings", DataFrameSpout(measured(spark_session(), rows), batches=True))
    outputs: dict[str, object] = {"default": RecordBatch, "broken": RecordBatch}
    celsius = topology.bolt("convert", converted, source.shuffle(), outputs=outputs)
    topology.bolt("write", DataFrameSink(place, mode="overwrite", schema=COLUMNS), celsius.shuffle())
    counts = topology.bolt("count", rows_in, celsius.shuffle())
    topology.bolt("report", partial(Report, f"readings in {place}"), counts.global_())
    broken = topology.bolt("count broken", rows_in, celsius.named("broken", RecordBatch).shuffle())
    topology.bolt("report broken", partial(Report, "of broken sensors"), broken.global_())
    return topology
