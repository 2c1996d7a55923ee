"""A queue that several tasks fill is woken by the one that found it empty (law F1)."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TypeAlias

import pytest

from stormlet.core.groupings import Global, One
from stormlet.core.ids import IdSource
from stormlet.core.schema import schema_of
from stormlet.core.tuples import PLAIN, Source
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import FixedOutlet, Outlet, SingleOutlet, Target

pytestmark = pytest.mark.simulated_time

Producer: TypeAlias = tuple[Outlet, Outbox]


class Consumer:
    """A queue, and how often somebody has told its owner to look."""

    def __init__(self) -> None:
        self.woken = 0
        self.inbox = Inbox(10, self._wake)

    def _wake(self) -> None:
        self.woken += 1


def fail(error: Exception) -> None:
    raise error


def producer(consumer: Consumer, *, single: bool) -> Producer:
    """The ends of a task that delivers to this consumer alone."""
    loop = asyncio.get_running_loop()
    outbox = Outbox(loop, loop.call_soon, (), loop.time, fail)
    source, ids = Source("producer", "default", 1, schema_of(None)), IdSource(Random(0))
    target = Target(2, consumer.inbox, True)
    if not single:
        return FixedOutlet(source, ids, outbox, target), outbox
    chooser = Global().chooser([2], Random(0))
    assert isinstance(chooser, One)
    return SingleOutlet(source, ids, outbox, chooser, [target]), outbox


@pytest.mark.parametrize("single", [True, False])
async def test_who_finds_it_empty_wakes_its_owner(single: bool) -> None:
    """Once, however much it delivers, and none of the others does; after the owner has taken it all, it begins anew."""
    consumer = Consumer()
    (first, first_outbox), (second, second_outbox) = (producer(consumer, single=single) for _ in range(2))
    for _ in range(2):
        before = consumer.woken
        first.deliver("a", 0, PLAIN)
        second.deliver("b", 0, PLAIN)
        first.deliver("c", 0, PLAIN)
        second_outbox.flush()
        assert consumer.woken == before
        first_outbox.flush()
        first_outbox.flush()
        assert consumer.woken == before + 1
        assert [tup.value for tup in consumer.inbox.take()] == ["a", "b", "c"]


async def test_a_task_says_for_room_in_which_queue_it_waits() -> None:
    """Once for each of its coroutines, and no longer than they wait."""
    consumer = Consumer()
    outlet, outbox = producer(consumer, single=True)
    for value in range(10):
        outlet.deliver(value, 0, PLAIN)
    waiting = [asyncio.create_task(outbox.room()) for _ in range(3)]
    await asyncio.sleep(1)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    assert outbox.awaited == [consumer.inbox] * 2
    consumer.inbox.take()
    await asyncio.wait(waiting)
    assert outbox.awaited == []


async def test_who_waits_for_room_no_longer_is_forgotten() -> None:
    """A consumer may hang for days, while those who wait for it are killed and begin to wait again."""
    consumer = Consumer()
    outlet, outbox = producer(consumer, single=True)
    for value in range(10):
        outlet.deliver(value, 0, PLAIN)
    for _ in range(5):
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert consumer.inbox._waiting == []  # pyright: ignore[reportPrivateUsage] - memory has no public face
