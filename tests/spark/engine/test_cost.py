"""The measurements of what a topology costs on Spark, on few rows."""

from __future__ import annotations

import pytest

from benchmarks.targets import TARGETS
from benchmarks.units import UNITS
from benchmarks.workloads import flights


@pytest.mark.untraced
@pytest.mark.usefixtures("spark")
def test_every_way_of_the_flights_gives_the_same_tables() -> None:
    """In process, on Spark with and without merge, by hand and in SQL; the workload compares them."""
    figures = flights.spark_engine(2000)
    assert all(figures[f"{way}_wall_s"] > 0 for way in ("in_process", "on_spark", "merged", "by_hand", "sql"))
    assert figures.keys() <= UNITS.keys()


@pytest.mark.untraced
@pytest.mark.usefixtures("spark")
def test_the_memory_of_workers_is_measured() -> None:
    """Beside that of the driver's Python."""
    figures = flights.spark_engine_flat(2000)
    assert 0 < figures["worker_peak_mib_early"] <= figures["worker_peak_mib"]
    assert figures.keys() <= UNITS.keys()


@pytest.mark.untraced
@pytest.mark.usefixtures("spark")
def test_hot_keys_are_measured_beside_even_ones() -> None:
    """With and without a combiner."""
    figures = flights.spark_engine_skew(2000)
    assert all(value > 0 for value in figures.values())
    assert figures.keys() <= UNITS.keys()


@pytest.mark.parametrize(
    ("cpu", "wall", "other", "cores"),
    [(10.0, 6.0, 4.0, 4.0), (10.0, 5.0, 20.0, 1.0), (10.0, 6.0, 1.0, 0.0)],
)
def test_cores_follow_from_what_runs_alone(cpu: float, wall: float, other: float, cores: float) -> None:
    """Two of ten seconds alone, and eight on two cores, are six; on four cores four. One second is never reached."""
    assert flights.cores_to_be_faster(cpu, wall, other) == cores


def test_the_bounds_are_targets() -> None:
    """So that each run of the command says if they are kept."""
    bounds = {
        target.text
        for target in TARGETS
        if "flights" in target.text or "the same with `merge`" in target.text
    }
    assert len(bounds) == 6
