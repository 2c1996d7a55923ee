"""Every workload comes to its end with a right result and positive figures."""

from __future__ import annotations

import pytest

from benchmarks.catalogue import WORKLOADS
from benchmarks.units import UNITS
from stormlet.bench.rounds import measure

SHORT = 0.002
SEVERAL_BATCHES = 0.02
INSTALLED = [name for name, each in WORKLOADS.items() if each.kind != "spark" and each.available]
MAY_BE_NOTHING = {
    "bytes_per_key",  # a short round's keys may find room in memory that is already there
    "resident_bytes_per_tree",
    "idle_wakeups",
    "longest_hold_ms",
    "longest_collecting_ms",
}


@pytest.mark.parametrize("name", INSTALLED)
def test_a_workload_gives_figures(name: str) -> None:
    """In a short round; it checks its result by itself."""
    scale = SEVERAL_BATCHES if WORKLOADS[name].kind == "peer" else SHORT
    figures = measure([WORKLOADS[name]], 1, scale, module="benchmarks.child")[name].figures
    assert figures
    assert figures.keys() <= UNITS.keys()
    assert all(figures[which].median > 0 for which in figures.keys() - MAY_BE_NOTHING)


@pytest.mark.untraced
def test_memory_stays_flat_with_a_slow_last_bolt() -> None:
    """Ten times as many tuples need no more memory: the queues are bounded (law B6)."""
    figures = measure([WORKLOADS["flat"]], 1, 0.4, module="benchmarks.child")["flat"].figures
    assert figures["peak_mib"].median - figures["peak_mib_early"].median < 4
