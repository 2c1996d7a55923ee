"""A dead letter as one line of JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.report.letter_records import LetterRecord, NoLetter, read_record, record_of
from stormlet.report.rebuilding import CannotRebuild

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONE = datetime(2026, 11, 21, 13, tzinfo=UTC)
FAILED = Failure(FailureKind.FAILED, "work", 3, "no use")
LATE = Failure(FailureKind.TIMEOUT, holders=("join",))


def letter(**changes: Any) -> DeadLetter:
    values: dict[str, Any] = {"component": "lines", "value": 7, "message_id": 1, "attempts": 2, **changes}
    return DeadLetter(**{"failure": FAILED, "history": (LATE, FAILED), **values})


def test_a_line_is_read_as_it_was_written() -> None:
    """Nothing is lost on the way."""
    record = record_of(letter(), NOON)
    again = read_record(msgspec.json.encode(record))
    assert msgspec.json.encode(again) == msgspec.json.encode(record)
    assert (again.time, again.component, again.cause, again.held_by) == (NOON, "lines", "FAILED", ())
    assert again.history == (str(LATE), str(FAILED))


def test_a_letter_that_failed_again_has_both_histories() -> None:
    """The value and what is said of the message stay; the last failure is the new one."""
    again = record_of(letter(), NOON).failed_again((FAILED, LATE), ONE)
    assert (again.time, again.attempts, again.cause, again.held_by) == (ONE, 4, "TIMEOUT", ("join",))
    assert (again.failed_in, again.reason) == (None, "")
    assert again.history == (str(LATE), str(FAILED), str(FAILED), str(LATE))
    assert again.rebuilt_value({}) == 7


@pytest.mark.parametrize("what", ["value", "origin"])
def test_what_was_only_shown_cannot_be_rebuilt(what: str) -> None:
    """A value or an origin that JSON cannot hold is there to be read by people."""
    record = record_of(letter(**{what: object()}), NOON)
    assert b"<object object at" in bytes(getattr(record, what))
    with pytest.raises(CannotRebuild, match=f"its {what} could not be written"):
        getattr(record, f"rebuilt_{what}")({})


def test_a_line_of_a_later_version_is_read() -> None:
    """Fields that are not known do no harm."""
    fields = msgspec.json.decode(msgspec.json.encode(record_of(letter(), NOON)))
    assert read_record(msgspec.json.encode(fields | {"more": 1})).component == "lines"


@pytest.mark.parametrize("missing", LetterRecord.__struct_fields__)
def test_a_line_needs_every_field(missing: str) -> None:
    """Half a letter is none."""
    fields = msgspec.json.decode(msgspec.json.encode(record_of(letter(), NOON)))
    del fields[missing]
    with pytest.raises(NoLetter, match=f"missing required field `{missing}`"):
        read_record(msgspec.json.encode(fields))


class Rude(Exception):
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")

    __str__ = __repr__


def test_what_cannot_be_shown_is_named() -> None:
    """The record of a failure is written whatever user code raised."""
    failure = Failure(FailureKind.FAILED, "split", 3, exception=Rude())
    record = record_of(letter(failure=failure, history=(failure,)), NOON)
    unshown = "<Rude, whose repr raised ValueError>"
    assert record.exception == unshown
    assert record.history == (f"failed in 'split' (task 3): {unshown}",)
