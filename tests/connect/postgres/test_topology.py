"""Whole topologies at a real Postgres, and at its twin."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from stormlet import StartFailed, Topology
from stormlet.connect import postgres
from stormlet.testing.brokers import twin
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import Place, Postgres
from tests.connect.sessions import numbered
from tests.connect.shop import Shop, Topologies, connection, refuse, until_all_is_done

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]
LEASE = 5.0


@pytest.fixture
def broker(server: Postgres) -> Postgres:
    """Postgres."""
    return server


class TestAsEverywhere(Topologies):
    """Postgres."""

    options: ClassVar[dict[str, Any]] = {"lease": LEASE}
    test_a_black_hole_loses_nothing = None  # type: ignore[assignment] # conformance has it, and it takes 15 s


async def test_resets_lose_and_double_nothing(place: Place, proxy: Proxy) -> None:
    """Claims are good at the next connection, and rows with a key are there once."""
    await place.make_outputs()
    await place.fill(*numbered(600))
    url = place.through(proxy.port)
    shop = Shop(place, url=url, tells=url, lease=LEASE)
    async with shop.open() as running:
        for count in (100, 250, 400):
            await shop.until(count)
            proxy.reset()
        await until_all_is_done(place)
        assert connection(running).reconnects == 3
        assert running.statistics().components["orders"].failed == 0
    assert sorted(await place.outputs(), key=int) == numbered(600)


async def test_a_dead_letter_may_stay_in_the_table(place: Place) -> None:
    """With its reason, and then the run has none."""
    await place.make_outputs()
    await place.fill(*numbered(20))
    shop = Shop(place, refuse("7"), tells=place.url, lease=LEASE, rejects=True)
    async with shop.open():
        async with asyncio.timeout(60):
            while len(await place.outputs()) < 19 or await place.undone() > 1:  # noqa: ASYNC110 - a server is watched
                await asyncio.sleep(0.02)
    assert shop.letters == []
    ((body, reason),) = await place.rows("body, reason")
    assert (body, "no such lamp" in reason) == ("7", True)


async def test_a_row_whose_body_is_null_is_a_dead_letter(place: Place) -> None:
    """It is no text, not even an empty one."""
    await place.fill("1", "")
    await place.client.execute("ALTER TABLE orders ALTER body DROP NOT NULL")
    await place.client.execute("INSERT INTO orders (body) VALUES (NULL)")
    shop = Shop(place, lease=LEASE)
    async with shop.open():
        await shop.until(3)
    assert sorted(shop.counted) == ["", "1"]
    ((body, reason),) = [(each.value, each.failure.reason) for each in shop.letters]
    assert (body, reason) == (b"", "DecodeError: its body is NULL")
    assert await place.undone() == 0


async def test_a_start_that_fails_says_why(place: Place) -> None:
    """By the component and the table."""
    with pytest.raises(StartFailed, match=r'tell.* relation "done" does not exist'):
        async with Shop(place, tells=place.url).open():
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
