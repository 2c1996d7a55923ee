"""Whole topologies at a real Postgres, and at its twin."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from stormlet import DeadLetter, Reject, StartFailed, Topology
from stormlet.connect import postgres
from stormlet.testing.brokers import twin
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import Place, Postgres, numbered, soon, through

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


class Row(msgspec.Struct, frozen=True):
    """What is done with an order."""

    id: int
    times: int


class Shop:
    """A topology that brings the rows of a queue to a table."""

    def __init__(self, url: str, *bad: str, **options: Any) -> None:
        self.counted = Counter[str]()
        self.letters = list[DeadLetter]()
        self._bad = bad
        self.topology = Topology("shop", max_spout_pending=40, replay_delay=0.05)
        orders = self.topology.spout("orders", postgres.Queue(url, "orders", as_=str, lease=2.0, **options))
        counts = self.topology.bolt("count", self.count, orders.shuffle(), concurrency=4)
        self.topology.bolt("write", postgres.Upsert[Row](url, "done", key=["id"]), counts.shuffle())

    async def count(self, order: str) -> Row:
        await asyncio.sleep(0.005)
        if order in self._bad:
            raise Reject("no such lamp")
        self.counted[order] += 1
        return Row(int(order), self.counted[order])

    def run(self) -> Any:
        """``async with shop.run() as running``."""
        return self.topology.run(dead_letters=self.letters.append)


async def made(place: Place, count: int) -> None:
    """Tables, and so many orders."""
    await place.client.execute("CREATE TABLE done (id int PRIMARY KEY, times int)")
    await place.write(postgres.Put[str](place.url, "orders", create=True), *numbered(count))


async def test_resets_lose_and_double_nothing(place: Place, proxy: Proxy) -> None:
    """Claims are good at the next connection, and rows with a key are there once."""
    await made(place, 600)
    shop = Shop(through(place.url, proxy.port))

    async def empty() -> bool:
        return not await place.rows()

    async with shop.run() as running:
        for count in (100, 250, 400):
            while len(shop.counted) < count:  # noqa: ASYNC110 - a server is watched
                await asyncio.sleep(0.01)
            proxy.reset()
        await soon(empty, 60)
        assert running.health().connections["orders[0]"].reconnects == 3
        assert running.statistics().components["orders"].failed == 0
    assert await place.rows("id", "done") == list(range(600))


async def test_a_server_that_is_killed_is_waited_for(place: Place, server: Postgres) -> None:
    """No crash, no restart, and nothing is lost."""
    await made(place, 600)
    shop = Shop(place.url)
    async with shop.run() as running:
        while len(shop.counted) < 100:  # noqa: ASYNC110 - a server is watched
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(0.5)
        assert not running.health().ready
        await asyncio.to_thread(server.start)
        async with Place(place.url) as later:

            async def empty() -> bool:
                return not await later.rows()

            await soon(empty, 60)
            assert await later.rows("id", "done") == list(range(600))
        assert running.statistics().components["orders"].restarts == 0


@pytest.mark.parametrize("rejects", [False, True])
async def test_poison_is_a_dead_letter_in_one_place(place: Place, rejects: bool) -> None:
    """Of the run, or in the table with its reason."""
    await made(place, 20)
    shop = Shop(place.url, "7", rejects=rejects)

    async def over() -> bool:
        return len(await place.rows("id", "done")) == 19 and len(await place.rows()) == int(rejects)

    async with shop.run():
        await soon(over)
        await asyncio.sleep(0.2)
    assert [each.value for each in shop.letters] == ([] if rejects else ["7"])
    left = await place.rows("body, reason")
    assert [(body, "no such lamp" in reason) for body, reason in left] == ([("7", True)] if rejects else [])


async def test_a_start_that_fails_says_why(place: Place) -> None:
    """By the component and the table."""
    with pytest.raises(StartFailed, match=r'write.* relation "done" does not exist'):
        async with Shop(place.url).run():
            pass


@pytest.mark.simulated_time
async def test_a_twin_stands_for_the_server() -> None:
    """Over a restart, and with leases that end meanwhile."""
    topology = Topology("twin", max_spout_pending=20)
    orders = topology.spout("orders", postgres.Queue("postgresql://db/shop", "orders", as_=str))
    topology.bolt("put", postgres.Put[str]("postgresql://db/shop", "done"), orders.shuffle())
    bodies = [b"%03d" % number for number in range(100)]
    with twin("postgresql://db/shop") as broker:
        for body in bodies:
            broker.queue("orders").publish(body)
        async with topology.run():
            await asyncio.sleep(0.01)
            broker.restart(60)
            await asyncio.sleep(300)
        assert (broker.queue("orders").left, broker.violations) == ([], [])
        assert set(broker.queue("done").left) == set(bodies)
