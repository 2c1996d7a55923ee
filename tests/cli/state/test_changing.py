"""``state rename``, ``forget``, ``save`` and ``rewind``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stormlet.cli import main
from stormlet.core.state.commits import Commit, Shape, StateId, Stored, Table, TableRows
from stormlet.state.entries import entries_of
from stormlet.state.stores import owned, reader
from tests.cli.state.kept import FILE, TOTAL, flow, keep, leave_undelivered

PRICES = StateId("count", "prices")


def read(path: Path = FILE) -> Stored:
    with closing(reader(path)) as found:
        return found.load().in_memory()


def counts(path: Path = FILE, state: StateId = TOTAL) -> dict[Any, Any]:
    return {each.key: each.value for each in entries_of(state, None, read(path).states.get(state, ()))}


def test_a_component_gets_another_id(capsys: pytest.CaptureFixture[str]) -> None:
    """In all epochs."""
    keep({"a": 1}, {"a": 2})
    assert main(["state", "rename", str(FILE), "count", "words per day"]) == 0
    assert capsys.readouterr().out == "count is words per day now, in all epochs of counts.state\n"
    assert counts(state=StateId("words per day", "total")) == {"a": 2}


@pytest.mark.parametrize(
    ("names", "message", "code"),
    [
        (["cont", "x"], "has nothing of 'cont'; it has what belongs to: 'count', 'words'", 2),
        (["count", "words"], "has something of 'words' already", 2),
        (["count", " "], "the new id ' ': an id must not be empty or begin with '__'", 2),
        (["count", "__x"], "the new id '__x': an id must not be empty or begin with '__'", 2),
        (["count", "c\udcff"], "the new id 'c\\udcff': a name must not have halves of characters", 2),
    ],
)
def test_a_name_that_cannot_be_given_changes_nothing(
    names: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with what is there."""
    keep({"a": 1})
    assert main(["state", "rename", str(FILE), *names]) == code
    assert message in capsys.readouterr().err
    assert counts() == {"a": 1}


def test_a_state_is_forgotten_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The others of its component stay."""
    keep({"a": 1})
    keep({("a", "x"): 1.5}, state=PRICES, shape=Shape("map", "str", "dict[str, float]"))
    assert main(["state", "forget", str(FILE), "count.prices"]) == 0
    assert capsys.readouterr().out == "count.prices is forgotten, in all epochs of counts.state\n"
    assert (list(read().shapes), counts()) == ([TOTAL], {"a": 1})


def test_a_state_is_forgotten_before_a_component_of_its_name() -> None:
    """As every other command has it; the second call finds the component alone."""
    keep({"a": 1})
    other = StateId("count.total", "sum")
    keep({"a": 20}, state=other)
    assert main(["state", "forget", str(FILE), "count.total"]) == 0
    assert (list(read().shapes), counts(state=other)) == ([other], {"a": 20})
    assert main(["state", "forget", str(FILE), "count.total"]) == 0
    assert list(read().shapes) == []


def test_a_component_is_forgotten_as_a_whole() -> None:
    """A bolt with its states, a source with its positions, a committer with its rows."""
    keep({"a": 1})
    leave_undelivered()
    for name in ("count", "words", "mail"):
        assert main(["state", "forget", str(FILE), name]) == 0
    stored = read()
    assert (stored.shapes, stored.states, stored.positions, stored.outbox) == ({}, {}, {}, ())


def test_what_is_not_there_cannot_be_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    """The names of what is are said."""
    keep({"a": 1})
    assert main(["state", "forget", str(FILE), "count.x"]) == 2
    assert "has nothing of 'count.x'; it has what belongs to: 'count', 'words'" in capsys.readouterr().err


def test_a_copy_is_saved_while_a_run_has_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """And is a state file like any other."""
    keep({"a": 1})
    with closing(owned(FILE, "count")):
        assert main(["state", "save", str(FILE), "copy.state"]) == 0
    assert capsys.readouterr().out == "copy.state has epoch 1 of counts.state\n"
    assert counts(Path("copy.state")) == {"a": 1}


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        (
            "copy.rocksdb",
            "would be a file of sqlite, and none that is found by its name; give a name that does not",
        ),
        ("no/copy.state", "cannot be written, as there is no directory"),
    ],
)
def test_a_copy_that_could_not_be_opened_is_not_made(
    copy: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a state says of which store it is."""
    keep({"a": 1})
    assert main(["state", "save", str(FILE), copy]) == 2
    assert message in capsys.readouterr().err
    assert not Path(copy).exists()


