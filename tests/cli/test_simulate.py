"""The ``simulate`` command."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormlet.cli.app import carry_out

GOOD = """
from stormlet import Topology

def build(times: int = 1) -> Topology:
    topology = Topology("good")
    topology.bolt("show", lambda value: None, topology.spout("numbers", range(3 * times)).shuffle())
    return topology
"""

BAD = """
from stormlet import Bolt, Topology

class Forgets(Bolt):
    def execute(self, tup, out):
        if tup.attempt > 1:
            raise SystemError("again")
        out.ack(tup)

def build() -> Topology:
    topology = Topology("bad")
    topology.bolt("forgets", Forgets, topology.spout("numbers", range(3)).shuffle(), on_error="stop")
    return topology
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files, in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("good.py").write_text(GOOD)
    Path("bad.py").write_text(BAD)


@pytest.mark.usefixtures("write")
def test_a_sound_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """A summary says how many seeds and faults it has survived."""
    assert carry_out(["simulate", "good.py", "--seeds", "20", "--arg", "times=2", "--set", "ackers=3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("good: 20 seeds in ")
    assert "messages acked 120, " in out
    assert "faults: " in out


@pytest.mark.usefixtures("write")
def test_a_failing_seed_is_printed_with_its_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1, and the last line repeats it."""
    assert carry_out(["simulate", "bad.py", "--faults", "kill=0.2"]) == 1
    first = capsys.readouterr().out
    assert "topology 'bad', seed " in first
    again = first.splitlines()[-1].removeprefix("again: stormlet ")
    seed, faults = again.split(" --seed ")[1].split(" --faults ")
    assert carry_out(["simulate", "bad.py", "--seed", seed, "--faults", faults.strip("'")]) == 1
    assert capsys.readouterr().out == first


@pytest.mark.usefixtures("write")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["--faults", "explode=1"], "there is no fault 'explode'"),
        (["--seeds", "0"], "--seeds"),
        (["--seed", "x"], "'x' is no whole number"),
        (["--set", "ackers=-1"], "ackers=-1"),
    ],
)
def test_wrong_usage(line: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what is understood."""
    assert carry_out(["simulate", "good.py", *line]) == 2
    assert expected in capsys.readouterr().err
