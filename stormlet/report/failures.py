"""Failures told apart and counted, so that a log has one line for each and never a flood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

Key: TypeAlias = tuple[str, str, str, str]

MOST_KINDS: Final = 100
"""How many kinds of failures are told apart of each method of a component. Exception classes that are made at run time
would be as many kinds."""
OTHER_KINDS: Final = "other kinds"
"""The kind of all that are not told apart."""


class RepeatedFailure(msgspec.Struct, frozen=True):
    """A failure and how often it has happened, in all tasks of its component."""

    component: str
    task: str
    """The task it last happened in, such as ``split[0]``."""
    what: str
    """What it last happened in: a method of the user's, or a message."""
    kind: str
    """The type of the exception, or the :class:`~stormlet.core.outcomes.FailureKind`; ``"other kinds"`` for all that
    come after the first 100 kinds of one method of the component."""
    error: str
    """What was last said of it, shortened."""
    place: str = ""
    """File and line that raised; empty where nothing was raised."""
    value: str = ""
    """The value that it last happened on, shortened."""
    message_id: object = None
    """The message that it last happened on, where that is known."""
    count: int = 1

    @property
    def key(self) -> Key:
        """What makes it another failure than others."""
        return (self.component, self.what, self.kind, self.place)

    @property
    def is_of_other_kinds(self) -> bool:
        """Whether it stands for failures that are not told apart."""
        return self.kind == OTHER_KINDS


class FailureCounts:
    """All the distinct failures of one run. None is left out of the counts."""

    def __init__(self) -> None:
        self._last: dict[Key, RepeatedFailure] = {}
        self._counts: dict[Key, int] = {}
        self._untold: dict[Key, int] = {}
        self._kinds = Counter[tuple[str, str]]()

    def told_apart(self, failure: RepeatedFailure) -> RepeatedFailure:
        """The failure as it is counted: beyond the kinds that are told apart, as one of the others."""
        if failure.key in self._counts or self._kinds[failure.component, failure.what] < MOST_KINDS:
            return failure
        return msgspec.structs.replace(failure, kind=OTHER_KINDS, place="")

    def add(self, failure: RepeatedFailure) -> bool:
        """Count one more; whether it is the first of its kind, which should be told at once."""
        failure = self.told_apart(failure)
        key = failure.key
        is_first = self._last.pop(key, None) is None
        self._last[key] = failure
        self._counts[key] = self._counts.get(key, 0) + 1
        if is_first:
            self._kinds[failure.component, failure.what] += 1
        else:
            self._untold[key] = self._untold.get(key, 0) + 1
        return is_first

    def all(self) -> Sequence[RepeatedFailure]:
        """Every distinct failure; the one that happened last stands at the end."""
        return tuple(self._counted(key) for key in self._last)

    def take_untold(self) -> Sequence[tuple[RepeatedFailure, int]]:
        """What has happened again, and how often since this was last asked."""
        untold, self._untold = self._untold, {}
        return [(self._counted(key), more) for key, more in untold.items()]

    def _counted(self, key: Key) -> RepeatedFailure:
        return msgspec.structs.replace(self._last[key], count=self._counts[key])