def test_a_copy_needs_a_name_that_a_file_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said in a sentence."""
    keep({"a": 1})
    assert main(["state", "save", str(FILE), f"{'x' * 300}.state"]) == 2
    assert "xxx.state cannot be kept: File name too long; give another path\n" in capsys.readouterr().err


def test_nothing_is_overwritten_by_a_copy(capsys: pytest.CaptureFixture[str]) -> None:
    """It needs a new path."""
    keep({"a": 1})
    assert main(["state", "save", str(FILE), str(FILE)]) == 2
    assert "is there already; a copy needs a new path" in capsys.readouterr().err


def test_rewinding_goes_back_to_an_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    """State and positions are as they were then, and another line of epochs begins (law K8)."""
    keep({"a": 1}, {"a": 2, "b": 1}, {"a": 3})
    leave_undelivered()
    before = read()
    assert main(["state", "rewind", str(FILE), "--epoch", "1"]) == 0
    said = capsys.readouterr().out
    assert "counts.state is back at epoch 1 of " in said
    assert said.endswith("; 3 epochs lost, with 1 delivery and 1 dead letter that nobody has had\n")
    after = read()
    assert (after.epoch, counts(), len(after.outbox), len(after.letters)) == (1, {"a": 1}, 0, 0)
    assert after.positions["words[0] of 1"] != before.positions["words[0] of 1"]
    assert after.line != before.line


def test_rewinding_names_the_tables_whose_rows_stay(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Else they would be there twice, and nobody would know."""
    path = tmp_path / "rows.state"
    with closing(owned(path, "rows")) as file:
        for epoch in (1, 2):
            rows = TableRows(Table("entries", [("id", "INTEGER")]), [(epoch,)])
            file.commit(Commit(epoch, 0.0, {}, tables=[rows]))
    assert main(["state", "rewind", str(path), "--epoch", "1"]) == 0
    assert "tables in the file stay as they are (entries): remove the rows" in capsys.readouterr().out


