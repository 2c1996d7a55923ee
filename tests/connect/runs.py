"""One run of a source at a twin, with its bolt, and what it must hold whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from stormlet import DeadLetter, FailureKind, Running, Topology
from stormlet.testing.brokers import PROFILES, Broker, TwinSource
from stormlet.testing.brokers.logs import Log

KINDS = ["rabbitmq-4.0", "jetstream", "kafka"]
"""A profile for each kind of settlement: each, lease, prefix."""
ALL = list(PROFILES)


class Consumer:
    """A topology that processes what a queue or topic has."""

    def __init__(
        self,
        broker: Broker,
        work: Callable[[bytes], Any],
        *,
        source: TwinSource[bytes] | None = None,
        **options: Any,
    ) -> None:
        self.broker = broker
        self.processed = Counter[bytes]()
        self.letters: list[DeadLetter] = []
        self.place = broker.place("orders")
        own = {
            name: options.pop(name)
            for name in list(options)
            if name in ("settings", "parallelism", "concurrency")
        }
        self.source = source or TwinSource[bytes](broker, "orders", as_=bytes, **own.get("settings", {}))
        configuration: dict[str, Any] = {"max_spout_pending": 20, "replay_delay": 0.1, **options}
        self.topology = Topology("consumer", **configuration)
        stream = self.topology.spout("orders", self.source, parallelism=own.get("parallelism", 1))
        self._work = work
        self.topology.bolt("work", self.work, stream.shuffle(), concurrency=own.get("concurrency", 50))

    async def work(self, body: bytes) -> None:
        await self._work(body)
        self.processed[as_bytes(body)] += 1

    def run(self) -> Any:
        """``async with consumer.run() as running``."""
        return self.topology.run(dead_letters=self.letters.append)

    def publish(self, count: int) -> list[bytes]:
        """So many messages."""
        bodies = [b"%04d" % number for number in range(count)]
        for body in bodies:
            self.place.publish(body)
        return bodies

    @property
    def buried(self) -> list[bytes]:
        """Dead letters, of the run and of the broker."""
        own = [as_bytes(each.value) for each in self.letters if each.failure.kind is not FailureKind.SHUTDOWN]
        brokers = [] if isinstance(self.place, Log) else [body for body, _ in self.place.dead]
        return sorted([*own, *brokers])

    async def until_empty(self, seconds: float = 600.0) -> None:
        """Wait until the broker has nothing left."""
        async with asyncio.timeout(seconds):
            while self.place.left:  # noqa: ASYNC110 - it is the broker that is watched
                await asyncio.sleep(0.5)

    def check(self, bodies: list[bytes]) -> None:
        """Everything is processed or a dead letter or left, and nobody did what none may do."""
        there = set(self.processed) | set(self.buried) | set(self.place.left)
        assert sorted(set(bodies) - there) == []
        assert self.broker.violations == []


def as_bytes(value: object) -> bytes:
    """Bytes as they are, and what was decoded as its ``repr``."""
    return value if isinstance(value, bytes) else repr(value).encode()


def connection(running: Running, task: str = "orders[0]") -> Any:
    """The connection of a task, from the health."""
    return running.health().connections[task]


async def quick(body: bytes) -> None:
    """Take a moment."""
    await asyncio.sleep(0.01)


def balanced(running: Running) -> bool:
    """The law of conservation."""
    spouts = [each for each in running.statistics().components.values() if each.messages]
    return all(
        each.messages
        == each.acked + each.given_back + each.dead_letters + each.withdrawn + each.left_over + each.pending
        for each in spouts
    )
