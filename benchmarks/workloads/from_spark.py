"""Rows from Spark, which needs Java; the functions are in :mod:`~benchmarks.workloads.bridge`."""

from __future__ import annotations

from stormlet.bench.workload import Figures, Workload


def spark(size: int) -> Figures:
    """Rows from Spark, and back; see :func:`benchmarks.workloads.bridge.spark`."""
    from benchmarks.workloads import bridge

    return bridge.spark(size)


def spark_flat(size: int) -> Figures:
    """Memory with rows from Spark; see :func:`benchmarks.workloads.bridge.spark_flat`."""
    from benchmarks.workloads import bridge

    return bridge.spark_flat(size)


WORKLOADS = (
    Workload("spark", "rows from Spark", spark, 2_000_000, "spark", "pyspark"),
    Workload("spark-flat", "10,000,000 records from Spark", spark_flat, 10_000_000, "spark", "pyspark"),
)
