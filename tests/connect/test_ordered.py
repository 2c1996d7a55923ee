"""Keys that share a partition: what is done behind messages that wait for others of their key (law R2, R7)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from functools import partial
from typing import Any

import pytest

from stormlet import Collector, InvalidTopology, KeyedBolt, Topology, Tuple, Value
from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker, TwinSource
from tests.connect.runs import KINDS, Consumer
from tests.helpers import now

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]

SLOW = 5
"""Every so many messages have a key whose trees take long; the others have one each."""


def key_of(body: bytes) -> int:
    """Return a key that many have, or one of its own."""
    return -1 if int(body) % SLOW == 0 else int(body)


class Ordered:
    """A topology that reads one partition, and what it has done."""

    def __init__(self, **options: int) -> None:
        self.broker = Broker("kafka")
        for number in range(100):
            self.broker.topic("orders").publish(b"%d" % number, "one partition")
        self.done = Counter[bytes]()
        self.topology = Topology("ordered", max_spout_pending=50)
        source = TwinSource(self.broker, "orders", as_=bytes, ordered_by=key_of, **options)
        orders = self.topology.spout("orders", source, parallelism=2)
        self.topology.bolt("work", self._work, orders.shuffle(), concurrency=50)

    async def _work(self, body: bytes) -> None:
        await asyncio.sleep(0.5 if key_of(body) == -1 else 0.01)
        self.done[body] += 1

    @property
    def doubled(self) -> int:
        """Messages that are done and that the broker does not know to be done."""
        return len(set(self.broker.topic("orders").left) & set(self.done))


async def test_a_partition_that_is_given_away_is_done_up_to_what_was_begun(sim: Simulation) -> None:
    """Messages that wait for their key are done first, if others behind them have been begun."""
    ordered = Ordered()
    async with ordered.topology.run():
        await sim.advance(seconds=2.2)
        assert ordered.doubled > 20
        await ordered.broker.rebalance()
        await sim.advance(seconds=60)
    assert ordered.done == {b"%d" % number: 1 for number in range(100)}


@pytest.mark.parametrize("end", ["a stop", "a lost connection", "a pause", "a pause before"])
async def test_a_partition_that_is_given_away_is_not_waited_for_in_vain(sim: Simulation, end: str) -> None:
    """What waits for its key is not begun any more when something else comes first."""
    ordered, began = Ordered(), 0.0
    async with ordered.topology.run() as running:
        await sim.advance(seconds=2.2)
        if end == "a pause before":
            running.deactivate()
            await sim.advance(seconds=0.1)
        began, given = now(), asyncio.create_task(ordered.broker.rebalance())
        await sim.advance(seconds=0.6)
        if end == "a lost connection":
            ordered.broker.restart(0.5)
        elif end == "a pause":
            running.deactivate()
        if end != "a stop":
            await given
            assert now() < began + 2
            running.activate()
    await given
    assert now() < began + 2


async def test_a_stop_doubles_what_is_done_behind_a_message_that_waits(sim: Simulation) -> None:
    """A topology that ends begins nothing: at most ``max_uncommitted`` of a partition come again."""
    ordered = Ordered(max_uncommitted=30)
    async with ordered.topology.run():
        await sim.advance(seconds=2.2)
    assert 10 < ordered.doubled <= 30 + 50


class Unequal:
    """A key that raises when it is compared."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise ValueError("not like this")


UNUSABLE: list[tuple[Callable[[bytes], Any], str]] = [
    (lambda body: [body] if body == b"1" else None, r"\[b'1'\], of type list, .*unhashable type"),
    (lambda body: Unequal() if body in b"01" else body, r"of type Unequal, .*ValueError\('not like this'\)"),
]


