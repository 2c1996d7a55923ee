"""Whole topologies over a real Valkey, through the driver, with kills and cuts."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from redis.exceptions import RedisError

from stormlet import Reject, StartFailed, Topology
from stormlet.connect import redis
from stormlet.core.outcomes import DeadLetter
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.redis.shop import PENDING, Order, shop
from tests.connect.redis.streams import Place, place
from tests.connect.sessions import soon, until

pytestmark = pytest.mark.asyncio
ROOT = Path(__file__).parents[3]


async def put(at: Place, count: int) -> None:
    """Write orders 0 to count."""
    async with at.client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.xadd(at.stream, {"body": f'{{"id":{number}}}'})
        await pipeline.execute()


async def results(at: Place) -> Counter[int]:
    """How often each order was done."""
    found = await at.client.xrange(f"{at.stream}-done")
    return Counter(int(fields[b"body"][6:-1]) for _, fields in found)


async def left(at: Place) -> int:
    """Entries that the broker has not been told to be done."""
    groups = await at.client.xinfo_groups(at.stream)
    return sum(each["pending"] + (each["lag"] or 0) for each in groups) if groups else 1


async def until_nothing_is_left(at: Place, seconds: float = 120) -> None:
    """Wait until the group has acked everything."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                if not await left(at):
                    return
            except RedisError:  # it is down
                pass
            await asyncio.sleep(0.05)


