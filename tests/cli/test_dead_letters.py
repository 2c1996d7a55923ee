"""The ``dead-letters`` command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stormlet import DeadLetter, Failure, FailureKind
from stormlet.cli import main
from stormlet.runtime.dead_letters import LetterFile
from tests.cli.flows import write

FAILED = Failure(FailureKind.FAILED, "work", 3, exception=ZeroDivisionError("odd"))
TIMEOUT = Failure(FailureKind.TIMEOUT, holders=("join", "store"))
LIST = ["dead-letters", "dead.jsonl"]

FAILING = """
    def fail(value: int) -> None:
        raise ZeroDivisionError(value)
    topology = Topology("failing", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", range(3)).shuffle())
    """


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a terminal of the usual size."""
    monkeypatch.setenv("COLUMNS", "80")


def letters(*values: object, failure: Failure = FAILED, component: str = "orders") -> None:
    file = LetterFile(Path("dead.jsonl"))
    for number, value in enumerate(values):
        file.write(DeadLetter(component, value, number, 5, failure))


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_each_letter_is_a_line_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Where it stands, what it was, how often it was tried and why it was given up; then the totals by cause."""
    letters({"id": 7})
    letters("late", failure=TIMEOUT)
    assert main(LIST) == 0
    assert shown(capsys) == [
        "line  spout   id  tries  cause    reason                      value",
        '   1  orders  0       5  failed   work: ZeroDivisionError(\'…  {"id":7}',
        '   2  orders  0       5  timeout  held by join, store         "late"',
        "2 dead letters: 1 failed, 1 timeout",
    ]


def test_the_table_fits_whatever_the_values_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Megabytes, line breaks, control characters and wide ones."""
    letters("x" * 10_000_000, "a\nb\x1b[2J", "漢字" * 100, component="a very long name of a spout\x1b[2J")
    assert main(LIST) == 0
    table = capsys.readouterr().out
    assert len(table.splitlines()) == 5
    assert max(map(len, table.splitlines())) <= 80
    assert "\x1b" not in table


@pytest.mark.parametrize(
    ("arguments", "lines", "totals"),
    [
        (["--component", "orders"], [1, 2], "2 of 4 dead letters: 2 failed"),
        (
            ["--component", "orders", "--component", "bills"],
            [1, 2, 3, 4],
            "4 dead letters: 2 failed, 2 timeout",
        ),
        (["--cause", "timeout"], [3, 4], "2 of 4 dead letters: 2 timeout"),
        (["--replayable"], [1, 3], "2 of 4 dead letters: 1 failed, 1 timeout"),
        (["--last", "1"], [4], "4 dead letters: 2 failed, 2 timeout; these are the last 1"),
        (["--cause", "timeout", "--last", "1"], [4], "2 of 4 dead letters: 2 timeout; these are the last 1"),
        (["--cause", "overflow"], [], "none of 4 dead letters in dead.jsonl is like that"),
    ],
)
def test_a_filter_leaves_some_out(
    arguments: list[str], lines: list[int], totals: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By spout, by cause, by whether they can be fed again; or the last ones."""
    letters(1, object())
    letters(3, object(), failure=TIMEOUT, component="bills")
    assert main([*LIST, *arguments]) == 0
    *table, total = shown(capsys)
    assert [int(line.split()[0]) for line in table[1:]] == lines
    assert total == totals


def test_json_passes_lines_on_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """What is filtered out of a file is a file of the same kind, and nothing else is printed."""
    letters("a", "ä\u2028")
    letters("c", component="bills")
    assert main([*LIST, "--json", "--component", "orders"]) == 0
    assert capsys.readouterr().out.encode() == b"".join(Path("dead.jsonl").read_bytes().splitlines(True)[:2])


def test_a_table_shows_fifty(capsys: pytest.CaptureFixture[str]) -> None:
    """The last ones; JSON has all."""
    letters(*range(60))
    assert main(LIST) == 0
    table = shown(capsys)
    assert len(table) == 52
    assert table[-1] == "60 dead letters: 60 failed; these are the last 50"
    main([*LIST, "--json"])
    assert [json.loads(line)["value"] for line in shown(capsys)] == list(range(60))


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_is_no_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that gave nothing up leaves one."""
    Path("dead.jsonl").write_text(text)
    assert main(LIST) == 0
    assert shown(capsys) == ["no dead letters in dead.jsonl"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_broken_line_is_named_and_the_others_are_listed(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As a process leaves it that was killed in the middle of a line, or another program."""
    letters(1)
    with Path("dead.jsonl").open("a") as file:
        file.write('{"level": "info"}\n{"component": "ord')
    letters(4)
    assert main([*LIST, *options]) == 1
    output = capsys.readouterr()
    assert output.out.count("orders") == 2
    first, second = output.err.splitlines()
    assert first.startswith("stormlet: dead.jsonl, line 2: it is no dead letter of this version: ")
    assert second == "stormlet: dead.jsonl, line 3: it is broken: Input data was truncated"


def test_a_file_of_something_else_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten lines show what is wrong; the others are counted."""
    Path("dead.jsonl").write_text("no letter\n" * 2011, "utf-8")
    assert main(["dead-letters", "dead.jsonl"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in said[:10]] == [f" dead.jsonl, line {n}" for n in range(1, 11)]
    assert said[10:] == ["stormlet: dead.jsonl, 2,001 more lines cannot be read"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nowhere.jsonl"],
            "stormlet: the dead letters of nowhere.jsonl cannot be read: No such file or directory",
        ),
        (["."], "stormlet: the dead letters of . cannot be read: Is a directory"),
        (["dead.jsonl", "--cause", "timeot"], 'Did you mean "timeout"?'),
        (["dead.jsonl", "--last", "0"], "Must be >= 1"),
    ],
)
def test_wrong_usage_is_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read, and filters that mean nothing."""
    letters(1)
    assert main(["dead-letters", *arguments]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""


def test_what_a_run_wrote_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The file of run --dead-letters."""
    write(FAILING)
    assert main(["run", "flow.py", "--dead-letters", "dead.jsonl", "--quiet"]) == 1
    capsys.readouterr()
    assert main(LIST) == 0
    assert shown(capsys)[-1] == "3 dead letters: 3 failed"


def test_a_reason_does_not_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """It is the bolt's, and may come from anywhere."""
    letters(1, failure=Failure(FailureKind.FAILED, "work", 3, reason="\x1b[2J"))
    assert main(LIST) == 0
    assert "\x1b[2J" not in capsys.readouterr().out


def test_a_letter_is_replayable_with_its_origin_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """What bolts read of it would be missing."""
    LetterFile(Path("dead.jsonl")).write(DeadLetter("orders", "late", 1, 5, FAILED, origin=object()))
    assert main([*LIST, "--replayable"]) == 0
    assert shown(capsys) == ["the one dead letter in dead.jsonl is not like that"]
