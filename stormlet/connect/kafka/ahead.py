"""Messages that the thread of a consumer has read, and that nobody has asked for yet.

The thread gets the interpreter's lock only every few milliseconds while the loop is busy. So whoever asked it for each
batch would wait for that every time; instead it reads ahead, and the loop takes what is there.

The thread only adds, and the loop only takes: there is no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

from stormlet.connect.kafka.partitions import Place
from stormlet.connect.session import Delivery

AHEAD: Final = 1000
"""Messages that are read by one call, while no more than so many are left."""
AHEAD_BYTES: Final = 8 * 2**20
"""Bytes of these, by the mean size of the last ones."""


class Ahead:
    """Messages that are ready, by partition in the order of their positions."""

    def __init__(self) -> None:
        self._batches = deque[Sequence[Delivery]]()
        self._added = 0
        self._taken = 0
        self._most = AHEAD
        self._aside: dict[Place, list[Delivery]] = {}

    def __len__(self) -> int:
        """Return how many there are; less than that may be taken, as partitions may be paused."""
        return self._added - self._taken

    @property
    def most(self) -> int:
        """The messages of the next call."""
        return self._most

    @property
    def has_room(self) -> bool:
        """True if more are to be read."""
        return self._added - self._taken <= self._most

    # What the thread calls.

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """These were read."""
        size = sum(len(delivery.body) for delivery in deliveries)
        self._most = max(1, min(AHEAD, AHEAD_BYTES * len(deliveries) // max(1, size)))
        self._added += len(deliveries)
        self._batches.append(deliveries)

    # What the loop calls.

    def take(self, most: int) -> Sequence[Delivery]:
        """Return up to so many, none of them of a partition that is paused."""
        while self._batches:
            batch = self._batches.popleft()
            if len(batch) > most:
                self._batches.appendleft(batch[most:])
                batch = batch[:most]
            self._taken += len(batch)
            if self._aside:
                batch = [delivery for delivery in batch if not self._is_paused(delivery)]
            if batch:
                return batch
        return []

    def _is_paused(self, delivery: Delivery) -> bool:
        """Put a message aside if its partition is paused."""
        kept = None if delivery.place is None else self._aside.get(delivery.place)
        if kept is not None:
            kept.append(delivery)
        return kept is not None

    def pause(self, places: Collection[Place]) -> None:
        """Put aside what there is of these partitions."""
        for place in places:
            self._aside.setdefault(place, [])

    def resume(self, places: Collection[Place]) -> None:
        """Bring it back, before all that was read later."""
        for place in places:
            kept = self._aside.pop(place, [])
            if kept:
                self._taken -= len(kept)
                self._batches.appendleft(kept)

    def forget(self, places: Collection[Place]) -> None:
        """These partitions have gone."""
        for place in places:
            self._aside.pop(place, None)
