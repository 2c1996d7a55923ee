"""A bench whose connector reaches its broker through a proxy that cuts."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tests.brokers.proxy import Proxy
from tests.connect.conformance import Bench

LEASE = 4.0
"""Seconds: with less, a machine with other work has them end while a message is at work."""
DOWN = 8.0
"""Seconds for which a restart takes the broker away: longer than a lease."""
LONGEST = 7.0
"""The longest sleep of a case that is worth its time."""


class Server(Protocol):
    """A broker that can be killed."""

    port: int

    def kill(self) -> None: ...
    def start(self) -> None: ...


class ProxiedBench(Bench):
    """Brings all faults but those of what the broker holds."""

    server: Server
    silent = 4.0
    """Seconds for which nothing comes through: longer than two pings."""

    @abstractmethod
    def fresh(self) -> AbstractAsyncContextManager[object]:
        """Have an empty place, for one case."""

    def begin(self) -> None:
        self._later: asyncio.Task[None] | None = None

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            async with self.fresh():
                try:
                    await work()
                finally:
                    await self.is_there()

        with Proxy(self.server.port) as self.proxy:
            asyncio.run(running())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, LONGEST))

    async def is_there(self) -> None:
        """Wait until the broker can be reached."""
        if self._later is not None:
            await self._later

    async def bring(self, fault: str) -> None:
        match fault:
            case "cut":
                await asyncio.to_thread(self.proxy.reset)
            case "gone":
                await asyncio.to_thread(self.proxy.refuse)
            case "back":
                await asyncio.to_thread(self.proxy.pass_on)
            case "silent":
                await asyncio.to_thread(self.proxy.swallow)
                self._later = asyncio.create_task(self._heard_again())
            case "restart":
                await self.is_there()
                await asyncio.to_thread(self.server.kill)
                self._later = asyncio.create_task(self._started_again())
            case _:
                raise NotImplementedError(fault)

    async def _heard_again(self) -> None:
        await asyncio.sleep(self.silent)
        await asyncio.to_thread(self.proxy.refuse)
        await asyncio.to_thread(self.proxy.pass_on)

    async def _started_again(self) -> None:
        await asyncio.sleep(DOWN)
        await asyncio.to_thread(self.server.start)
