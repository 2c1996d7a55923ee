"""Whole topologies at a real NATS, whose broker and network fail."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from stormlet import DeadLetter, Reject, Running, StartFailed, Topology
from stormlet.connect import nats
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.nats.kit import CONSUMER, Server, numbered, through

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PENDING = 40


class Order(msgspec.Struct, frozen=True):
    """What somebody wants."""

    shop: str


class Shop:
    """A topology that counts the orders of a stream."""

    def __init__(
        self, url: str, stream: str, work: Callable[[Any], None] = lambda _: None, **options: Any
    ) -> None:
        self.counted = Counter[str]()
        self.letters = list[DeadLetter]()
        self._work = work
        self.topology = Topology("shop", max_spout_pending=PENDING, replay_delay=0.05)
        source: Any = nats.Stream(url, stream, **{"consumer": CONSUMER, "as_": str, "lease": 2.0, **options})
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


async def test_a_broker_that_is_killed_is_waited_for(server: Server, broker: Broker) -> None:
    """No crash and no restart: the messages go on when it is there again, and few of them come twice."""
    await server.publish(*numbered(1000))
    shop = Shop(server.url, server.stream)
    async with shop.open() as running:
        await shop.until(300)
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(1)
        assert not running.health().ready
        await asyncio.to_thread(broker.start)
        await shop.until(1000)
        assert connection(running).reconnects == 1
    assert set(shop.counted) == set(numbered(1000))
    assert running.statistics().components["orders"].restarts == 0
    # The server writes acks to its disk a moment later.
    assert shop.counted.total() - 1000 <= 2 * PENDING + 300
    async with Server(server.url, server.stream) as later:
        assert await later.undone() == 0


async def test_resets_lose_and_double_nothing(server: Server, proxy: Proxy) -> None:
    """Receipts are good at the next connection: what was under way goes on."""
    await server.publish(*numbered(600))
    shop = Shop(through(server.url, proxy.port), server.stream, lease=30.0)
    async with shop.open() as running:
        for count in (100, 250, 400):
            await shop.until(count)
            proxy.reset()
        await shop.until(560)  # what was on its way when the connection was reset comes after its lease
        assert connection(running).reconnects == 3
    assert shop.counted.total() == len(shop.counted)


async def test_a_black_hole_loses_nothing(server: Server, proxy: Proxy) -> None:
    """It is noticed by pings that nobody answers, and health says so meanwhile."""
    await server.publish(*numbered(300))
    shop = Shop(through(server.url, proxy.port), server.stream)
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
    assert await server.undone() == 0


async def test_a_sink_waits_for_its_broker(server: Server, proxy: Proxy) -> None:
    """Over resets each output is kept once by its id, and no message fails for that."""
    await server.make("told")
    await server.publish(*numbered(400))
    shop = Shop(server.url, server.stream)
    sink = nats.Publish[str](through(server.url, proxy.port), "told.new", message_id=str)
    shop.topology.bolt("tell", sink, shop.counts.shuffle())
    async with shop.open() as running:
        for count in (100, 200, 300):
            await shop.until(count)
            proxy.reset()
        await shop.until(400)
    assert sorted(await server.bodies("told"), key=int) == numbered(400)
    assert running.statistics().components["orders"].failed == 0
    await server.js.delete_stream("told")


def refuse(*bad: str) -> Callable[[Any], None]:
    """Raise for these orders, always."""

    def work(order: Any) -> None:
        if str(order) in bad:
            raise Reject("no such lamp")

    return work


async def test_poison_is_a_dead_letter_of_the_run(server: Server) -> None:
    """With its reason and its place in the stream, and the server is told that it is done."""
    await server.publish(*numbered(20))
    shop = Shop(server.url, server.stream, refuse("7"))
    async with shop.open():
        await shop.until(20)
    (letter,) = shop.letters
    assert (letter.value, letter.origin) == ("7", f"{server.stream}@8")
    assert "no such lamp" in letter.failure.reason
    assert await server.undone() == 0


async def test_poison_may_be_terminated(server: Server) -> None:
    """Once, with its reason, and then the run has no dead letter."""
    await server.publish(*numbered(20))
    shop = Shop(server.url, server.stream, refuse("7"), rejects=True)
    async with server.advisories() as told, shop.open():
        await shop.until(19)
        async with asyncio.timeout(10):
            while not told:  # noqa: ASYNC110 - a broker is watched
                await asyncio.sleep(0.02)
    assert [each["stream_seq"] for each in told] == [8]
    assert "no such lamp" in told[0]["reason"]
    assert (shop.letters, await server.undone()) == ([], 0)


async def test_what_cannot_be_decoded_is_a_dead_letter(server: Server) -> None:
    """With its bytes; and the others go on."""
    await server.publish('{"shop": "a"}', "one", '{"shop": "b"}')
    shop = Shop(server.url, server.stream, as_=Order)
    async with shop.open():
        await shop.until(3)
    assert [each.value for each in shop.letters] == [b"one"]
    assert set(shop.counted) == {"Order(shop='a')", "Order(shop='b')"}
    assert await server.undone() == 0


async def test_no_more_is_held_than_may_be_pending(server: Server) -> None:
    """A bolt that waits leaves the rest to others, and its leases are renewed."""
    await server.publish(*numbered(200))
    shop, gate = Shop(server.url, server.stream, lease=1.0), asyncio.Event()
    shop.topology.bolt("wait", lambda _: gate.wait(), shop.counts.shuffle())
    async with shop.open() as running:
        await shop.until(PENDING)
        await asyncio.sleep(2.5)
        info = await server.info()
        assert (len(shop.counted), info.num_ack_pending, info.num_redelivered) == (PENDING, PENDING, 0)
        gate.set()
        await shop.until(200)
    assert running.statistics().components["orders"].acked == 200


async def test_two_runs_share_the_work(server: Server) -> None:
    """Each message goes to one of them."""
    shops = [Shop(server.url, server.stream), Shop(server.url, server.stream)]
    async with shops[0].open(), shops[1].open():
        await server.publish(*numbered(300))
        async with asyncio.timeout(60):
            while sum(shop.counted.total() for shop in shops) < 300:  # noqa: ASYNC110 - a broker is watched
                await asyncio.sleep(0.02)
    both = shops[0].counted + shops[1].counted
    assert sorted(both.elements(), key=int) == numbered(300)
    assert all(shop.counted for shop in shops)


async def test_a_source_that_is_idle_stops_soon(server: Server) -> None:
    """It waits for its last pull, and for nothing else."""
    shop = Shop(server.url, server.stream)
    async with shop.open():
        await asyncio.sleep(0.3)
        begun = time.monotonic()
    assert time.monotonic() - begun < 2


async def test_a_start_that_fails_says_why(
    server: Server, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """By the component and the broker's reason; the password is nowhere."""
    caplog.set_level(logging.DEBUG)
    url = f"nats://clerk:s3cret-word@{HOST}:{broker.port}"
    with pytest.raises(StartFailed, match="there is no stream 'nothing'") as caught:
        async with Shop(url, "nothing").open():
            pass
    said = caplog.text + "".join(traceback.format_exception(caught.value))
    assert "orders" in said
    assert "s3cret-word" not in said
