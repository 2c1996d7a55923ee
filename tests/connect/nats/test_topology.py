"""Whole topologies at a real NATS, whose broker and network fail."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from typing import Any, ClassVar

import pytest

from stormlet import StartFailed, TopologyCrashed
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.nats.kit import Server
from tests.connect.sessions import numbered, until
from tests.connect.shop import PENDING, Shop, Topologies, connection, refuse

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]
LEASE = 5.0


@pytest.fixture
def place(server: Server) -> Server:
    """A stream."""
    return server


class TestAsEverywhere(Topologies):
    """NATS."""

    options: ClassVar[dict[str, Any]] = {"lease": LEASE}


async def test_resets_lose_and_double_nothing(server: Server, proxy: Proxy) -> None:
    """Receipts are good at the next connection: what was under way goes on."""
    await server.publish(*numbered(600))
    shop = Shop(server, url=server.through(proxy.port), lease=30.0)
    async with shop.open() as running:
        for count in (100, 250, 400):
            await shop.until(count)
            proxy.reset()
        await shop.until(560)  # what was on its way when the connection was reset comes after its lease
        assert connection(running).reconnects == 3
    assert shop.counted.total() == len(shop.counted)


async def test_a_dead_letter_has_its_place(server: Server) -> None:
    """With its reason and its place in the stream, and the server is told that it is done."""
    await server.publish(*numbered(20))
    shop = Shop(server, refuse("7"), lease=LEASE)
    async with shop.open():
        await shop.until(20)
    (letter,) = shop.letters
    assert (letter.value, letter.origin) == ("7", f"{server.stream}@8")
    assert "no such lamp" in letter.failure.reason
    assert await server.undone() == 0


async def test_poison_may_be_terminated(server: Server) -> None:
    """Once, with its reason, and then the run has no dead letter."""
    await server.publish(*numbered(20))
    shop = Shop(server, refuse("7"), lease=LEASE, rejects=True)
    async with server.advisories() as told, shop.open():
        await shop.until(19)
        await until(lambda: told)
    assert [each["stream_seq"] for each in told] == [8]
    assert "no such lamp" in told[0]["reason"]
    assert (shop.letters, await server.undone()) == ([], 0)


async def test_no_more_is_held_than_may_be_pending(server: Server) -> None:
    """A bolt that waits leaves the rest to others, and its leases are renewed."""
    await server.publish(*numbered(200))
    shop, gate = Shop(server, lease=4.0), asyncio.Event()
    shop.topology.bolt("wait", lambda _: gate.wait(), shop.counts.shuffle())
    async with shop.open() as running:
        await shop.until(PENDING)
        await asyncio.sleep(6)
        info = await server.info()
        assert (len(shop.counted), info.num_ack_pending, info.num_redelivered) == (PENDING, PENDING, 0)
        gate.set()
        await shop.until(200)
    assert running.statistics().components["orders"].acked == 200


async def test_a_source_that_is_idle_stops_soon(server: Server) -> None:
    """It waits for its last pull, and for nothing else."""
    took = list[float]()
    for _ in range(5):
        async with Shop(server, lease=LEASE).open():
            await asyncio.sleep(0.3)
            begun = time.monotonic()
        took.append(time.monotonic() - begun)
    assert min(took) < 2  # at best: in a single one others may have needed the machine


async def test_a_stream_that_is_deleted_is_waited_for(server: Server) -> None:
    """The one that is made again is read, where that takes less than ``give_up`` seconds."""
    await server.publish("lamp")
    shop = Shop(server, lease=LEASE)
    async with shop.open() as running:
        await shop.until(1)
        await server.js.delete_stream(server.stream)
        await until(
            lambda: f"there is no stream {server.stream!r}: make it first" in connection(running).error
        )
        await server.make()
        await server.publish("chair")
        await shop.until(2)
        assert running.health().ready


async def test_a_stream_that_is_gone_for_long_crashes_the_topology(server: Server) -> None:
    """By a sentence that names it."""
    shop = Shop(server, lease=LEASE, give_up=1.0)

    async def run() -> None:
        async with shop.open() as running:
            await server.js.delete_stream(server.stream)
            await running.finished()

    with pytest.raises(TopologyCrashed, match=f"there is no stream '{server.stream}': make it first"):
        await run()
    await server.make()


async def test_a_start_that_fails_says_why(
    server: Server, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """By the component and the broker's reason; the password is nowhere."""
    caplog.set_level(logging.DEBUG)
    url = f"nats://clerk:s3cret-word@{HOST}:{broker.port}"
    with pytest.raises(StartFailed, match="there is no stream 'nothing'") as caught:
        async with Shop(Server(url, "nothing")).open():
            pass
    said = caplog.text + "".join(traceback.format_exception(caught.value))
    assert "orders" in said
    assert "s3cret-word" not in said
