"""Whole topologies that read changes of a real Postgres."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stormlet import DeadLetter, InvalidTopology, Reject, Running, StartFailed, Topology
from stormlet.connect import postgres
from stormlet.testing.brokers import twin
from tests.brokers.proxy import Proxy
from tests.connect.postgres.counted_changes import counting, row_of
from tests.connect.postgres.kit import PUBLICATION, SLOT, Place, Postgres, through
from tests.connect.sessions import soon, until

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


class Order(msgspec.Struct, frozen=True):
    """A row of the table."""

    id: int


class OrderChanged(msgspec.Struct, frozen=True):
    """A change of it."""

    kind: str
    row: Order


class Copy:
    """A topology that notes the ids of new rows."""

    def __init__(self, url: str, *bad: int, **options: Any) -> None:
        self.seen = list[int]()
        self.letters = list[DeadLetter]()
        self._bad = bad
        self.topology = Topology("copy", max_spout_pending=40, replay_delay=0.05)
        given = {"create": True, "poll": 0.05, "settle_every": 0.1, "lag_every": 0.1, **options}
        source = postgres.Changes(url, slot=SLOT, publication=PUBLICATION, as_=OrderChanged, **given)
        self.topology.bolt("note", self.note, self.topology.spout("changes", source).shuffle())

    async def note(self, change: OrderChanged) -> None:
        await asyncio.sleep(0.001)
        if change.row.id in self._bad:
            raise Reject("no such lamp")
        self.seen.append(change.row.id)

    def run(self) -> Any:
        """``async with copy.run() as running``."""
        return self.topology.run(dead_letters=self.letters.append)

    async def until(self, count: int) -> None:
        """Wait until so many are seen."""
        async with asyncio.timeout(60):
            while len(self.seen) < count:  # noqa: ASYNC110 - a server is watched
                await asyncio.sleep(0.01)


async def insert(place: Place, first: int, count: int) -> None:
    """So many rows, each in its own transaction."""
    for number in range(first, first + count):
        await place.client.execute("INSERT INTO orders VALUES ($1)", number)


SMALL = 1000
"""Bytes of WAL that the server may have written by itself since it was told, and that nothing is in."""


async def is_told(place: Place) -> bool:
    """True if the server knows that all is done. What it writes itself, as at a checkpoint, is let go after seconds."""
    lag = "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1"
    return bool(await place.client.fetchval(lag, SLOT) < SMALL)


async def made(place: Place) -> None:
    """The table."""
    await place.client.execute("CREATE TABLE orders (id int PRIMARY KEY)")


async def test_changes_come_in_order_and_the_server_is_told(shop: Place) -> None:
    """A stop repeats nothing."""
    await made(shop)
    for first in (0, 300):
        copy = Copy(shop.url)
        async with copy.run() as running:
            await insert(shop, first, 300)
            await copy.until(300)
            await soon(lambda: is_told(shop))
            await until(lambda: running.statistics().components["changes"].lag < SMALL)
        assert copy.seen == list(range(first, first + 300))


async def test_what_nobody_has_begun_at_the_end_comes_to_the_next(shop: Place) -> None:
    """From the first that was not done, each once."""
    await made(shop)
    first, second = Copy(shop.url), Copy(shop.url)
    async with first.run():
        await insert(shop, 0, 400)
        await first.until(100)
    async with second.run():
        await second.until(400 - len(first.seen))
    assert first.seen + second.seen == list(range(400))


async def test_poison_and_what_cannot_be_decoded_hold_nothing_up(shop: Place) -> None:
    """They are dead letters, and done."""
    await made(shop)
    copy = Copy(shop.url, 7)
    async with copy.run():
        await insert(shop, 0, 20)
        await shop.client.execute("DELETE FROM orders WHERE id = 3")  # which has no row
        await insert(shop, 20, 1)
        await copy.until(20)
        await soon(lambda: is_told(shop))
    assert copy.seen == [number for number in range(21) if number != 7]
    assert {type(letter.value) for letter in copy.letters} == {OrderChanged, bytes}


async def test_resets_lose_nothing(shop: Place, logical: Postgres) -> None:
    """What was pending comes again; nothing that was seen is passed over."""
    await made(shop)
    with Proxy(logical.port) as proxy:
        copy = Copy(through(shop.url, proxy.port))
        async with copy.run() as running:
            writing = asyncio.ensure_future(insert(shop, 0, 1500))
            for count in (100, 300, 600):
                await copy.until(count)
                proxy.reset()
            await writing
            await soon(lambda: is_told(shop))
            assert running.health().connections["changes[0]"].reconnects == 3
    assert set(copy.seen) == set(range(1500))
    assert len(copy.seen) < 1500 + 3 * 500
    assert list(dict.fromkeys(copy.seen)) == list(range(1500))


async def test_a_server_that_is_killed_is_waited_for(shop: Place, logical: Postgres) -> None:
    """No crash, no restart, and nothing is lost."""
    await made(shop)
    copy = Copy(shop.url)
    async with copy.run() as running:
        await insert(shop, 0, 400)
        await copy.until(100)
        await asyncio.to_thread(logical.stop)
        await until(lambda: not running.health().ready)
        await asyncio.to_thread(logical.start)
        await shop.again()
        await insert(shop, 400, 1)
        await soon(lambda: is_told(shop))
        assert running.statistics().components["changes"].restarts == 0
    assert list(dict.fromkeys(copy.seen)) == list(range(401))


async def test_one_task_reads_a_slot(shop: Place) -> None:
    """Two are refused, and so is a twin, which has no changes."""
    source = postgres.Changes(shop.url, slot=SLOT, publication=PUBLICATION, create=True)
    topology = Topology("two")
    topology.spout("changes", source, parallelism=2)
    with pytest.raises(StartFailed, match="parallelism must be 1"):
        async with topology.run():
            pass
    with twin(shop.url), pytest.raises(StartFailed, match="a twin has no changes"):
        async with Copy(shop.url).run():
            pass


async def test_resets_with_a_state_count_each_change_once(
    shop: Place, logical: Postgres, tmp_path: Path
) -> None:
    """The run goes on behind what it has emitted, whether that is durable or not."""
    await made(shop)
    with Proxy(logical.port) as proxy:
        topology = counting(through(shop.url, proxy.port), str(tmp_path / "state"), create=["orders"])
        async with topology.run() as running:
            writing = asyncio.ensure_future(insert(shop, 0, 900))
            for count in (100, 300, 600):
                await soon(lambda least=count: counted(running, least))
                proxy.reset()
            await writing
            await soon(lambda: counted(running, 900))
            # Of what was emitted before a reset, the server learns with the next change.
            await insert(shop, 900, 10)
            await soon(lambda: counted(running, 910))
            await soon(lambda: is_told(shop))
            assert dict(running.state("count")) == dict.fromkeys(range(910), 1)
            assert running.statistics().components["changes"].restarts == 0


async def counted(running: Running, least: int) -> bool:
    """True if so many rows are durable."""
    return len(running.state("count")) >= least


async def test_an_order_of_keys_is_refused_with_a_state(shop: Place, tmp_path: Path) -> None:
    """Changes would be emitted in another order than that of their commits."""
    topology = counting(shop.url, str(tmp_path / "state"), ordered_by=row_of)
    with pytest.raises(
        InvalidTopology, match=r"cannot go on where the state ends; leave out ordered_by=, or state=$"
    ):
        async with topology.run():
            pass
