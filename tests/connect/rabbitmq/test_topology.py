"""Whole topologies at a real RabbitMQ, whose broker and network fail."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stormlet import DeadLetter, Reject, Running, StartFailed, Topology
from stormlet.connect import rabbitmq
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.rabbitmq.kit import Rabbit, numbered, through

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PENDING = 40


class Shop:
    """A topology that counts the orders of a queue."""

    def __init__(
        self, url: str, queue: str, work: Callable[[Any], None] = lambda _: None, **options: Any
    ) -> None:
        self.counted = Counter[str]()
        self.letters = list[DeadLetter]()
        self._work = work
        self.topology = Topology("shop", max_spout_pending=PENDING, replay_delay=0.05)
        source = rabbitmq.Queue[Any](url, queue, **{"as_": str, **options})
        self.orders = self.topology.spout("orders", source)
        self.counts = self.topology.bolt("count", self.count, self.orders.shuffle(), concurrency=4)

    async def count(self, order: Any) -> str:
        await asyncio.sleep(0.005)
        self._work(order)
        self.counted[str(order)] += 1
        return str(order)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Running]:
        """The topology at work."""
        async with self.topology.run(dead_letters=self.letters.append) as running:
            yield running

    async def until(self, count: int) -> None:
        """Wait until so many different orders were counted, or are dead letters."""
        async with asyncio.timeout(120):
            while len(self.counted) + len(self.letters) < count:  # noqa: ASYNC110 - a broker is watched
                await asyncio.sleep(0.02)


def connection(running: Running) -> Any:
    return running.health().connections["orders[0]"]


async def test_a_broker_that_is_killed_is_waited_for(rabbit: Rabbit, broker: Broker) -> None:
    """No crash and no restart: the messages go on when it is there again, and few of them come twice."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(400))
    shop = Shop(rabbit.url, rabbit.queue)
    async with shop.open() as running:
        await shop.until(100)
        await asyncio.get_running_loop().run_in_executor(None, broker.restart)
        await shop.until(400)
        assert connection(running).reconnects == 1
    assert set(shop.counted) == set(numbered(400))
    assert running.statistics().components["orders"].restarts == 0
    async with Rabbit(rabbit.url, rabbit.queue) as later:
        assert await later.ready() == 0


async def test_resets_lose_nothing(rabbit: Rabbit, proxy: Proxy) -> None:
    """What was pending comes again, and no more than that."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(600))
    shop = Shop(through(rabbit.url, proxy.port), rabbit.queue)
    async with shop.open() as running:
        for count in (100, 250, 400):
            await shop.until(count)
            proxy.reset()
        await shop.until(600)
        assert connection(running).reconnects == 3
    assert set(shop.counted) == set(numbered(600))
    assert shop.counted.total() - 600 <= 3 * PENDING
    assert await rabbit.ready() == 0


async def test_a_black_hole_loses_nothing(rabbit: Rabbit, proxy: Proxy) -> None:
    """It is noticed by missed heartbeats, and health says so meanwhile."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(300))
    shop = Shop(through(rabbit.url, proxy.port), rabbit.queue)
    async with shop.open() as running:
        await shop.until(100)
        proxy.swallow()
        async with asyncio.timeout(20):
            while connection(running).state.value != "reconnecting":  # noqa: ASYNC110 - a client is watched
                await asyncio.sleep(0.02)
        assert not running.health().ready
        proxy.refuse()
        proxy.pass_on()
        await shop.until(300)
    assert set(shop.counted) == set(numbered(300))
    assert await rabbit.ready() == 0


async def test_a_sink_waits_for_its_broker(rabbit: Rabbit, proxy: Proxy) -> None:
    """Over resets each output is published at least once, and no message fails for that."""
    done = await rabbit.declare(f"{rabbit.queue} done")
    await rabbit.declare()
    await rabbit.publish_many(numbered(400))
    shop = Shop(rabbit.url, rabbit.queue)
    sink = rabbitmq.Publish[str](through(rabbit.url, proxy.port), routing_key=done)
    shop.topology.bolt("tell", sink, shop.counts.shuffle())
    async with shop.open() as running:
        for count in (100, 200, 300):
            await shop.until(count)
            proxy.reset()
        await shop.until(400)
    assert set(await rabbit.bodies(done)) == set(numbered(400))
    assert running.statistics().components["orders"].failed == 0
    assert await rabbit.ready() == 0


def refuse(*bad: str) -> Callable[[Any], None]:
    """Raise for these orders, always."""

    def work(order: Any) -> None:
        if str(order) in bad:
            raise Reject("no such lamp")

    return work


async def test_poison_is_a_dead_letter_of_the_run(rabbit: Rabbit) -> None:
    """With its reason, and the broker is told that it is done."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(20))
    shop = Shop(rabbit.url, rabbit.queue, refuse("7"))
    async with shop.open():
        await shop.until(20)
    assert [(each.value, "no such lamp" in each.failure.reason) for each in shop.letters] == [("7", True)]
    assert await rabbit.ready() == 0


async def test_poison_goes_to_the_dead_letter_exchange(rabbit: Rabbit) -> None:
    """Once, and then the run has no dead letter."""
    dead = await rabbit.declare(f"{rabbit.queue} dead")
    await rabbit.declare(x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    await rabbit.publish_many(numbered(20))
    shop = Shop(rabbit.url, rabbit.queue, refuse("7"), rejects=True)
    async with shop.open():
        await shop.until(19)
        await asyncio.sleep(0.3)
    assert await rabbit.bodies(dead) == ["7"]
    assert (shop.letters, await rabbit.ready()) == ([], 0)


async def test_what_cannot_be_decoded_is_a_dead_letter(rabbit: Rabbit) -> None:
    """With its bytes; and the others go on."""
    await rabbit.declare()
    await rabbit.publish_many(["1", "one", "2"])
    shop = Shop(rabbit.url, rabbit.queue, as_=int)
    async with shop.open():
        await shop.until(3)
    assert [each.value for each in shop.letters] == [b"one"]
    assert set(shop.counted) == {"1", "2"}
    assert await rabbit.ready() == 0


async def test_no_more_is_prefetched_than_may_be_pending(rabbit: Rabbit) -> None:
    """A bolt that waits leaves the rest at the broker."""
    await rabbit.declare()
    await rabbit.publish_many(numbered(200))
    shop, gate = Shop(rabbit.url, rabbit.queue), asyncio.Event()
    shop.topology.bolt("wait", lambda _: gate.wait(), shop.counts.shuffle())
    async with shop.open() as running:
        await shop.until(PENDING)
        await asyncio.sleep(0.5)
        assert (len(shop.counted), await rabbit.ready()) == (PENDING, 200 - PENDING)
        gate.set()
        await shop.until(200)
    assert running.statistics().components["orders"].acked == 200


async def test_two_runs_share_the_work(rabbit: Rabbit) -> None:
    """Each message goes to one of them."""
    await rabbit.declare()
    shops = [Shop(rabbit.url, rabbit.queue), Shop(rabbit.url, rabbit.queue)]
    async with shops[0].open(), shops[1].open():
        await rabbit.publish_many(numbered(300))
        async with asyncio.timeout(60):
            while sum(shop.counted.total() for shop in shops) < 300:  # noqa: ASYNC110 - a broker is watched
                await asyncio.sleep(0.02)
    both = shops[0].counted + shops[1].counted
    assert sorted(both.elements(), key=int) == numbered(300)
    assert all(shop.counted for shop in shops)


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
            async with Shop(url, rabbit.queue).open():
                pass
        said = caplog.text + "".join(traceback.format_exception(caught.value))
        assert "s3cret-word" not in said
