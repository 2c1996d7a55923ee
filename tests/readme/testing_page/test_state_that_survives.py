"""The page "Testing your topology": what is tested of a topology with state."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.testing import Faults, complete, simulate
from stormlet.testing.chaos.faults import FaultKind
from tests.epochs import kills, lives, planted_bugs, progress
from tests.state import kills as file_kills
from tests.state.power import losses

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")
COMMANDS = re.findall(r"`python -m (tests\.(?:epochs|state)\.[\w.]+) ([^`]*)`", PAGE)


class Count(KeyedBolt[str, str, int]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        self.total += 1
        out.emit(self.total)


def test_a_topology_with_state() -> None:
    """A test in process is a test of a topology with state, too, and `simulate` kills it."""
    topology = Topology("counting", state="counts.state")
    topology.bolt("count", Count, topology.spout("words", ["a", "b", "a"]).fields())
    report = simulate(topology, seeds=range(20), faults=Faults(crash=0.02))
    assert report.faults[FaultKind.CRASH]
    memory = Topology("counting")
    memory.bolt("count", Count, memory.spout("words", ["a", "b", "a"]).fields())
    assert sorted(complete(memory)["count"]) == [1, 1, 2]


def test_state_campaigns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All are there, and take the options that the page gives them."""
    mains = {each.__name__: each.main for each in (lives, planted_bugs, kills, progress, file_kills, losses)}
    assert [name for name, _ in COMMANDS] == [*mains]
    for name, options in COMMANDS:
        monkeypatch.setattr(sys, "argv", [name, *options.split(), "--help"])
        with pytest.raises(SystemExit) as ended:
            mains[name]()
        assert ended.value.code == 0
        assert all(each in capsys.readouterr().out for each in options.split() if each.startswith("--"))