@pytest.mark.parametrize("profile", KINDS)
@pytest.mark.parametrize(("key", "words"), UNUSABLE, ids=["no hash", "no equality"])
async def test_a_message_whose_key_cannot_be_used_is_a_dead_letter(
    profile: str, key: Callable[[bytes], Hashable], words: str, sim: Simulation
) -> None:
    """The others go on, those of the same key too, and the letter says the way out."""
    gate = asyncio.Event()
    consumer = Consumer(Broker(profile), lambda _: gate.wait(), settings={"ordered_by": key})
    for number in range(4):
        consumer.place.publish(b"%d" % number, key=b"one partition")
    async with consumer.run() as running:
        await sim.advance(seconds=2)
        gate.set()
        await consumer.until_empty()
        assert running.statistics().components["orders"].restarts == 0
    assert consumer.processed == dict.fromkeys((b"0", b"2", b"3"), 1)
    reasons = [str(letter.failure) for letter in consumer.letters]
    reasons += [] if consumer.letters else [reason for _, reason in consumer.broker.queue("orders").dead]
    (reason,) = reasons
    assert re.search(f"ordered_by gave .*{words}.*; let it return a tuple or a text of that", reason)


async def awaited(body: bytes) -> bytes:
    return body


async def streamed(body: bytes) -> AsyncIterator[bytes]:
    yield body


def yielded(body: bytes) -> Iterator[bytes]:
    yield body


def mapped(body: bytes) -> Hashable:
    return map(int, body)


def promised(body: bytes) -> Hashable:
    return asyncio.get_running_loop().create_future()


class Awaiting:
    async def __call__(self, body: bytes) -> bytes:
        return body


@pytest.mark.parametrize("function", [awaited, streamed, yielded, mapped, promised])
async def test_a_function_that_hides_one_that_is_not_there_at_once_buries_its_messages(
    function: Callable[[bytes], Hashable], sim: Simulation
) -> None:
    """Which no look at it can tell before it is called; nothing would wait for anything."""
    consumer = Consumer(
        Broker("kafka"), lambda _: asyncio.sleep(0), settings={"ordered_by": lambda body: function(body)}
    )
    consumer.publish(1)
    async with consumer.run():
        await consumer.until_empty()
    (letter,) = consumer.letters
    assert re.search("ordered_by gave an object of type .* instead of a key", str(letter.failure))


async def test_a_cancellation_that_a_key_raises_buries_its_message(sim: Simulation) -> None:
    """As another exception does (law N3): nobody has cancelled the spout."""

    def key(body: bytes) -> Hashable:
        raise asyncio.CancelledError

    consumer = Consumer(Broker("kafka"), lambda _: asyncio.sleep(0), settings={"ordered_by": key})
    consumer.publish(1)
    async with consumer.run() as running:
        await consumer.until_empty()
        assert running.statistics().components["orders"].restarts == 0
    (letter,) = consumer.letters
    assert "StrayCancellation" in str(letter.failure)


@pytest.mark.parametrize("key", [awaited, streamed, yielded, partial(awaited), Awaiting()])
async def test_a_key_that_is_not_there_at_once_is_refused(key: Callable[[bytes], Hashable]) -> None:
    """Each call would give another one, so that nothing would wait for anything."""
    with pytest.raises(InvalidTopology, match=r"^ordered_by=: <?.* write a plain function that returns it$"):
        TwinSource(Broker("kafka"), "orders", as_=bytes, ordered_by=key)


class Counts(KeyedBolt[bytes, bytes, int]):
    """Counts the messages of each key."""

    seen = Value(int, 0)

    def execute(self, tup: Tuple[bytes], out: Collector[int]) -> None:
        self.seen += 1
        out.emit(self.seen)


@pytest.mark.parametrize("profile", KINDS)
async def test_messages_that_wait_for_their_key_do_not_wait_for_the_time_of_an_epoch(
    profile: str, sim: Simulation
) -> None:
    """The epoch ends when all that is left waits for an outcome, which comes at its end; that of the last does not."""
    broker, counts = Broker(profile), list[int]()
    for number in range(10):
        broker.place("orders").publish(b"%d" % number, key=b"one partition")
    topology = Topology("keyed", epoch_seconds=5.0)
    source = TwinSource[bytes](broker, "orders", as_=bytes, ordered_by=len)
    orders = topology.spout("orders", source)
    counted = topology.bolt("count", Counts, orders.fields(lambda body: body[:0]), outputs=int)
    topology.bolt("see", counts.append, counted.shuffle())
    async with topology.run():
        await sim.advance(seconds=2)
        assert (counts, broker.place("orders").left) == (list(range(1, 11)), [b"9"])