@contextmanager
def running(at: Place, lease: float = 5.0) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the shop."""
    command = [sys.executable, "-m", "tests.connect.redis.shop", at.url, at.stream, str(lease)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


async def test_everything_arrives_once_without_faults(valkey: Broker) -> None:
    """And the broker knows that all is done."""
    async with place(valkey) as at:
        await put(at, 1000)
        async with shop(at.url, at.stream).run() as run:
            await until_nothing_is_left(at)
            assert run.statistics().components["orders"].acked == 1000
        assert await results(at) == Counter(range(1000))


@pytest.mark.timeout(600)
async def test_a_process_that_is_killed_at_any_moment_loses_nothing(valkey: Broker) -> None:
    """Done twice is at most what was pending, for each kill."""
    kills, random = 20, Random(7)
    async with place(valkey) as at:
        await put(at, 20_000)
        for _ in range(kills):
            with running(at) as process:
                await asyncio.sleep(random.uniform(0, 0.3))
                process.kill()
        with running(at):
            await until_nothing_is_left(at, 300)
        done = await results(at)
        assert set(done) == set(range(20_000))
        twice = done.total() - 20_000
        print(f"{twice} of 20,000 twice after {kills} kills")
        assert twice <= kills * 2 * PENDING


async def test_a_process_that_is_asked_to_end_does_nothing_twice(valkey: Broker) -> None:
    """What it had not begun goes to the next one."""
    async with place(valkey) as at:
        await put(at, 5000)
        for _ in range(5):
            with running(at, lease=60) as process:
                await asyncio.sleep(0.15)
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, 60) == 0
        with running(at, lease=60):
            await until_nothing_is_left(at)
        assert await results(at) == Counter(range(5000))


async def test_two_processes_share_the_work(valkey: Broker) -> None:
    """Though they have the same name on the same host; one is killed, and the other takes over."""
    async with place(valkey) as at:
        await put(at, 10_000)
        with running(at) as first, running(at):

            async def are_two() -> bool:
                return len(await at.consumers()) == 2

            await soon(are_two)
            first.kill()
            await until_nothing_is_left(at)
        done = await results(at)
        assert set(done) == set(range(10_000))
        assert done.total() <= 10_000 + 2 * PENDING


async def test_a_broker_that_is_killed_and_comes_again_loses_nothing(valkey: Broker) -> None:
    """The topology goes on as if nothing had been."""
    async with place(valkey) as at:
        await put(at, 10_000)
        async with shop(at.url, at.stream).run():
            for _ in range(3):
                await asyncio.sleep(0.2)
                await asyncio.to_thread(valkey.restart)
            await until_nothing_is_left(at)
        done = await results(at)
        assert set(done) == set(range(10_000))
        assert done.total() <= 10_000 + 3 * 2 * PENDING


async def test_resets_and_black_holes_lose_nothing(valkey: Broker) -> None:
    """A black hole is found when an answer is due."""
    with Proxy(valkey.port) as proxy:
        async with place(valkey) as at:
            await put(at, 10_000)
            async with shop(f"redis://{HOST}:{proxy.port}/0", at.stream).run():
                for _ in range(5):
                    await asyncio.sleep(0.1)
                    await asyncio.to_thread(proxy.reset)
                await asyncio.to_thread(proxy.swallow)
                await asyncio.sleep(12)
                await asyncio.to_thread(proxy.reset)
                await asyncio.to_thread(proxy.pass_on)
                await until_nothing_is_left(at)
            done = await results(at)
            assert set(done) == set(range(10_000))
            assert done.total() <= 10_000 + 6 * 2 * PENDING


async def test_a_refused_reconnect_is_no_crash(valkey: Broker) -> None:
    """Health says so meanwhile."""
    with Proxy(valkey.port) as proxy:
        async with place(valkey) as at:
            await put(at, 100)
            async with shop(f"redis://{HOST}:{proxy.port}/0", at.stream).run() as run:
                await until_nothing_is_left(at)
                await asyncio.to_thread(proxy.refuse)
                await until(lambda: not run.health().ready)
                await asyncio.to_thread(proxy.pass_on)
                await put(at, 100)
                await until_nothing_is_left(at)


async def test_poison_and_what_cannot_be_decoded_are_dead_letters(valkey: Broker) -> None:
    """Each once, with the reason; the broker is told that they are done."""
    letters: list[DeadLetter] = []

    def refuse(order: Order) -> None:
        if order.id == 3:
            raise Reject("three is too many")

    async with place(valkey) as at:
        await put(at, 5)
        await at.add("not JSON")
        topology = Topology("poison")
        orders = topology.spout("orders", redis.Stream(at.url, at.stream, group="g", as_=Order))
        topology.bolt("refuse", refuse, orders.shuffle())
        async with topology.run(dead_letters=letters.append):
            await until_nothing_is_left(at)
        three, undecoded = sorted(letters, key=lambda each: isinstance(each.value, bytes))
        assert three.value == Order(3)
        assert "three is too many" in str(three.failure)
        assert undecoded.value == b"not JSON"


async def test_a_tree_longer_than_the_lease_is_not_delivered_again(valkey: Broker) -> None:
    """Its lease is renewed, and another source gets nothing of it."""
    seen: list[int] = []

    async def slow(order: Order) -> None:
        seen.append(order.id)
        await asyncio.sleep(7)

    async with place(valkey) as at:
        await put(at, 3)
        topology = Topology("slow")
        orders = topology.spout("orders", redis.Stream(at.url, at.stream, group="g", as_=Order, lease=3.0))
        topology.bolt("slow", slow, orders.shuffle(), concurrency=5)
        async with topology.run(), topology.run():
            await until_nothing_is_left(at)
        assert sorted(seen) == [0, 1, 2]


async def test_lag_is_that_of_the_broker(valkey: Broker) -> None:
    """0 when all is done."""
    async with place(valkey) as at:
        await put(at, 10)
        topology = Topology("lag")
        stream = redis.Stream(at.url, at.stream, group="g", as_=Order, lag_every=0.05)
        topology.bolt("none", lambda order: None, topology.spout("orders", stream).shuffle())
        async with topology.run() as run:
            await until_nothing_is_left(at)
            await until(lambda: [each.lag for each in run.health().connections.values()] == [{at.stream: 0}])


async def test_a_wrong_password_fails_the_start(valkey: Broker) -> None:
    """The error names the broker and no password, in all of its causes."""
    password = "open sesame"[5:]
    async with place(valkey) as at:
        with pytest.raises(StartFailed) as raised:
            async with shop(f"redis://:{password}@{HOST}:{valkey.port}/0", at.stream).run():
                pass
        said = "".join(traceback.format_exception(raised.value))
        assert f"redis://:***@{HOST}:{valkey.port}" in said
        assert password not in said
