"""One message of each key under way at a time, for sources with ``ordered_by=`` (law R7).

A replay comes later than the messages behind it. Where the order within a key matters, those must wait until the one
before has its final outcome.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class KeyOrder(Generic[T]):
    """Messages that wait for those before them."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[T]] = {}

    def __len__(self) -> int:
        """Return the number of messages that wait."""
        return sum(map(len, self._waiting.values()))

    def is_under_way(self, key: Hashable) -> bool:
        """Return True if a message of this key is under way. Raises what the hash of the key or its equality raises."""
        return key in self._waiting

    def admit(self, key: Hashable, message: T) -> bool:
        """Return True if the message may go on now, and so is under way; else it waits."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            return True
        waiting.append(message)
        return False

    def done(self, key: Hashable) -> T | None:
        """The message of this key that was under way is so no more; return the next one, which is from now on."""
        waiting = self._waiting.get(key)
        if waiting:
            return waiting.popleft()
        self._waiting.pop(key, None)
        return None

    def drop(self, gone: Callable[[T], bool]) -> list[T]:
        """Take out the messages that wait and are gone; return them."""
        dropped: list[T] = []
        for key, waiting in self._waiting.items():
            dropped += [each for each in waiting if gone(each)]
            self._waiting[key] = deque(each for each in waiting if not gone(each))
        return dropped
