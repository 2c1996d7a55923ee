"""Whole topologies at a real RabbitMQ, whose broker and network fail."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator

import pytest

from stormlet import DeadLetter, StartFailed, Topology
from stormlet.connect import rabbitmq
from stormlet.report.connections import Connection, ConnectionState
from tests.brokers.processes import HOST, Broker
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit
from tests.connect.rabbitmq.odd import KEY, ODD
from tests.connect.sessions import numbered, until
from tests.connect.shop import PENDING, Shop, Topologies, connection, refuse

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest.fixture
def place(rabbit: Rabbit) -> Rabbit:
    """A queue."""
    return rabbit


class TestAsEverywhere(Topologies):
    """RabbitMQ."""


async def test_poison_goes_to_the_dead_letter_exchange(rabbit: Rabbit) -> None:
    """Once, and then the run has no dead letter."""
    dead = await rabbit.declare(f"{rabbit.queue} dead")
    await rabbit.declare(x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    await rabbit.publish_many(numbered(20))
    shop = Shop(rabbit, refuse("7"), rejects=True)
    async with shop.open():
        await shop.until(19)
    assert await rabbit.has("7", queue=dead)
    assert (shop.letters, await rabbit.ready()) == ([], 0)


async def test_a_queue_that_is_full_for_long_costs_no_message(rabbit: Rabbit) -> None:
    """All wait until it has room, and health says so."""
    full = await rabbit.declare(f"{rabbit.queue} full", x_max_length=5, x_overflow="reject-publish")
    topology, letters = Topology("filling", max_attempts=1), list[DeadLetter]()
    numbers = topology.spout("numbers", numbered(20))
    topology.bolt("send", rabbitmq.Publish[str](rabbit.url, routing_key=full), numbers.shuffle())
    got = list[str]()
    async with topology.run(dead_letters=letters.append) as running:
        async with asyncio.timeout(60):
            while "nack" not in running.health().connections["send[0]"].error:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.02)
        async with asyncio.timeout(60):
            while len(got) < 20:
                got += await rabbit.bodies(full)
        await running.finished()
        assert running.health().ready
    assert (sorted(got), letters) == (sorted(numbered(20)), [])


async def test_a_broker_that_is_short_of_memory_is_seen_in_the_health(
    rabbit: Rabbit, broker: RabbitMQ, caplog: pytest.LogCaptureFixture
) -> None:
    """It reads nothing of who publishes. That costs no message an attempt, whatever its timeout, and is logged once."""
    to = await rabbit.declare(f"{rabbit.queue} done")
    topology, letters = Topology("filling", max_attempts=1, message_timeout=1.0), list[DeadLetter]()
    sent, enough = list[str](), asyncio.Event()

    async def numbers() -> AsyncIterator[str]:
        while not enough.is_set():  # it goes on until the broker blocks, as only who publishes is told
            sent.append(str(len(sent)))
            yield sent[-1]
            await asyncio.sleep(0.1)

    topology.bolt(
        "send",
        rabbitmq.Publish[str](rabbit.url, routing_key=to),
        topology.spout("numbers", numbers).shuffle(),
    )
    async with topology.run(dead_letters=letters.append) as running:

        def send() -> Connection:
            return running.health().connections["send[0]"]

        await until(lambda: send().settled)
        await asyncio.to_thread(broker.control, "set_vm_memory_high_watermark", "0.0000001")
        try:
            await until(lambda: not running.health().ready)
            assert (send().state, send().error) == (
                ConnectionState.RECONNECTING,
                "the broker blocks all who publish: low on memory",
            )
            before = len(sent)
            await until(lambda: len(sent) > before + 20)  # 2 s, which is more than the timeout
            assert send().settled <= before
        finally:
            enough.set()
            await asyncio.to_thread(broker.control, "set_vm_memory_high_watermark", "0.4")
        await running.finished()
        assert running.health().ready
    assert (await rabbit.bodies(to), letters) == (sent, [])
    assert [each.message for each in caplog.records if "blocks" in each.message] == [
        f"send is kept waiting by {send().address}, and tries again: {send().error}"
    ]


async def test_no_more_is_prefetched_than_may_be_pending(rabbit: Rabbit) -> None:
    """A bolt that waits leaves the rest at the broker."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(200))
    shop, gate = Shop(rabbit), asyncio.Event()
    shop.topology.bolt("wait", lambda _: gate.wait(), shop.counts.shuffle())
    async with shop.open() as running:
        await shop.until(PENDING)
        await asyncio.sleep(0.5)  # for more to come, if it did
        assert (len(shop.counted), await rabbit.ready()) == (PENDING, 200 - PENDING)
        gate.set()
        await shop.until(200)
    assert running.statistics().components["orders"].acked == 200


async def test_a_start_that_fails_says_why(
    rabbit: Rabbit, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """By the component and the broker's reason; the password is nowhere."""
    caplog.set_level(logging.DEBUG)
    for url, why in [
        (f"amqp://guest:s3cret-word@{HOST}:{broker.port}/", "wrong user or password for 'guest'"),
        (rabbit.url, "no queue"),
    ]:
        with pytest.raises(StartFailed, match=why) as caught:
            async with Shop(Rabbit(url, rabbit.queue)).open():
                pass
        said = caplog.text + "".join(traceback.format_exception(caught.value))
        assert "s3cret-word" not in said


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_odd_metadata_stops_nothing(kind: str, rabbit: Rabbit) -> None:
    """Texts that are no UTF-8, times out of range: each message is executed once, and the connection stays."""
    await rabbit.declare(x_queue_type=kind)
    await rabbit.fanout(f"any key {kind}", rabbit.queue)
    for number, odd in enumerate([*ODD, KEY]):
        await rabbit.publish(str(number))
        await rabbit.publish_odd(odd, f"any key {kind}")
    shop = Shop(rabbit)
    async with shop.open() as running:
        await shop.until(2 * len(ODD) + 2)
        assert connection(running).reconnects == 0
    assert shop.counted == dict.fromkeys([*ODD, KEY, *numbered(len(ODD) + 1)], 1)
    assert (shop.letters, await rabbit.ready()) == ([], 0)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_message_that_is_held_too_long_is_given_back_alone(kind: str, rabbit: Rabbit) -> None:
    """The channel stays, and the message is executed again."""
    await rabbit.declare(x_queue_type=kind)
    gate, seen = asyncio.Event(), list[str]()

    async def work(order: str) -> None:
        seen.append(order)
        if order == "1":
            await gate.wait()

    topology = Topology("shop", max_spout_pending=PENDING, message_timeout=None)
    source = rabbitmq.Queue(rabbit.url, rabbit.queue, as_=str, consumer_timeout=4.0)
    topology.bolt("work", work, topology.spout("orders", source).shuffle(), concurrency=10)
    await rabbit.publish(*numbered(4))
    async with topology.run() as running:
        await until(lambda: len(seen) >= 5)
        gate.set()
        assert connection(running).reconnects == 0
    assert (sorted(seen[:4]), seen[4]) == (numbered(4), "1")
    assert await rabbit.ready() == 0
