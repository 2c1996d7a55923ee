"""Files of dead letters."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormlet import (
    DeadLetter,
    Failure,
    FailureKind,
    InvalidConfiguration,
    StormletError,
    Topology,
    TopologyCrashed,
)
from stormlet.report.letter_records import LetterRecord, NoLetter
from stormlet.runtime.dead_letters import LetterFile, read_lines
from tests.helpers import run_to_end


class Unspeakable(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError

    def __repr__(self) -> str:
        raise ValueError


def letter(value: object = 1, **changes: Any) -> DeadLetter:
    failure = Failure(FailureKind.FAILED, "split", 4, "no use", ZeroDivisionError("x"))
    values: dict[str, Any] = {"origin": ("topic", 7), "history": (failure,), "stream": "errors", **changes}
    return DeadLetter("lines", value, 9, 2, values.pop("failure", failure), **values)


def records(path: Path) -> list[LetterRecord]:
    return [line.record() for line in read_lines(path)]


def test_a_line_says_all_that_the_letter_says(tmp_path: Path) -> None:
    """Spout, stream, value, id, origin, attempts, and why each attempt failed."""
    path = tmp_path / "dead.jsonl"
    LetterFile(path).write(letter({"a": 1}))
    (line,) = path.read_text("utf-8").splitlines()
    said = json.loads(line)
    assert said.pop("time").endswith("Z")
    assert said == {
        "component": "lines",
        "stream": "errors",
        "value": {"a": 1},
        "value_type": "dict",
        "message_id": 9,
        "origin": ["topic", 7],
        "origin_type": "tuple",
        "attempts": 2,
        "cause": "FAILED",
        "failed_in": "split",
        "failed_task": 4,
        "reason": "no use",
        "exception": "ZeroDivisionError('x')",
        "held_by": [],
        "history": ["failed in 'split' (task 4): ZeroDivisionError('x')"],
    }


def test_value_and_origin_come_back(tmp_path: Path) -> None:
    """What was written is rebuilt."""
    LetterFile(tmp_path / "dead.jsonl").write(letter((1, b"\x00")))
    (record,) = records(tmp_path / "dead.jsonl")
    assert (record.rebuilt_value({}), record.rebuilt_origin({})) == ((1, b"\x00"), ("topic", 7))


@pytest.mark.parametrize(
    "changes",
    [
        {"value": object()},
        {"value": "x" * 10_000_000},
        {"value": "line\nbreak\u2028\x85"},
        {"origin": float("nan")},
        {"failure": Failure(FailureKind.FAILED, "split", 4, "\ud800", Unspeakable())},
    ],
    ids=["object", "huge", "line breaks", "nan", "exception"],
)
def test_every_letter_is_one_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Whatever a value or an exception is, it neither breaks the line nor the writer."""
    LetterFile(tmp_path / "dead.jsonl").write(letter(**changes))
    assert (tmp_path / "dead.jsonl").read_bytes().count(b"\n") == 1
    assert [each.component for each in records(tmp_path / "dead.jsonl")] == ["lines"]


def test_a_file_may_be_moved_away(tmp_path: Path) -> None:
    """After logrotate has renamed the file, the next letter begins a new one."""
    path = tmp_path / "dead.jsonl"
    file = LetterFile(path)
    file.write(letter(1))
    path.rename(tmp_path / "dead.jsonl.1")
    file.write(letter(2))
    assert [bytes(each.value) for each in records(tmp_path / "dead.jsonl.1")] == [b"1"]
    assert [bytes(each.value) for each in records(path)] == [b"2"]


def test_the_current_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is meant from where the run began."""
    monkeypatch.chdir(tmp_path)
    file = LetterFile(Path("dead.jsonl"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    file.write(letter())
    assert len(records(tmp_path / "dead.jsonl")) == 1


@pytest.mark.parametrize(("before", "broken"), [(b"", 0), (b"old\n", 1), (b'{"component": "li', 1)])
def test_a_line_that_was_not_finished_is_ended(tmp_path: Path, before: bytes, broken: int) -> None:
    """What a killed process left of a line does not spoil the next one."""
    path = tmp_path / "dead.jsonl"
    path.write_bytes(before)
    LetterFile(path).write(letter())
    *lines, last = read_lines(path)
    assert len(lines) == broken
    assert last.record().component == "lines"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"component": "li', "it is broken: Input data was truncated"),
        (b"\xff\xfe", "it is broken"),
        (b"42", "it is no dead letter of this version: Expected `object`, got `int`"),
        (b'{"component": "lines"}', "missing required field `time`"),
        (b"[" * 100_000, "it is broken|no dead letter"),
    ],
)
def test_a_line_that_is_no_letter_says_why(tmp_path: Path, text: bytes, reason: str) -> None:
    """Truncated, foreign and older lines are told from letters."""
    (tmp_path / "dead.jsonl").write_bytes(b"\n \n" + text + b"\n")
    (line,) = read_lines(tmp_path / "dead.jsonl")
    assert line.number == 3
    with pytest.raises(NoLetter, match=reason):
        line.record()


def test_what_is_appended_meanwhile_is_left_out(tmp_path: Path) -> None:
    """With a size, only the lines that were there when the file had it."""
    path = tmp_path / "dead.jsonl"
    path.write_bytes(b"1\n2\n")
    assert [line.text for line in read_lines(path, size=2)] == [b"1"]


def test_letters_can_be_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sync for all letters so far; a letter alone does not wait for the device."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    file = LetterFile(tmp_path / "dead.jsonl")
    file.write(letter())
    assert synced == []
    file.sync()
    assert synced == [(tmp_path / "dead.jsonl").stat().st_ino]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.simulated_time
async def test_a_full_disk_is_a_crash_that_names_the_file() -> None:
    """A letter that cannot be written is not released silently."""

    def fail(value: int) -> None:
        raise ZeroDivisionError

    topology = Topology("full", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", [1]).shuffle())
    with pytest.raises(
        TopologyCrashed, match="/dev/full cannot be written: No space left on device"
    ) as caught:
        await run_to_end(topology, dead_letters="/dev/full")
    assert type(caught.value.__cause__) is StormletError


def test_a_pipe_takes_letters(tmp_path: Path) -> None:
    """What has no last line can be appended to."""
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend((tmp_path / "pipe").read_bytes().splitlines()))
    reader.start()
    with (tmp_path / "pipe").open("ab"):
        LetterFile(tmp_path / "pipe").write(letter())
    reader.join()
    assert len(read) == 1


def yielding(letter: object) -> Iterator[object]:
    yield letter


async def yielding_later(letter: object) -> AsyncIterator[object]:
    yield letter


class Yielding:
    def __call__(self, letter: object) -> Iterator[object]:
        yield letter


@pytest.mark.simulated_time
@pytest.mark.parametrize("sink", [yielding, yielding_later, partial(yielding), Yielding()])
async def test_a_function_that_yields_takes_no_dead_letters(sink: Any) -> None:
    """A call of it does nothing, and each letter would be lost."""
    topology = Topology("lost")
    topology.spout("numbers", [1])
    with pytest.raises(
        InvalidConfiguration, match="yields, so that nothing of it would run; let it return when"
    ):
        await run_to_end(topology, dead_letters=sink)


@pytest.mark.simulated_time
async def test_dead_letters_go_to_a_callable_or_a_file() -> None:
    """Anything else is refused before the topology starts."""
    topology = Topology("lost")
    topology.spout("numbers", [1])
    with pytest.raises(
        InvalidConfiguration, match="dead_letters=7 is neither a callable nor the path of a file"
    ):
        await run_to_end(topology, dead_letters=7)
