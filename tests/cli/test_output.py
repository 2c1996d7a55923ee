"""What becomes of a command's output where standard output is closed or lacks characters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from stormlet.cli import main
from stormlet.cli.output import bar, encodable, fitted
from tests.cli.flows import write

FLOW = """
topology = Topology("sümme 名🙂")
topology.bolt("b", print, topology.spout("s", [1]).shuffle())
"""

LETTER = (
    '{"time":"2026-11-21T18:44:17.682811Z","component":"sümme","stream":"default","value":"'
    + 99 * "名"
    + '",'
    '"value_type":"str","message_id":1,"origin":null,"origin_type":"None","attempts":1,"cause":"FAILED",'
    '"failed_in":"b","failed_task":3,"reason":"","exception":"Reject()","held_by":[],"history":[]}\n'
)

COMMANDS = [
    ["check", "flow.py"],
    ["describe", "flow.py"],
    ["describe", "flow.py", "--json"],
    ["graph", "flow.py"],
    ["graph", "flow.py", "--format", "dot"],
    ["dead-letters", "letters.jsonl"],
    ["dead-letters", "letters.jsonl", "--json"],
    ["new", "ü/begun"],
]


@pytest.fixture(autouse=True)
def _files() -> None:
    write(FLOW)
    Path("ü").mkdir()
    Path("letters.jsonl").write_text(LETTER, "utf-8")


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_output_is_no_error(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python has no standard output at all when it begins with a closed one."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", COMMANDS)
def test_characters_that_the_encoding_lacks_are_no_error(arguments: list[str]) -> None:
    """Names are the user's, and a terminal may know ASCII only."""
    command = [sys.executable, "-m", "stormlet", *arguments]
    finished = subprocess.run(
        command, env={"PYTHONIOENCODING": "ascii", "COLUMNS": "80"}, capture_output=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, b"")
    assert finished.stdout


def test_people_see_escapes() -> None:
    """So that they can tell one name from another."""
    command = [sys.executable, "-m", "stormlet", "check", "flow.py"]
    shown = subprocess.run(command, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True).stdout
    assert shown.startswith(rb"s\xfcmme \u540d\U0001f642: 1 spout")


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["describe", "flow.py", "--json"], "name", "sümme 名🙂"),
        (["dead-letters", "letters.jsonl", "--json"], "component", "sümme"),
    ],
)
def test_programs_read_utf8(arguments: list[str], key: str, value: str) -> None:
    """Escapes of Python are no JSON."""
    command = [sys.executable, "-m", "stormlet", *arguments]
    shown = subprocess.run(command, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True).stdout
    assert json.loads(shown.decode())[key] == value


def test_a_table_keeps_its_width_without_its_ellipsis() -> None:
    """What stands for a character is as wide as it."""
    command = [sys.executable, "-m", "stormlet", "dead-letters", "letters.jsonl"]
    environment = {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "~" in shown


def test_a_bar_tells_something_from_nothing_without_colour() -> None:
    """The smallest part shows, and the whole is only full when it is."""
    assert [bar(each, 4, "green").plain for each in (0, 0.001, 0.5, 0.99, 1)] == [
        "────",
        "╸───",
        "━━──",
        "━━━╸",
        "━━━━",
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("abc", "abc"), ("abcd", "ab…"), ("長長", "長…"), ("x" * 9, "xx…")]
)
def test_a_text_is_fitted(text: str, shown: str) -> None:
    """To three cells."""
    assert fitted(text, 3) == shown
    assert cell_len(fitted(text, 3)) <= 3


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "━─ 5 µs é…"), ("ascii", "#- 5 us ?~"), ("latin-1", "#- 5 us é~")]
)
def test_what_an_encoding_lacks_is_replaced_cell_by_cell(encoding: str, shown: str) -> None:
    """So that columns stay aligned, and lines are no wider than the terminal."""
    assert encodable("━─ 5 µs é…", encoding) == shown
