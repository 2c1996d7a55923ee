"""A broker that outlives those who consume from it, and gives again what it has no ack for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Generic, TypeVar, cast

from stormlet import EndOfStream, Failure, Spout, SpoutCollector

T = TypeVar("T")


class Broker(Generic[T]):
    """Messages by number, until they are acked. Each is with one consumer at a time."""

    def __init__(self, messages: Sequence[tuple[int, T]]) -> None:
        self.left = dict(messages)
        self._holders: dict[int, object] = {}

    def take(self, consumer: object) -> tuple[int, T] | None:
        """A message for this consumer, if there is one."""
        found = next((each for each in self.left.items() if each[0] not in self._holders), None)
        if found is not None:
            self._holders[found[0]] = consumer
        return found

    def ack(self, number: int, consumer: object) -> None:
        """Forget a message. Raises :class:`ConnectionError` for one that this consumer does not have any more."""
        if self._holders.get(number) is not consumer:
            raise ConnectionError("it was given to somebody else")
        del self.left[number], self._holders[number]

    def lose(self, consumer: object = None) -> None:
        """Queue again what this consumer has; without one, what any has."""
        self._holders = {
            number: each
            for number, each in self._holders.items()
            if consumer is not None and each is not consumer
        }

    def expire(self, random: Random) -> None:
        """Queue one of them again, as if its consumer had taken too long."""
        if self._holders:
            del self._holders[random.choice(list(self._holders))]


class Consumer(Spout[T]):
    """Gives what a broker has. It dies now and then, and with it what it could ack; an ack raises before the broker has
    it, or after."""

    redelivers = True

    def __init__(self, broker: Broker[T], random: Random, is_over: Callable[[], bool]) -> None:
        """``is_over`` is true once the process is dead: what runs afterwards reaches no broker."""
        self._broker = broker
        self._random = random
        self._is_over = is_over
        self._given: dict[int, None] = {}

    async def next_tuple(self, out: SpoutCollector[T]) -> None:
        await asyncio.sleep(self._random.choice([0, 0, 0, 0.001, 0.02]))
        if self._random.random() < 0.03:
            raise ConnectionError("the connection is lost")
        if self._random.random() < 0.1:
            self._broker.expire(self._random)
        found = self._broker.take(self)
        if found is None:
            raise EndOfStream
        self._given[found[0]] = None
        out.emit(found[1], message_id=found[0])

    async def ack(self, message_id: object) -> None:
        number = cast("int", message_id)
        assert number in self._given, "an ack of what another instance has given"
        await asyncio.sleep(self._random.choice([0, 0, 0, 0.001]))
        if self._random.random() < 0.03:
            raise ConnectionError("the broker has not had it")
        if self._is_over():
            return
        self._broker.ack(number, self)
        if self._random.random() < 0.03:
            raise ConnectionError("the broker has had it")

    async def fail(self, message_id: object, failure: Failure) -> None:
        await self.ack(message_id)

    def close(self) -> None:
        if not self._is_over():
            self._broker.lose(self)
