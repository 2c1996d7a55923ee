"""Topologies with state in simulations with faults: the witness holds what is told against what was emitted."""

from __future__ import annotations

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.testing import Faults, simulate


class Count(KeyedBolt[str, str, str]):
    """Counts, and passes on."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1
        out.emit(tup.value)


def topology() -> Topology:
    """A count with epochs so short that failures often spoil one."""
    counting = Topology("counting", epoch_messages=20)
    words = counting.spout("words", [f"word {number % 7}" for number in range(120)])
    counted = counting.bolt("count", Count, words.fields(), parallelism=2)
    counting.bolt("end", len, counted.shuffle())
    return counting


def test_a_topology_with_state_is_simulated_with_all_faults() -> None:
    """Its messages are acked in several attempts, and told once (law X3)."""
    report = simulate(topology, seeds=range(40), faults=Faults())
    assert (report.seeds, report.counts["acked"]) == (40, 40 * 120)
    assert report.counts["replayed"]
