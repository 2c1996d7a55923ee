"""The bridge to Spark: DataFrames feed spouts, and results go back as DataFrames.

Needs the extra ``spark`` and Java 17 or 21; importing it loads no pyspark.
"""

from __future__ import annotations

from stormlet.core.restarts import RestartPolicy
from stormlet.errors import SparkFailed, SparkUnavailable
from stormlet.spark.origins import Origin
from stormlet.spark.session import spark_session
from stormlet.spark.sink import DataFrameSink
from stormlet.spark.source import DataFrameSpout
from stormlet.spark.stream import stream

__all__ = [
    "DataFrameSink",
    "DataFrameSpout",
    "Origin",
    "RestartPolicy",
    "SparkFailed",
    "SparkUnavailable",
    "spark_session",
    "stream",
]
