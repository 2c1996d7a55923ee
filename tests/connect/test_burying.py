"""Dead letters of bodies that cannot be decoded, while partitions and connections come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stormlet import DeadLetter, Topology, TopologyCrashed
from stormlet.connect.address import Address
from stormlet.connect.session import Delivery, SourceContext
from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker
from tests.connect.price import Listed, ListSession
from tests.connect.runs import Consumer, balanced, connection, quick

pytestmark = pytest.mark.simulated_time

LARGE = 50
"""Bytes that are too many."""


class Burying(Consumer):
    """A consumer whose dead letters take a second to be written."""

    def __init__(self, broker: Broker, **options: Any) -> None:
        settings = {"max_message_bytes": LARGE, **options.pop("settings", {})}
        super().__init__(broker, options.pop("work", quick), settings=settings, **options)

    def run(self) -> Any:
        return self.topology.run(dead_letters=self._write)

    async def _write(self, letter: DeadLetter) -> None:
        await asyncio.sleep(1.0)
        self.letters.append(letter)

    def publish_unreadable(self, count: int) -> list[bytes]:
        """So many messages that are too large."""
        bodies = [b"%04d" % number * LARGE for number in range(count)]
        for body in bodies:
            self.place.publish(body)
        return bodies


async def test_what_is_taken_away_is_buried_by_its_next_owner_alone(sim: Simulation) -> None:
    """But for the letter that is being written, which nobody can take back, and one that is not committed yet."""
    consumer = Burying(Broker("kafka"), parallelism=2)
    bodies = consumer.publish_unreadable(16)
    async with consumer.run():
        await sim.advance(seconds=1.5)
        consumer.broker.take_away()
        await consumer.until_empty()
    assert set(consumer.buried) == set(bodies)
    assert len(consumer.buried) - len(bodies) <= 2 * 2  # of both tasks


async def test_a_partition_is_given_away_when_its_letters_are_written(sim: Simulation) -> None:
    """As when its trees are done; so none is written twice."""
    consumer = Burying(Broker("kafka"), parallelism=2)
    bodies = consumer.publish_unreadable(16)
    async with consumer.run():
        for _ in range(4):
            await sim.advance(seconds=1.5)
            await consumer.broker.rebalance()
        await consumer.until_empty()
    assert consumer.buried == bodies


@pytest.mark.parametrize("profile", ["redis-7", "sqs"])
async def test_a_lost_connection_leaves_no_letter_unwritten(profile: str, sim: Simulation) -> None:
    """Where receipts survive it, each is written once, and nothing waits until its lease is given up."""
    consumer = Burying(Broker(profile))
    bodies = consumer.publish_unreadable(3)
    async with consumer.run() as running:
        await sim.advance(seconds=0.5)
        consumer.broker.cut()
        await consumer.until_empty(60)
        assert balanced(running)
    assert consumer.buried == bodies


async def test_what_is_behind_messages_that_nobody_has_begun_is_left_with_them(sim: Simulation) -> None:
    """They come again, and it with them, to whoever buries it."""
    gate, broker = asyncio.Event(), Broker("kafka")
    first = Burying(broker, work=lambda _: gate.wait(), concurrency=1, queue_capacity=2)
    bodies, unreadable = first.publish(12), first.publish_unreadable(4)
    async with first.run() as running:
        await sim.advance(seconds=20)
        assert connection(running).buffered
        asyncio.get_running_loop().call_later(1, gate.set)
    second = Burying(broker)
    async with second.run():
        await second.until_empty()
    assert first.processed + second.processed == dict.fromkeys(bodies, 1)
    assert sorted(first.buried + second.buried) == unreadable


async def test_many_that_cannot_be_read_are_no_more_than_may_be_held(sim: Simulation) -> None:
    """They count among what is pending, and messages behind them go on meanwhile (law R5)."""
    consumer = Burying(Broker("kafka"), work=lambda _: asyncio.sleep(0.9), max_spout_pending=5)
    bodies = consumer.publish_unreadable(3) + consumer.publish(20)
    async with consumer.run() as running:
        await sim.advance(seconds=0.5)
        assert connection(running).received == 5
        await consumer.until_empty()
    assert sorted([*consumer.buried, *consumer.processed]) == sorted(bodies)


async def test_the_end_waits_for_letters_that_are_under_way(sim: Simulation) -> None:
    """As it does for trees, and the broker knows of them."""
    consumer = Burying(Broker("redis-7"))
    bodies = consumer.publish_unreadable(3)
    async with consumer.run():
        await sim.advance(seconds=0.5)
    assert (consumer.buried, consumer.place.left) == (bodies, [])


async def test_an_error_of_the_letters_is_no_lost_connection(sim: Simulation) -> None:
    """A disk that is full: the task dies of it, and says so, and connects no more than its restarts do."""
    consumer = Burying(Broker("kafka"), max_restarts=1)
    consumer.publish_unreadable(1)

    def write(letter: DeadLetter) -> None:
        raise OSError("the disk is full")

    with pytest.raises(TopologyCrashed, match="the disk is full"):
        async with consumer.topology.run(dead_letters=write):
            await sim.advance(seconds=100)
    assert consumer.broker.connects == 2


class Resumed(Listed):
    """Three messages, the second of which is too large, for a topology with ``state=``."""

    resumable = True  # type: ignore[assignment]

    async def begin(self, address: Address, context: SourceContext) -> ResumedSession:
        return ResumedSession("prefix", self._count, context)


class ResumedSession(ListSession):
    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        for each in (deliveries := await super().receive(most, within)):
            each.body = b"1" * LARGE * 2 if each.position == 1 else b"%d" % each.position
        return deliveries


async def test_with_state_nothing_behind_a_letter_is_begun_before_it_is_written(
    sim: Simulation, tmp_path: Path
) -> None:
    """The state would go on behind both, and a process that is killed meanwhile would have lost it."""
    seen, written = list[bytes](), asyncio.Event()
    topology: Any = Topology("durable", state=str(tmp_path / "state"))
    read = topology.spout("read", Resumed("prefix", 3, max_message_bytes=LARGE), outputs=bytes)
    topology.bolt("see", seen.append, read.shuffle())
    async with topology.run(dead_letters=lambda _: written.wait()) as running:
        await sim.advance(seconds=10)
        assert seen == [b"0"]
        written.set()
        await running.finished()
    assert seen == [b"0", b"2"]
