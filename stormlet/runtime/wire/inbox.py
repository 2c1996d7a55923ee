"""The bounded queue of one bolt task: a list that its consumer swaps out whole, so that a batch costs one wake-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormlet.core.tuples import Tuple


class Inbox:
    """The queue of one bolt task: tuples delivered and not yet taken.

    Appending never blocks. A producer that appends to an empty inbox must wake the consumer. A producer that has
    filled it past ``capacity`` waits for room before it goes on (law B6).
    """

    __slots__ = ("_waiting", "capacity", "items", "wake_consumer")

    def __init__(self, capacity: int, wake_consumer: Callable[[], None]) -> None:
        self.items: list[Tuple[Any]] = []
        self.capacity = capacity
        self.wake_consumer = wake_consumer
        self._waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        """True if producers must wait."""
        return len(self.items) >= self.capacity

    def call_when_room(self, wake_producer: Callable[[], None]) -> None:
        """Have the producer woken when the consumer takes what is there."""
        if wake_producer not in self._waiting:
            self._waiting.append(wake_producer)

    def call_no_more(self, wake_producer: Callable[[], None]) -> None:
        """The producer does not wait any longer."""
        if wake_producer in self._waiting:
            self._waiting.remove(wake_producer)

    def take(self) -> list[Tuple[Any]]:
        """Take the delivered tuples, in order; of more than ``capacity``, the first ``capacity``, as the bound on
        what is queued and in hand holds for both together (law B6)."""
        items = self.items
        if len(items) <= self.capacity:
            self.items = []
        else:
            items = items[: self.capacity]
            del self.items[: self.capacity]  # moves pointers, and touches none of the tuples that stay
        if self._waiting and not self.full:
            # Who asked first has just had its turn and filled the queue: it goes last, so that none starves.
            waiting, self._waiting = [*self._waiting[1:], self._waiting[0]], []
            for wake_producer in waiting:
                wake_producer()
        return items
