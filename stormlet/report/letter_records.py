"""A dead letter as one line of JSON: enough for people to see what happened, and to emit its value again (law S6).

Values and origins are written as :mod:`stormlet.report.rebuilding` says; everything else is for people.
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
    """What one line holds."""

    time: datetime
    """When it was written, by the wall clock."""
    component: str
    """The spout that emitted it."""
    stream: str
    value: msgspec.Raw
    value_type: str | None
    """What the value is rebuilt as; None where it cannot be, and then ``value`` is its ``repr``."""
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
    """Why each attempt failed, in order, in words."""

    def failed_again(self, history: Sequence[Failure], time: datetime) -> LetterRecord:
        """The same message after the attempts that failed since, of which there is at least one."""
        return msgspec.structs.replace(
            self,
            **_of_failure(history[-1]),
            time=time,
            attempts=self.attempts + len(history),
            history=(*self.history, *map(text_of, history)),
        )

    def rebuilt_value(self, records: Mapping[str, type]) -> object:
        """Raises :class:`~stormlet.report.rebuilding.CannotRebuild`; for ``records`` see
        :func:`~stormlet.report.rebuilding.rebuild`."""
        return _rebuilt("value", self.value, self.value_type, records)

    def rebuilt_origin(self, records: Mapping[str, type]) -> object:
        """Raises :class:`~stormlet.report.rebuilding.CannotRebuild`."""
        return _rebuilt("origin", self.origin, self.origin_type, records)


class NoLetter(Exception):
    """A line is no dead letter; the message says why."""


def record_of(letter: DeadLetter, time: datetime) -> LetterRecord:
    """Never raises, whatever the letter holds."""
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
    """Raises :class:`NoLetter` for a line that is broken, or of something else."""
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
