"""Rows from Spark, and topologies on Spark, which need Java; the functions are in :mod:`~benchmarks.workloads.bridge`
and :mod:`~benchmarks.workloads.flights`."""

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


def spark_engine(size: int) -> Figures:
    """A topology on Spark; see :func:`benchmarks.workloads.flights.spark_engine`."""
    from benchmarks.workloads import flights

    return flights.spark_engine(size)


def spark_engine_flat(size: int) -> Figures:
    """Its memory; see :func:`benchmarks.workloads.flights.spark_engine_flat`."""
    from benchmarks.workloads import flights

    return flights.spark_engine_flat(size)


def spark_engine_skew(size: int) -> Figures:
    """Its hot keys; see :func:`benchmarks.workloads.flights.spark_engine_skew`."""
    from benchmarks.workloads import flights

    return flights.spark_engine_skew(size)


WORKLOADS = (
    Workload("spark", "rows from Spark", spark, 2_000_000, "spark", "pyspark"),
    Workload("spark-flat", "10,000,000 records from Spark", spark_flat, 10_000_000, "spark", "pyspark"),
    Workload("spark-engine", "flights by two groups, on Spark", spark_engine, 336_776, "spark", "pyspark"),
    Workload(
        "spark-engine-flat", "10,000,000 flights on Spark", spark_engine_flat, 10_000_000, "spark", "pyspark"
    ),
    Workload(
        "spark-engine-skew",
        "5,000,000 flights on Spark, of which one key has 90 %",
        spark_engine_skew,
        5_000_000,
        "spark",
        "pyspark",
    ),
)
