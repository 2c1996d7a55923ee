"""The page "Testing your topology": soaks. Real time is their subject; these take seconds."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from textwrap import dedent

import pytest

from stormlet import Topology
from stormlet.cli.app import carry_out
from stormlet.core.ledger import Ledger
from stormlet.testing import FaultKind, SoakFailed, SoakReport, soak
from stormlet.testing.chaos.witness import Witness
from stormlet.testing.soaking import report
from stormlet.testing.soaking import soak as soaking
from stormlet.testing.soaking.kit import LONGEST
from stormlet.testing.soaking.report import MIB
from stormlet.testing.soaking.witness import SteadyWitness
from tests.helpers import interpreted_only
from tests.testing.chaos.test_broken_engines import (
    messages_of_a_dead_acker_wait,
    one_edge_for_all_replicas,
    outcomes_are_delivered_twice,
)
from tests.testing.chaos.topologies import word_count

SECOND = 1 / 60
FLOW = """
    import itertools
    from stormlet import Topology

    topology = Topology("flow", message_timeout=2.0)
    topology.bolt("show", lambda number: None, topology.spout("numbers", itertools.count()).all(), parallelism=2)
"""
CRASHES = """
    from stormlet import Topology

    def crash(number):
        raise OSError("out of order")

    topology = Topology("crashes")
    topology.bolt("crash", crash, topology.spout("numbers", [1]).shuffle(), on_error="stop")
"""


@pytest.fixture(autouse=True)
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology in a file."""
    monkeypatch.chdir(tmp_path)
    Path("topology.py").write_text(dedent(FLOW), "utf-8")


def trees_time_out_too_early(patch: pytest.MonkeyPatch) -> None:
    """With the first rotation after their emit."""
    rotate = Ledger.rotate

    def in_a_hurry(self: Ledger) -> None:
        for _ in range(3):
            rotate(self)

    patch.setattr(Ledger, "rotate", in_a_hurry)


def numbers() -> Iterator[int]:
    yield from itertools.count()


def endless() -> Topology:
    """One that never ends, of replicas."""
    topology = Topology("endless", message_timeout=2.0)
    spout = topology.spout("numbers", numbers)
    topology.bolt("show", lambda number: None, spout.all(), parallelism=2)
    return topology


def soaked(*options: str) -> int:
    """The exit code of a soak of a second or two."""
    return carry_out(["soak", "topology.py", *options])


def test_a_soak() -> None:
    """Simulated time shows what may happen in which order. What takes real time, threads and load shows in a soak:
    `python -m stormlet soak topology.py --minutes 20` runs a topology as fast as it can, while twice a second, on the
    average, a task is killed, a bolt raises, or an input takes up to five seconds longer.
    """
    assert (default("minutes"), default("every"), LONGEST) == (20.0, 0.5, 5.0)
    report = soak(endless(), minutes=2 * SECOND, burst=0.5, every=0.02, seed=3)
    assert set(report.faults) == {FaultKind.KILL, FaultKind.ERROR, FaultKind.SLOW}
    assert report.seconds >= 2.0


def default(name: str) -> object:
    return signature(soak).parameters[name].default


def test_rests() -> None:
    """Every thirty seconds the spouts pause until everything is settled."""
    assert default("burst") == 30.0
    rests: list[float] = []
    soak(endless(), minutes=4 * SECOND, burst=0.2, on_rest=lambda report: rests.append(report.seconds))
    assert len(rests) >= 2


@interpreted_only
@pytest.mark.parametrize(
    ("breaks", "violation"),
    [
        (one_edge_for_all_replicas, "was acked although"),
        (outcomes_are_delivered_twice, "got a second outcome"),
        (trees_time_out_too_early, r"timed out after [01]\."),
    ],
)
def test_the_same_witness(
    breaks: Callable[[pytest.MonkeyPatch], None], violation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same witness judges the run, with a memory that is bounded: only that a tree timed out too early, not that it
    should not have, can be seen in real time.
    """
    assert issubclass(SteadyWitness, Witness)
    breaks(monkeypatch)
    with pytest.raises(SoakFailed, match=violation):
        soak(endless(), minutes=10 * SECOND, burst=0.5, every=0.05, seed=1)


def test_a_topology_that_ends() -> None:
    """A topology that ends is run again."""
    report = soak(word_count(), minutes=2 * SECOND, every=1000.0)
    assert report.runs > 1
    assert 3 * (report.runs - 1) <= report.counts["acked"] <= 3 * report.runs  # the last one may be cut short


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The end is a table of messages, faults, replays and duplicates, which are inputs that were executed in attempts
    that then failed.
    """
    assert soaked("--minutes", "0.06", "--burst", "0.5", "--every", "0.02", "--seed", "3") == 0
    table = capsys.readouterr().out
    for row in ("messages acked", "faults: kill", "replayed", "duplicates"):
        assert re.search(rf"^  {row} +\d", table, re.MULTILINE), table


def test_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a message is lost, reported twice or acked too early, when the topology hangs, or when the process takes 16
    MiB more at the end than after its warm-up, the exit code is 1; `--growth` allows a topology that gathers state more
    than that.
    """
    short = ("--minutes", "0.02", "--burst", "0.02", "--every", "9")
    for each, growth, code in ((50 * MIB, "16", 1), (50 * MIB, "100000", 0), (0, "16", 0)):
        weights = itertools.count(50 * MIB, each)
        monkeypatch.setattr(soaking, "resident_bytes", weights.__next__)
        monkeypatch.setattr(report, "FEWEST", 3)  # a slow machine has little time to rest
        assert soaked(*short, "--growth", growth) == code
    assert default("growth") == 16.0
    for breaks in (outcomes_are_delivered_twice, one_edge_for_all_replicas, messages_of_a_dead_acker_wait):
        with pytest.MonkeyPatch.context() as patch:
            breaks(patch)
            patch.setattr(soaking, "PATIENCE", 0.5)
            assert soaked("--minutes", "0.2", "--burst", "1", "--every", "0.02", "--seed", "1") == 1


def test_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows does not say how much memory a process takes: there the table says that it is unknown, and the rest is
    judged.
    """
    monkeypatch.setattr(report, "_STATM", tmp_path / "none")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert soaked("--minutes", "0.02", "--burst", "0.1", "--every", "9", "--growth", "0.001") == 0
    table = capsys.readouterr().out
    assert re.search(r"^  memory +unknown: this system does not report it$", table, re.MULTILINE)
    Path("topology.py").write_text(dedent(CRASHES), "utf-8")
    assert soaked("--minutes", "0.02") == 1


def test_in_python() -> None:
    """In Python, `soak(topology, minutes=20)` returns a `SoakReport` or raises `SoakFailed`."""
    assert isinstance(soak(endless(), minutes=0.1 * SECOND), SoakReport)

    def crash(number: int) -> None:
        raise OSError("out of order")

    topology = Topology("crash")
    topology.bolt("crash", crash, topology.spout("numbers", [1]).shuffle(), on_error="stop")
    with pytest.raises(SoakFailed, match="out of order"):
        soak(topology, minutes=SECOND)
