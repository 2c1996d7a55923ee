"""Bolts that fail until they have failed often or long enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tests.helpers import now


def failing_first(times: int) -> Callable[[object], None]:
    """A bolt that fails the first executions of each value."""
    seen = defaultdict[object, int](int)

    def bolt(value: object) -> None:
        seen[value] += 1
        if seen[value] <= times:
            raise ValueError(value)

    return bolt


def fail_until(moment: float, log: list[float]) -> Callable[[object], None]:
    """A bolt that fails everything until some time."""

    def bolt(value: object) -> None:
        log.append(now())
        if now() < moment:
            raise ValueError(value)

    return bolt
