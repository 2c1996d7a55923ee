"""A set that remembers the last things only, so that it never grows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Recent(Generic[T]):
    """At least the last ``size`` things that were added, and at most twice as many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._newer = set[T]()
        self._older = set[T]()

    def add(self, thing: T) -> None:
        """Remember it."""
        self._newer.add(thing)
        if len(self._newer) > self._size:
            self._older, self._newer = self._newer, set[T]()

    def discard(self, thing: T) -> None:
        """Forget it, if it is remembered."""
        self._newer.discard(thing)
        self._older.discard(thing)

    def clear(self) -> None:
        """Forget everything."""
        self._newer.clear()
        self._older.clear()

    def __contains__(self, thing: object) -> bool:
        return thing in self._newer or thing in self._older
