"""The cases that every connector must pass, on a real Valkey."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from stormlet.connect import redis
from stormlet.connect.redis import client, session
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.brokers.processes import HOST, Broker
from tests.connect.conformance import CASES, QUEUE, Case, name_of
from tests.connect.proxied import LEASE, ProxiedBench

GROUP = "g"


class RealRedis(ProxiedBench):
    """The connector with a Valkey, behind a proxy that cuts."""

    name = "redis"
    rules = redis.Stream(None, QUEUE, group=GROUP, lease=LEASE).capabilities
    faults = frozenset({"cut", "gone", "silent", "restart", "leases", "missing", "unroutable"})
    silent = 6.0  # longer than an impatient client waits for an answer

    def __init__(self, server: Broker) -> None:
        self.server = server

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[None]:
        async with Redis(port=self.server.port, socket_timeout=60) as self.client:
            await self.client.flushall()
            await self.client.xgroup_create(QUEUE, GROUP, "0", mkstream=True)
            yield

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if self._is_impatient:
                patch.setattr(client, "ANSWERS_WITHIN", 2.5)
                patch.setattr(client, "BEAT", 1.0)
                patch.setattr(session, "BEAT", 1.0)
            super().run(work)

    def hold(self, case: Case) -> None:
        self._is_impatient = name_of(case).startswith("06")
        super().hold(case)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.proxy.port}/0"

    def source(self, **options: Any) -> Source[Any]:
        return redis.Stream(self.url, QUEUE, **{"group": GROUP, "lease": LEASE, "lag_every": 1.0, **options})

    def sink(self) -> Sink[bytes]:
        return redis.Add[bytes](self.url, QUEUE)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        await self.client.xadd(QUEUE, {"body": body})

    async def left(self) -> list[bytes]:
        await self.is_there()
        if await self.client.type(QUEUE) != b"stream":
            return []
        (group,) = await self.client.xinfo_groups(QUEUE)
        entries = dict(await self.client.xrange(QUEUE))
        pending = await self.client.xpending_range(QUEUE, GROUP, "-", "+", 10_000)
        new = [
            fields for _, fields in await self.client.xrange(QUEUE, f"({group['last-delivered-id'].decode()}")
        ]
        return sorted(
            fields[b"body"] for fields in [*(entries[each["message_id"]] for each in pending), *new]
        )

    async def dead(self) -> list[bytes]:
        return []

    async def bring(self, fault: str) -> None:
        if fault == "missing":
            await self.client.delete(QUEUE)
        elif fault == "unroutable":  # another type than a stream
            await self.client.set(QUEUE, "")
        else:
            await super().bring(fault)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_conformance(valkey: Broker, case: Case) -> None:
    """The same cases as the twins."""
    RealRedis(valkey).hold(case)
