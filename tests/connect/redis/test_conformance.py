"""The cases that every connector must pass, on a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from stormlet.connect import redis
from stormlet.connect.redis import client, session
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.conformance import CASES, QUEUE, Bench, Case, name_of

SILENT = 2.5
"""Seconds for which nothing comes through: longer than a client waits for an answer."""
DOWN = 6.0
"""Seconds for which a restart takes the broker away: longer than a lease."""
LONGEST = 7.0
"""The longest sleep of a case that is worth its time."""


class RealRedis(Bench):
    """The connector with a Valkey, behind a proxy that cuts."""

    name = "redis"
    rules = redis.Stream(None, QUEUE, group="g", lease=2.0).capabilities
    faults = frozenset({"cut", "gone", "silent", "restart", "leases", "missing", "unroutable"})

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.restarting: asyncio.Task[None] | None = None

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            async with Redis(port=self.broker.port) as self.client:
                await self.client.flushall()
                await self.client.xgroup_create(QUEUE, "g", "0", mkstream=True)
                await work()
                if self.restarting is not None:
                    await self.restarting

        with Proxy(self.broker.port) as self.proxy, pytest.MonkeyPatch.context() as patch:
            if self._is_impatient:
                patch.setattr(client, "ANSWERS_WITHIN", 1.0)
                patch.setattr(client, "BEAT", 1.0)
                patch.setattr(session, "BEAT", 1.0)
            asyncio.run(running())

    def hold(self, case: Case) -> None:
        self._is_impatient = name_of(case).startswith("06")
        super().hold(case)

    def begin(self) -> None:
        """The broker is there; its data begin anew in `run`."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, LONGEST))

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.proxy.port}/0"

    def source(self, **options: Any) -> Source[Any]:
        return redis.Stream(self.url, QUEUE, **{"group": "g", "lease": 2.0, "lag_every": 1.0, **options})

    def sink(self) -> Sink[bytes]:
        return redis.Add[bytes](self.url, QUEUE)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        await self.client.xadd(QUEUE, {"body": body})

    async def left(self) -> list[bytes]:
        if self.restarting is not None and not self.restarting.done():
            await self.restarting
        if await self.client.type(QUEUE) != b"stream":
            return []
        (group,) = await self.client.xinfo_groups(QUEUE)
        entries = dict(await self.client.xrange(QUEUE))
        pending = await self.client.xpending_range(QUEUE, "g", "-", "+", 10_000)
        new = [
            fields for _, fields in await self.client.xrange(QUEUE, f"({group['last-delivered-id'].decode()}")
        ]
        return sorted(
            fields[b"body"] for fields in [*(entries[each["message_id"]] for each in pending), *new]
        )

    async def dead(self) -> list[bytes]:
        return []

    async def bring(self, fault: str) -> None:
        match fault:
            case "cut":
                await asyncio.to_thread(self.proxy.reset)
            case "restart":
                if self.restarting is not None:
                    await self.restarting
                await asyncio.to_thread(self.broker.kill)
                self.restarting = asyncio.create_task(self._later())
            case "gone":
                await asyncio.to_thread(self.proxy.refuse)
            case "back":
                await asyncio.to_thread(self.proxy.pass_on)
            case "silent":
                await asyncio.to_thread(self.proxy.swallow)
                self.restarting = asyncio.create_task(self._heard_again())
            case "missing":
                await self.client.delete(QUEUE)
            case "unroutable":  # another type than a stream
                await self.client.set(QUEUE, "")
            case _:
                raise NotImplementedError(fault)

    async def _heard_again(self) -> None:
        await asyncio.sleep(SILENT)
        await asyncio.to_thread(self.proxy.refuse)
        await asyncio.to_thread(self.proxy.pass_on)

    async def _later(self) -> None:
        await asyncio.sleep(DOWN)
        await asyncio.to_thread(self.broker.start)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_conformance(valkey: Broker, case: Case) -> None:
    """The same cases as the twins."""
    RealRedis(valkey).hold(case)
