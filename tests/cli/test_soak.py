"""The ``soak`` command."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormlet.cli.app import carry_out
from tests.cli.flows import write


def build() -> None:
    write("""
        def build(times: int = 1) -> Topology:
            topology = Topology("good")
            topology.bolt("show", lambda value: None, topology.spout("numbers", range(3 * times)).shuffle())
            return topology
    """)


def test_a_sound_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each rest on standard error, and a table with every count."""
    build()
    line = ["soak", "flow.py", "--minutes", "0.01", "--burst", "0.01", "--arg", "times=2", "--seed", "5"]
    assert carry_out([*line, "--every", "100", "--set", "ackers=2"]) == 0
    shown = capsys.readouterr()
    head, *rows = shown.out.splitlines()
    assert head.startswith("good: ")
    assert head.endswith(", seed 5")
    assert {row.strip().partition("  ")[0] for row in rows if "faults" not in row} == {
        "messages acked",
        "inputs executed",
        "restarts",
        "timeouts",
        "replayed",
        "duplicates",
        "dead letters",
        "lost",
        "memory",
    }
    assert "  lost             0\n" in shown.out
    assert " messages acked, " in shown.err


def test_an_unsound_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, the table, and the exit code 1."""
    write("""
        def crash(value):
            raise OSError("out of order")

        topology = Topology("bad")
        topology.bolt("crash", crash, topology.spout("numbers", range(3)).shuffle(), on_error="stop")
    """)
    assert carry_out(["soak", "flow.py", "--minutes", "0.1"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("topology 'bad', seed ")
    assert "OSError('out of order')" in out
    assert "\nbad: " in out


@pytest.mark.parametrize("option", ["minutes", "burst", "every", "growth"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "nan"])
def test_wrong_usage(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, naming the option."""
    build()
    assert carry_out(["soak", "flow.py", f"--{option}", value]) == 2
    assert option in capsys.readouterr().err


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As for every command."""
    assert carry_out(["soak", str(tmp_path / "none.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
