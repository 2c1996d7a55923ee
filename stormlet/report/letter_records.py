"""Dead letters as lines of JSON, from which people see the cause and a program emits the value again (law S6).

Values and origins are written by :mod:`stormlet.report.rebuilding`; everything else is for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.shortened import shown, text_of
from stormlet.report.rebuilding import CannotRebuild, portable, rebuild


class LetterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of one line."""

    time: datetime
    """The time of writing, by the wall clock."""
    component: str
    """The spout that emitted it."""
    stream: str
    value: msgspec.Raw
    value_type: str | None
    """Type expression from which the value is rebuilt; None where it cannot be, and then ``value`` is its ``repr``."""
    message_id: msgspec.Raw
    origin: msgspec.Raw
    origin_type: str | None
    attempts: int
    cause: str
    """The :class:`~stormlet.core.outcomes.FailureKind` of the last failure, by name."""
    failed_in: str | None
    failed_task: int | None
    reason: str
    exception: str | None
    held_by: tuple[str, ...]
    history: tuple[str, ...]
    """Failures of all attempts, in order, in words."""

    def failed_again(self, history: Sequence[Failure], time: datetime) -> LetterRecord:
        """Return the record of the same message after further failed attempts, at least one."""
        return msgspec.structs.replace(
            self,
            **_of_failure(history[-1]),
            time=time,
            attempts=self.attempts + len(history),
            history=(*self.history, *map(text_of, history)),
        )

    def rebuilt_value(self, records: Mapping[str, type]) -> object:
        """Return the value; raise :class:`~stormlet.report.rebuilding.CannotRebuild` where that cannot be done. For
        ``records`` see :func:`~stormlet.report.rebuilding.rebuild`."""
        return _rebuilt("value", self.value, self.value_type, records)

    def rebuilt_origin(self, records: Mapping[str, type]) -> object:
        """Return the origin; raise :class:`~stormlet.report.rebuilding.CannotRebuild` where that cannot be done."""
        return _rebuilt("origin", self.origin, self.origin_type, records)


class NoLetter(Exception):
    """A line is not a dead letter; the message gives the reason."""


def record_of(letter: DeadLetter, time: datetime) -> LetterRecord:
    """Return the record of a letter. Never raises, whatever the letter holds."""
    value, origin = portable(letter.value), portable(letter.origin)
    return LetterRecord(
        time=time,
        component=letter.component,
        stream=letter.stream,
        value=value.json,
        value_type=value.type,
        message_id=portable(letter.message_id).json,
        origin=origin.json,
        origin_type=origin.type,
        attempts=letter.attempts,
        history=tuple(text_of(each) for each in letter.history),
        **_of_failure(letter.failure),
    )


def read_record(line: bytes) -> LetterRecord:
    """Return the record of a line; raise :class:`NoLetter` for a line that is broken or not a dead letter."""
    try:
        return msgspec.json.decode(line, type=LetterRecord)
    except msgspec.ValidationError as error:
        raise NoLetter(f"it is no dead letter of this version: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoLetter(f"it is broken: {error}") from None


def _of_failure(failure: Failure) -> dict[str, Any]:
    return {
        "cause": failure.kind.name,
        "failed_in": failure.component,
        "failed_task": failure.task,
        "reason": text_of(failure.reason),
        "exception": None if failure.exception is None else shown(failure.exception),
        "held_by": failure.holders,
    }


def _rebuilt(what: str, text: msgspec.Raw, expression: str | None, records: Mapping[str, type]) -> object:
    if expression is None:
        raise CannotRebuild(f"its {what} could not be written so that it can be rebuilt")
    return rebuild(text, expression, records)