def test_rewinding_to_a_time_takes_the_last_epoch_of_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Epoch 2 was committed two seconds after epoch 0 would have been."""
    keep({"a": 1}, {"a": 2}, {"a": 3})
    assert main(["state", "rewind", str(FILE), "--at", "2023-11-14T22:13:22.500Z"]) == 0
    assert counts() == {"a": 2}
    assert "1 epoch lost\n" in capsys.readouterr().out


def test_rewinding_to_the_last_epoch_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It begins another line, as for a copy that is put in the place of the file."""
    keep({"a": 1})
    line = read().line
    assert main(["state", "rewind", str(FILE), "--epoch", "1"]) == 0
    assert capsys.readouterr().out.endswith("; nothing is lost, and another line of epochs begins\n")
    assert read().line != line


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "either by --epoch or by --at", 2),
        (["--epoch", "1", "--at", "2023-11-14"], "either by --epoch or by --at", 2),
        (["--epoch", "9"], "does not have epoch 9; it has those from 0 to 1", 2),
        (["--epoch", "-1"], "Must be >= 0", 2),
        (["--epoch", "x"], "'x' is no whole number", 2),
        (["--at", "noon"], "--at noon is no time; write it as 2026-11-23T18:30", 2),
    ],
)
def test_where_there_is_no_way_back_nothing_changes(
    arguments: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with the way out."""
    keep({"a": 1})
    line = read().line
    assert main(["state", "rewind", str(FILE), *arguments]) == code
    assert message in capsys.readouterr().err
    assert (counts(), read().line) == ({"a": 1}, line)


def test_a_time_before_the_first_epoch_that_is_kept_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The first one is named."""
    keep({"a": 1})
    with closing(owned(FILE)) as file:
        file._forget(1)
    assert main(["state", "rewind", str(FILE), "--at", "1990-01-01"]) == 2
    assert "has no epoch of that time; its first is epoch 1" in capsys.readouterr().err


def test_a_time_before_the_first_epoch_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in a year would take everything away; the beginning has a number, too."""
    keep({"a": 1})
    assert main(["state", "rewind", str(FILE), "--at", "1990-01-01"]) == 2
    assert (
        "has no epoch of that time; its first is epoch 0: name one by its number" in capsys.readouterr().err
    )
    assert counts() == {"a": 1}
    assert main(["state", "rewind", str(FILE), "--epoch", "0"]) == 0
    assert "counts.state is back at its beginning; " in capsys.readouterr().out
    assert counts() == {}


def test_a_run_goes_on_from_where_the_file_was_rewound_to(capsys: pytest.CaptureFixture[str]) -> None:
    """As if the later epochs had never been: the source gives their messages again."""
    flow()
    keep({"a": 1}, {"b": 1}, {"c": 1})
    assert main(["state", "rewind", str(FILE), "--epoch", "2"]) == 0
    assert main(["run", "flow.py", "--quiet"]) == 0
    assert counts() == {"a": 2, "b": 2, "c": 1}


CHANGES = [
    ["rename", str(FILE), "count", "x"],
    ["forget", str(FILE), "count"],
    ["forget", str(FILE), "count.total"],
    ["rewind", str(FILE), "--epoch", "0"],
]


@pytest.mark.parametrize("arguments", CHANGES)
def test_no_file_is_changed_that_a_run_has(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It says who has it; the file stays as it is."""
    keep({"a": 1})
    with closing(owned(FILE, "count")):
        assert main(["state", *arguments]) == 2
    assert "is in use by another run of this process; wait for its end\n" in capsys.readouterr().err
    assert counts() == {"a": 1}


READS = [
    ["list", str(FILE)],
    ["show", str(FILE), "count"],
    ["get", str(FILE), "count", "a"],
    ["diff", str(FILE), "--epoch", "0"],
    ["export", str(FILE)],
    ["check", "flow.py", str(FILE)],
    ["save", str(FILE), "copy.state"],
]


@pytest.mark.parametrize("arguments", READS)
def test_a_file_is_read_that_a_run_has(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By every command that changes nothing."""
    flow()
    keep({"a": 1})
    with closing(owned(FILE, "count")):
        assert main(["state", *arguments]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [*READS, *CHANGES])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda: FILE.write_bytes(b"not a database at all" * 100), "is no state file, or its beginning is damaged"),
        (lambda: FILE.write_bytes(b""), "is empty: no run has begun with it"),
        (lambda: _set("PRAGMA user_version=99"), "was written by a newer version of stormlet"),
        (lambda: _set("PRAGMA application_id=7"), "is the sqlite file of another program"),
        (lambda: _set("UPDATE log SET blob = x'81a16102'"), "is damaged"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_2_and_named(
    arguments: list[str], spoil: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command, as by a run, with the way out and no traceback; going back to before the damage is one."""
    flow()
    keep({"a": 1})
    spoil()
    code = main(["state", *arguments])
    said = capsys.readouterr().err
    if message == "is damaged" and arguments[0] == "rewind":
        return
    assert (code, message in said, "Traceback" in said) == (2, True, False), said


def _set(statement: str) -> None:
    import sqlite3

    with closing(sqlite3.connect(FILE)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize("arguments", [*READS, *CHANGES])
@pytest.mark.parametrize(
    ("remove", "message"),
    [
        (lambda: FILE.unlink(), "there is no file counts.state; a run with state= makes it"),
        (lambda: (FILE.unlink(), FILE.mkdir()), "counts.state is no file; give the path of a state file"),
        (lambda: (FILE.unlink(), FILE.symlink_to(FILE)), "there is no file counts.state"),
    ],
)
def test_a_file_that_is_not_there_is_2(
    arguments: list[str], remove: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command; none makes it."""
    flow()
    keep({"a": 1})
    remove()
    assert main(["state", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not FILE.is_file()
