"""A topology over a real broker whose network fails, and what it holds at each of them.

The tests of a broker derive from :class:`Topologies`, with fixtures ``place``, ``broker`` and ``proxy``, and add what
is its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol

from stormlet import DeadLetter, Reject, Running, Topology
from tests.brokers.proxy import Proxy
from tests.connect.place import Place
from tests.connect.sessions import numbered, soon, until

PENDING = 40


class Shop:
    """A topology that counts the orders of a place, and tells of them where a sink's URL is given."""

    def __init__(
        self,
        place: Place,
        work: Callable[[Any], None] = lambda _: None,
        *,
        tells: str = "",
        **options: Any,
    ) -> None:
        self.counted = Counter[str]()
        self.letters = list[DeadLetter]()
        self._work = work
        self.topology = Topology("shop", max_spout_pending=PENDING, replay_delay=0.05)
        source: Any = place.source(**{"as_": str, **options})
        self.counts = self.topology.bolt(
            "count", self.count, self.topology.spout("orders", source).shuffle(), concurrency=4
        )
        if tells:
            self.topology.bolt("tell", place.sink(url=tells), self.counts.shuffle())

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


class Server(Protocol):
    """A broker that can be killed."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


def connection(running: Running) -> Any:
    """The connection of the source."""
    return running.health().connections["orders[0]"]


async def until_all_is_done(place: Place) -> None:
    """Wait until the broker knows it."""

    async def is_done() -> bool:
        return not await place.undone()

    await soon(is_done, 120)


def refuse(*bad: str) -> Callable[[Any], None]:
    """Raise for these orders, always."""

    def work(order: Any) -> None:
        if str(order) in bad:
            raise Reject("no such lamp")

    return work


class Topologies:
    """What holds at any broker."""

    options: ClassVar[dict[str, Any]] = {}
    """Of all sources."""

    async def test_a_broker_that_is_killed_is_waited_for(self, place: Place, broker: Server) -> None:
        """No crash and no restart: the messages go on when it is there again, and few of them come twice."""
        await place.fill(*numbered(1000))
        shop = Shop(place, **self.options)
        async with shop.open() as running:
            await shop.until(300)
            await asyncio.to_thread(broker.kill)
            await until(lambda: not running.health().ready)
            await asyncio.to_thread(broker.start)
            await shop.until(1000)
            assert connection(running).reconnects == 1
            if (
                place.forgets or place.has_leases
            ):  # what comes again after its lease: acks that were forgotten, and
                # messages that were held longer than that, as the machine had other work
                async with type(place)(place.url, place.name) as meanwhile:
                    await until_all_is_done(meanwhile)
        assert set(shop.counted) == set(numbered(1000))
        assert running.statistics().components["orders"].restarts == 0
        assert shop.counted.total() - 1000 <= 2 * PENDING + place.forgets
        async with type(place)(place.url, place.name) as later:
            assert await later.undone() == 0

    async def test_resets_lose_nothing(self, place: Place, proxy: Proxy) -> None:
        """What was pending comes again, and no more than that."""
        await place.fill(*numbered(600))
        shop = Shop(place, url=place.through(proxy.port), **self.options)
        async with shop.open() as running:
            for count in (100, 250, 400):
                await shop.until(count)
                proxy.reset()
            await shop.until(600)
            assert connection(running).reconnects == 3
            if place.has_leases:  # as above
                await until_all_is_done(place)
        assert set(shop.counted) == set(numbered(600))
        assert shop.counted.total() - 600 <= 3 * PENDING
        assert await place.undone() == 0

    async def test_a_black_hole_loses_nothing(self, place: Place, proxy: Proxy) -> None:
        """It is noticed by silence, and health says so meanwhile."""
        await place.fill(*numbered(300))
        shop = Shop(place, url=place.through(proxy.port), **self.options)
        async with shop.open() as running:
            await shop.until(100)
            proxy.swallow()
            await until(lambda: connection(running).state.value == "reconnecting")
            assert not running.health().ready
            proxy.refuse()
            proxy.pass_on()
            await shop.until(300)
        assert set(shop.counted) == set(numbered(300))
        assert await place.undone() == 0

    async def test_a_sink_waits_for_its_broker(self, place: Place, proxy: Proxy) -> None:
        """Over resets each output is there, once if it has an id or a key, and no message fails for that."""
        await place.make_outputs()
        await place.fill(*numbered(400))
        shop = Shop(place, tells=place.through(proxy.port), **self.options)
        async with shop.open() as running:
            for count in (100, 200, 300):
                await shop.until(count)
                proxy.reset()
            await shop.until(400)
        outputs = await place.outputs()
        assert set(outputs) == set(numbered(400))
        assert len(outputs) == 400 or not place.keeps_once
        assert running.statistics().components["orders"].failed == 0
        assert await place.undone() == 0

    async def test_poison_is_a_dead_letter_of_the_run(self, place: Place) -> None:
        """With its reason, and the broker is told that it is done."""
        await place.fill(*numbered(20))
        shop = Shop(place, refuse("7"), **self.options)
        async with shop.open():
            await shop.until(20)
        assert [(each.value, "no such lamp" in each.failure.reason) for each in shop.letters] == [("7", True)]
        assert await place.undone() == 0

    async def test_what_cannot_be_decoded_is_a_dead_letter(self, place: Place) -> None:
        """With its bytes; and the others go on."""
        await place.fill("1", "one", "2")
        shop = Shop(place, as_=int, **self.options)
        async with shop.open():
            await shop.until(3)
        assert [each.value for each in shop.letters] == [b"one"]
        assert set(shop.counted) == {"1", "2"}
        assert await place.undone() == 0

    async def test_two_runs_share_the_work(self, place: Place) -> None:
        """Each message goes to one of them."""
        await place.fill("0")
        shops = [Shop(place, **self.options), Shop(place, **self.options)]
        async with shops[0].open(), shops[1].open():
            await place.fill(*numbered(300)[1:])
            await until(lambda: sum(shop.counted.total() for shop in shops) >= 300)
        both = shops[0].counted + shops[1].counted
        assert sorted(both.elements(), key=int) == numbered(300)
        assert all(shop.counted for shop in shops)
