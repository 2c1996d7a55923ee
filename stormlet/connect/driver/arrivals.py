"""What a session has delivered becomes messages that are held: named, numbered and decoded (law R1, R3, R6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from stormlet.connect.driver.held import Held, Unreadable
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.status import Status
from stormlet.connect.driver.traced import traceparent_of
from stormlet.connect.session import Delivery
from stormlet.core.settlement.prefix import Prefix
from stormlet.model.components import TaskContext
from stormlet.runtime.usercode import as_exception

LOOKED_AT = 5
"""Deliveries between two looks at the clock."""


class TooLarge(ValueError):
    """A body has more bytes than is allowed."""


class Arrivals:
    """Takes in the deliveries of one source task."""

    def __init__(
        self,
        context: TaskContext,
        *,
        decode: Callable[[Delivery], Any],
        settings: SourceSettings,
        holding: Holding,
        partitions: Partitions,
        status: Status,
        unnamed: Iterator[int],
    ) -> None:
        """``unnamed`` are the numbers of messages without a name."""
        self._decode = decode
        self._ordered_by = settings.ordered_by
        self._most_bytes = settings.max_message_bytes
        self._holding = holding
        self._receipts = holding.receipts
        self._partitions = partitions
        self._status = status
        self._unnamed = f"{context.component}[{context.task_index}]#"
        self._numbers = unnamed
        self._most_attempts = context.config.max_attempts
        self._is_traced = context.is_traced
        self._clock = asyncio.get_running_loop().time

    def take(self, deliveries: Sequence[Delivery], now: float, until: float) -> int:
        """Take messages until this time; return how many."""
        clock, holding = self._clock, self._holding
        last: Prefix | None = None
        is_given_away = False
        for number, delivery in enumerate(deliveries):
            if number % LOOKED_AT == 0 and number and clock() >= until:
                return number
            place = delivery.place
            if place is not last:  # nothing is awaited here, so that none is given away meanwhile
                last, is_given_away = place, place is not None and self._partitions.is_given_away(place)
            if is_given_away:
                self._status.stale += 1
            elif not holding.add(self._held(delivery, place, now)):
                self._status.redelivered += delivery.deliveries <= 1
        return len(deliveries)

    def _held(self, delivery: Delivery, place: Prefix | None, now: float) -> Held:
        """Make the message of a delivery: numbered in its partition, named, and decoded, or with the error of that."""
        body, name, attempt = delivery.body, delivery.name, delivery.deliveries
        key: Hashable = None
        try:
            if len(body) > self._most_bytes:
                raise _too_large(len(body), self._most_bytes)
            value = self._decode(delivery)
            if self._ordered_by is not None:
                key = self._ordered_by(value)
                self._holding.buffer.check_key(key)
        except (Exception, asyncio.CancelledError) as error:
            value, key = Unreadable(body, as_exception(error)), None
        number = -1 if place is None else place.add(delivery.position)
        if attempt != 1:
            attempt = self._attempt(attempt)
        id = self._id_of(name, number) if name else f"{self._unnamed}{next(self._numbers)}"
        traceparent = traceparent_of(delivery.headers) if self._is_traced else ""
        return Held(
            id,
            delivery.receipt,
            place,
            number,
            now,
            value,
            name or None,
            attempt,
            len(body),
            key,
            traceparent,
        )

    def _attempt(self, deliveries: int) -> int:
        """Return the attempt that a delivery is; some brokers do not count, and others may count too much."""
        self._status.redelivered += deliveries > 1
        return max(1, min(deliveries, self._most_attempts))

    def _id_of(self, name: str, number: int) -> str:
        receipts = self._receipts
        id = receipts.id_of(name)
        # A partition settles each of its deliveries; only a message with a receipt of its own adopts another one.
        return f"{id}+{number}" if number >= 0 and id in receipts else id


def _too_large(size: int, most_bytes: int) -> TooLarge:
    return TooLarge(f"the body has {size:,} bytes, and max_message_bytes is {most_bytes:,}")
