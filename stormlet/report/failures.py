"""Counts of distinct failures, so that a log has one line for each and is never flooded; the fields of its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec


def log_fields(
    topology: str, component: str | None = None, task: int | None = None, message_id: object = None
) -> dict[str, object]:
    """Return the extra fields that every log record of the engine has."""
    return {"topology": topology, "component": component, "task": task, "message_id": message_id}


Key: TypeAlias = tuple[str, str, str, str]

MOST_KINDS: Final = 100
"""Kinds of failures that are distinguished for each method of a component. Without a bound, a program that makes
exception classes at run time would fill the memory."""
OTHER_KINDS: Final = "other kinds"
"""The kind of all failures beyond that bound."""


class RepeatedFailure(msgspec.Struct, frozen=True):
    """A failure and the number of times that it has happened in all tasks of its component."""

    component: str
    task: str
    """The task it last happened in, such as ``split[0]``."""
    what: str
    """The place where it last happened: a method of the user's, or a message."""
    kind: str
    """The type of the exception, or the :class:`~stormlet.core.outcomes.FailureKind`; ``"other kinds"`` for all that
    come after the first 100 kinds of one method of the component."""
    error: str
    """The latest message of it, shortened."""
    place: str = ""
    """File and line that raised; empty where nothing was raised."""
    value: str = ""
    """The value that it last happened on, shortened."""
    message_id: object = None
    """The message that it last happened on, where that is known."""
    count: int = 1
    at: float = 0.0
    """The time of the loop when it last happened."""
    traceback: str = ""
    """The traceback of the first one, cut at its beginning if it is very long; empty where nothing was raised."""

    @property
    def key(self) -> Key:
        """The attributes that distinguish it from other failures."""
        return (self.component, self.what, self.kind, self.place)

    @property
    def is_of_other_kinds(self) -> bool:
        """True if it stands for all failures beyond the first kinds."""
        return self.kind == OTHER_KINDS


class FailureCounts:
    """All the distinct failures of one run. None is left out of the counts."""

    def __init__(self) -> None:
        self._last: dict[Key, RepeatedFailure] = {}
        self._counts: dict[Key, int] = {}
        self._unreported: dict[Key, int] = {}
        self._tracebacks: dict[Key, str] = {}
        self._kinds = Counter[tuple[str, str]]()

    def distinguished(self, failure: RepeatedFailure) -> RepeatedFailure:
        """Return the failure as it is counted: beyond the first kinds, as one of the others."""
        if failure.key in self._counts or self._kinds[failure.component, failure.what] < MOST_KINDS:
            return failure
        return msgspec.structs.replace(failure, kind=OTHER_KINDS, place="")

    def is_new(self, failure: RepeatedFailure) -> bool:
        """Return True for the first one of a kind, as it is counted."""
        return failure.key not in self._counts

    def add(self, failure: RepeatedFailure) -> bool:
        """Count one more, or as many as its ``count`` says. Return True if it is the first of its kind, which should be
        logged at once."""
        failure = self.distinguished(failure)
        key = failure.key
        is_first = key not in self._last
        self._counts[key] = self._counts.get(key, 0) + failure.count
        if is_first:
            self._kinds[failure.component, failure.what] += 1
            self._tracebacks[key] = failure.traceback
        else:
            self._unreported[key] = self._unreported.get(key, 0) + failure.count
            del self._last[key]  # so that the latest one stands at the end
        self._last[key] = failure  # after all else of it, as another thread may look
        return is_first

    def all(self) -> Sequence[RepeatedFailure]:
        """Return every distinct failure; the one that happened last stands at the end."""
        # Of a copy, as another thread than the loop's may ask, and the loop goes on meanwhile.
        return tuple(map(self._counted, tuple(self._last.values())))

    def take_unreported(self) -> Sequence[tuple[RepeatedFailure, int]]:
        """Return the failures that have happened again since the last call, each with the number of times."""
        unreported, self._unreported = self._unreported, {}
        return [(self._counted(self._last[key]), more) for key, more in unreported.items()]

    def _counted(self, last: RepeatedFailure) -> RepeatedFailure:
        key = last.key
        return msgspec.structs.replace(last, count=self._counts[key], traceback=self._tracebacks[key])
