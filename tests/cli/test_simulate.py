"""The ``simulate`` command."""

from __future__ import annotations

import shlex
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

def build(numbers: int = 3) -> Topology:
    topology = Topology("bad")
    topology.bolt("forgets", Forgets, topology.spout("numbers", range(numbers)).shuffle(), on_error="stop")
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
def test_faults_that_never_struck_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A list of faults that repeats nothing any more does not look as if its bug were mended."""
    assert (
        carry_out(["simulate", "good.py", "--seed", "1", "--faults", "kill:show[0]@1 kill:show[0]@99"]) == 0
    )
    assert "1 of 2 faults never struck, such as kill:show[0]@99 under seed 1\n" in capsys.readouterr().out


@pytest.mark.usefixtures("write")
def test_the_command_line_repeats_it_wherever_the_options_came_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a file and of the environment are on the printed line, and no number is rounded."""
    Path("options.toml").write_text(
        "replay_delay = 7.123456789\nmessage_timeout = 12.5\nexplain_stuck = 'none'\n"
    )
    monkeypatch.setenv("STORMLET_ACKERS", "3")
    monkeypatch.setenv("STORMLET_TIMEOUT_RESTARTS_ON", "activity")
    given = ["simulate", "bad.py", "--faults", "kill=0.2", "--config", "options.toml"]
    more = ["--set", "topology.acker.executors=2", "--arg", "numbers=5", "--seconds", "1234567.891"]
    assert carry_out([*given, *more]) == 1
    first = capsys.readouterr().out
    Path("options.toml").unlink()
    monkeypatch.delenv("STORMLET_ACKERS")
    monkeypatch.delenv("STORMLET_TIMEOUT_RESTARTS_ON")
    _, *again = shlex.split(first.splitlines()[-1].removeprefix("again: "))
    assert carry_out(again) == 1
    assert capsys.readouterr().out == first
    assert float(again[again.index("--seconds") + 1]) == 1234567.891
    values = dict(each.split("=") for each in again if "=" in each)
    assert values == {
        "numbers": "5",
        "replay_delay": "7.123456789",
        "message_timeout": "12.5",
        "explain_stuck": "null",
        "ackers": "2",
        "timeout_restarts_on": "activity",
    }
    without = [each for each in again if not each.startswith("replay_delay")]
    without.remove("--set")
    carry_out(without)
    assert capsys.readouterr().out.splitlines()[:-1] != first.splitlines()[:-1]


@pytest.mark.usefixtures("write")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["--faults", "explode=1"], "there is no fault 'explode'"),
        (
            ["--seed", "1", "--faults", "kill:nobody[0]@1"],
            "there is no 'nobody[0]' here, only numbers[0], show",
        ),
        (["--seeds", "0"], "--seeds"),
        (["--seed", "1", "--seeds", "5"], "give one of them"),
        (["--seed", "x"], "'x' is no whole number"),
        (["--set", "ackers=-1"], "ackers=-1"),
    ],
)
def test_wrong_usage(line: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what is understood."""
    assert carry_out(["simulate", "good.py", *line]) == 2
    assert expected in capsys.readouterr().err
