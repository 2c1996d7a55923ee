"""Leaks: things that a test must not leave behind, and the error that names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from stormlet.errors import InvalidConfiguration, StormletError

LeakKind = Literal["inputs", "trees", "values", "errors", "tasks", "threads"]
"""Inputs that no bolt acked or failed, trees without an outcome, values that were changed after they were emitted,
exceptions for which no tuple answers, and tasks and threads that have not ended."""

AllowLeaks: TypeAlias = bool | Collection[LeakKind]
"""The kinds that a test may leave behind; True: all of them."""

K = TypeVar("K", bound=str)

MOST_LINES: Final = 20
"""The most leaks that a message names."""


class Leak(NamedTuple):
    """One thing that was left behind."""

    kind: LeakKind
    text: str


class Leaked(StormletError, AssertionError):
    """A topology under test has left something behind."""

    def __init__(self, leaks: Sequence[Leak]) -> None:
        super().__init__(leaks)
        self.leaks = leaks

    def __str__(self) -> str:
        return describe_leaks(self.leaks)


def kinds_allowed(allow_leaks: object) -> Collection[LeakKind]:
    """The kinds that these are; raises :class:`~stormlet.errors.InvalidConfiguration` naming all kinds if one of them
    is unknown."""
    return chosen_kinds("allow_leaks", allow_leaks, get_args(LeakKind))


def chosen_kinds(option: str, chosen: object, kinds: Sequence[K]) -> Collection[K]:
    """The kinds that an option has chosen; raises :class:`~stormlet.errors.InvalidConfiguration` naming all kinds if
    one of them is unknown."""
    if isinstance(chosen, bool):
        return kinds if chosen else ()
    if not isinstance(chosen, list | tuple | set | frozenset) or any(
        each not in kinds for each in cast("Collection[object]", chosen)
    ):
        raise InvalidConfiguration(
            f"{option} must be True, False or a list of {', '.join(kinds)}, not {chosen!r}"
        )
    return cast("Collection[K]", chosen)


def not_allowed(leaks: Iterable[Leak], allow_leaks: bool | Collection[str]) -> list[Leak]:
    """Those leaks that are of no kind that is allowed."""
    allowed = kinds_allowed(allow_leaks)
    return [leak for leak in leaks if leak.kind not in allowed]


def describe_leaks(leaks: Sequence[Leak]) -> str:
    """A message with a line for each of the first leaks that differ."""
    kinds = list(dict.fromkeys(leak.kind for leak in leaks))
    counts = Counter(leak.text for leak in leaks)
    lines = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"and {len(lines) - MOST_LINES} more"]
    return "\n  ".join([f"left behind (allow_leaks={kinds} allows it):", *lines])
