"""The command ``run`` from its arguments to its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.state.stores import owned
from tests.cli.flows import write

COUNTING = """
    def build(limit: int = 3) -> Topology:
        topology = Topology("counting")
        numbers = topology.spout("numbers", range(limit))
        topology.bolt("print", print, numbers.shuffle())
        return topology
    """

FAILING = """
    def refuse(value: int) -> None:
        raise ValueError(value)
    topology = Topology("failing", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", range(3)).shuffle())
    """

CRASHING = """
    def numbers():
        yield 1
        raise ZeroDivisionError("no more")
    topology = Topology("crashing")
    topology.bolt("print", print, topology.spout("numbers", numbers).shuffle())
    """


def test_a_finished_run_is_0_and_ends_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    """A topology whose spouts end and whose messages are all acked is done; the summary does not touch its output."""
    write(COUNTING)
    assert main(["run", "flow.py"]) == 0
    output = capsys.readouterr()
    assert output.out.split() == ["0", "1", "2"]
    assert output.err.startswith("counting: ")
    assert "\nprint " in output.err
    assert "dead letters: 0" in output.err


def test_arguments_reach_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    """``--arg name=value`` fills a parameter of the function that makes the topology."""
    write(COUNTING)
    assert main(["run", "flow.py:build", "--arg", "limit=1"]) == 0
    assert capsys.readouterr().out.split() == ["0"]


def test_settings_override_the_topologys_own(capsys: pytest.CaptureFixture[str]) -> None:
    """``--set key=value`` wins over what the file says, under Storm's names too."""
    write(COUNTING)
    assert main(["run", "flow.py", "--set", "ackers=2", "--set", "topology.max.spout.pending=1"]) == 0
    assert capsys.readouterr().out.split() == ["0", "1", "2"]


def test_dead_letters_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that gave up messages says how many and exits with 1."""
    write(FAILING)
    assert main(["run", "flow.py"]) == 1
    assert "\ndead letters: 3\n" in capsys.readouterr().err


def test_a_crash_is_1_and_shows_the_users_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An exception that no tuple answers for is shown by the user's own frames, above one line of ours."""
    write(CRASHING)
    assert main(["run", "flow.py"]) == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: no more" in shown
    assert 'flow.py", line' in shown
    assert "/stormlet/" not in shown
    assert shown.splitlines()[-1].startswith("stormlet: topology 'crashing' crashed: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.py"], "stormlet: there is no file 'nowhere.py'; did you mean"),
        (
            ["run", "flow.py", "--arg", "limit=many"],
            "stormlet: --arg limit=many does not fit flow.py:build(limit: int",
        ),
        (
            ["run", "flow.py", "--set", "acker=2"],
            "stormlet: --set: unknown option 'acker'; did you mean ackers",
        ),
        (["run", "flow.py", "--set", "seed=2"], "stormlet: --set: unknown option 'seed'"),
        (["run", "flow.py", "--set", "ackers=-1"], "ackers"),
    ],
)
def test_a_wrong_target_or_setting_is_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be run is refused with one message and exit code 2."""
    write(COUNTING)
    Path("nowhere_else.py").touch()
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("flow.py", "flow.py is no state file, or its beginning is damaged"),
        ("nowhere/flow.state", "cannot be kept, as there is no directory"),
        ("others.state", "has the state of the topology 'others'; give 'counting' a file of its own"),
    ],
)
def test_a_state_that_cannot_be_used_is_2(
    path: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By --state or by the topology, nothing is run."""
    owned("others.state", "others").close()
    write(COUNTING)
    assert main(["run", "flow.py", "--state", path]) == 2
    write(COUNTING.replace('Topology("counting"', f'Topology("counting", state={path!r}'))
    assert main(["run", "flow.py", "--json-summary"]) == 2
    shown = capsys.readouterr()
    assert shown.err.count(message) == 2
    assert shown.err.count("stormlet: ") == 2
    summary = json.loads(shown.out)
    assert (summary["outcome"], summary["exit_code"]) == ("invalid", 2)


def test_an_invalid_topology_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A topology that cannot run as described is refused, with the line of the file that says so."""
    write("topology = Topology('invalid')\ntopology.spout('numbers', [1], parallelism=0)\n")
    assert main(["run", "flow.py"]) == 2
    message, place, *_ = capsys.readouterr().err.splitlines()
    assert "numbers" in message
    assert 'flow.py", line 3' in place


def test_the_module_runs_as_a_program() -> None:
    """``python -m stormlet run`` is the command line, with its exit codes; its log shows what failed each input, and
    where in the user's own code."""
    write(FAILING)
    command = [sys.executable, "-m", "stormlet", "run", "flow.py"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert shown[0] == "ERROR stormlet.runtime.failure_log: refuse[0] raised ValueError(0) on 0"
    assert shown[1] == "Traceback (most recent call last):"
    assert shown[2].endswith('flow.py", line 4, in refuse')
    assert shown[3:5] == ["    raise ValueError(value)", "ValueError: 0"]
    assert shown[-3] == "dead letters: 3"
    assert shown[-1] == "  3 times refuse[0]: ValueError(2) at flow.py:4 on 2"


def test_a_run_loads_only_what_it_needs() -> None:
    """Half of the time of a short run is for its modules: none of versions, drawings, state files and a terminal is
    loaded for a run that has none of these."""
    write(COUNTING)
    code = "import sys; from stormlet.cli import main; main(['run', 'flow.py']); print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(finished.stdout.splitlines()[-1].split())
    assert {"stormlet.cli.run", "asyncio"} <= loaded
    unneeded = {"importlib.metadata", "rich.console", "sqlite3", "stormlet.drawing.drawing"}
    unneeded |= {"pyspark", "stormlet.ui", "stormlet.spark", "rocksdict", "textual"}
    assert unneeded & loaded == set()
