"""Topologies to be looked at, and clients that look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn

from stormlet import Running, Topology
from stormlet.ui.guard import Asgi

EVIL = "<script>alert('ü')</script>"
"""A name of a component."""
TOKEN = "a-token-of-enough-characters"


def numbers() -> Iterator[int]:
    yield from range(1_000_000_000)


def split(number: int) -> tuple[int, int]:
    return number % 7, number


def busy(**options: Any) -> Topology:
    """A spout, a bolt that fails now and then, a slow one whose queue is full, and one with an evil name."""

    def sometimes(number: int) -> int:
        if number % 50 == 0:
            raise ValueError(f"no {number}")
        return number

    async def slow(number: int) -> int:
        await asyncio.sleep(0.02)
        return number

    topology = Topology(
        "busy",
        **{
            "max_attempts": 2,
            "replay_delay": 0.01,
            "queue_capacity": 20,
            "max_spout_pending": 100,
            **options,
        },
    )
    source = topology.spout("source", numbers)
    checked = topology.bolt("check", sometimes, source.shuffle(), parallelism=2)
    looked_up = topology.bolt("look-up", slow, checked.shuffle(), concurrency=2)
    topology.bolt(EVIL, print_nothing, looked_up.fields())
    return topology


def print_nothing(number: int) -> None:
    """Do nothing."""


@asynccontextmanager
async def asked(app: Asgi, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the application, in this process."""
    transport = httpx.ASGITransport(
        app, client=options.pop("peer", ("127.0.0.1", 1)), raise_app_exceptions=False
    )
    options.setdefault("base_url", "http://127.0.0.1")
    async with httpx.AsyncClient(transport=transport, **options) as client:
        yield client


class Server(uvicorn.Server):
    """A server that leaves signals to the tests."""

    @property
    def port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


@asynccontextmanager
async def served(app: Asgi, **options: Any) -> AsyncIterator[Server]:
    """The application on a port of loopback."""
    server = Server(uvicorn.Config(app, port=0, lifespan="off", log_level="error", **options))
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    try:
        yield server
    finally:
        server.should_exit = True
        await task


async def until_busy(running: Running, acked: int = 50) -> None:
    """Wait until some messages are acked, and some have failed."""
    while running.statistics().components["source"].acked < acked:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
