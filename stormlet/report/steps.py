"""Work in steps, for those who must not hold the event loop until all of it is done.

A generator that yields after each component, and returns the result at its end. Whoever has the time runs it at once;
whoever shares the loop with others lets them run now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TypeAlias, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Steps: TypeAlias = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """Take all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def each_of(items: Iterable[tuple[K, V]], make: Callable[[K, V], T]) -> Steps[Mapping[K, T]]:
    """Make something of each item, a step for each."""
    made: dict[K, T] = {}
    for key, value in items:
        made[key] = make(key, value)
        yield
    return made
