"""The account of one partition of a source that can only say "all up to here" (law R1).

Theory of operation
-------------------
Deliveries get numbers in the order in which they came. A number is not a position: a topic has gaps where it was
compacted or a transaction was aborted, so that the one after 17 may be 23, and nobody can wait for 18. The *front* is
the position of the last delivery before which all are settled, and nothing else may be committed.

One delivery that is never settled holds the front where it is, while others go on behind it. So what lies between the
front and the last delivery is bounded: a partition that is full must be paused until half of it is done.

A broker does not refuse what somebody says of a partition that has another owner meanwhile. So the receipt of a
delivery is this object with a number: once the partition is revoked, nothing that is settled changes anything.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec


class Front(msgspec.Struct, frozen=True):
    """The end of what may be committed."""

    position: Any
    """The position of the last delivery before which, itself included, all are settled."""
    number: int
    """Its number."""


class Prefix:
    """One partition, for as long as it is assigned to this source. Positions are the connector's own affair."""

    __slots__ = ("_committed", "_done", "_first", "_front", "_most", "_order", "_revoked", "name")

    def __init__(self, name: str, most: int = 10_000) -> None:
        """``most`` deliveries may lie between the front and the last one. Raises :class:`ValueError` below 1."""
        if most < 1:
            raise ValueError(f"partition {name!r} must take at least 1 delivery, not {most}")
        self.name = name
        """The name of the partition, such as ``events[2]``."""
        self._most = most
        self._order: deque[Any] = deque()
        self._done = set[int]()
        self._first = 0
        self._front: Any = None
        self._committed = 0
        self._revoked = False

    def add(self, position: object) -> int:
        """Note the next delivery; return its number. Raises :class:`ValueError` for a revoked partition."""
        if self._revoked:
            raise ValueError(f"partition {self.name!r} is revoked and takes no delivery")
        self._order.append(position)
        return self._first + len(self._order) - 1

    def settle(self, number: int) -> bool:
        """Note that this delivery is settled. Returns False if that changes nothing: it was settled before, or the
        partition is revoked."""
        first, order, done = self._first, self._order, self._done
        if self._revoked or not first <= number < first + len(order) or number in done:
            return False
        if number != first:
            done.add(number)
            return True
        self._front = order.popleft()
        first += 1
        while done and first in done:
            done.remove(first)
            self._front = order.popleft()
            first += 1
        self._first = first
        return True

    def to_commit(self) -> Front | None:
        """Return the front; None if there is nothing to commit: no more than was committed, or it is revoked."""
        if self._revoked or self._front is None or self._first == self._committed:
            return None
        return Front(self._front, self._first - 1)

    def committed(self, front: Front) -> int:
        """Note that the broker has this front; return the number of deliveries that it did not know to be settled. A
        commit that failed is not noted, and so is due again."""
        new = max(0, front.number + 1 - self._committed)
        self._committed += new
        return new

    def revoke(self) -> None:
        """Nothing that is settled from now on changes anything (law R2)."""
        self._revoked = True

    @property
    def is_revoked(self) -> bool:
        """True once another may own the partition."""
        return self._revoked

    @property
    def uncommitted(self) -> int:
        """Deliveries behind the front, settled or not."""
        return len(self._order)

    @property
    def open(self) -> int:
        """Deliveries that are not settled."""
        return len(self._order) - len(self._done)

    @property
    def is_full(self) -> bool:
        """True if no more deliveries may be asked for."""
        return len(self._order) >= self._most

    @property
    def has_room(self) -> bool:
        """True if a partition that was paused, because it was full, may be resumed."""
        return len(self._order) <= self._most // 2
