"""Sessions without a topology: what a driver would give them, and what it would tell them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from time import monotonic
from typing import Any

from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.session import Delivery, Item, Rejection, Session, Settlement, Written
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.core.settlement.prefix import Prefix


def context(credit: int = 100, connection: int = 1) -> SourceTask:
    """What the driver gives a source whose broker has no partitions."""

    def take(name: str, most: int) -> Prefix:
        raise AssertionError(f"{name} is no partition")

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("there are no partitions")

    names = ("topology", "orders", 0, 1, "host-orders-0", connection, Random(1))
    return SourceTask(*names, credit, take, revoke, lambda places: None)


@asynccontextmanager
async def begun(end: Source[Any] | Sink[Any], credit: int = 100) -> AsyncIterator[Any]:
    """A session of a source or a sink."""
    session = await end.begin(read_address(end.url or "", where="here"), context(credit))
    try:
        yield session
    finally:
        await session.close()


async def write(sink: Sink[Any], *values: object) -> Sequence[Written]:
    """Write values by a sink's session."""
    async with begun(sink) as session:
        written: Sequence[Written] = await session.write(
            [each if isinstance(each, Item) else Item(each) for each in values]
        )
        return written


async def received(session: Session, count: int, within: float = 30.0) -> list[Delivery]:
    """Receive until there are so many, or nothing comes any more for so long."""
    got = list[Delivery]()
    while len(got) < count and (more := await session.receive(count - len(got), within)):
        got += more
    return got


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    """Their bodies, as text."""
    return [delivery.body.decode() for delivery in deliveries]


def done(*deliveries: Delivery) -> Settlement:
    """These are done."""
    return Settlement(done=[delivery.receipt for delivery in deliveries])


def returned(*deliveries: Delivery) -> Settlement:
    """These are given back."""
    return Settlement(returned=[delivery.receipt for delivery in deliveries])


def rejected(delivery: Delivery, reason: str) -> Settlement:
    """This one is given up."""
    return Settlement(rejected=[Rejection(delivery.receipt, reason)])


def numbered(count: int) -> list[str]:
    """The texts ``"0"``, ``"1"`` and so on."""
    return list(map(str, range(count)))


async def soon(condition: Callable[[], Awaitable[object]], seconds: float = 60.0) -> None:
    """Wait until this is true; for so long that only what never comes is missed, on whatever machine."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - a server is watched
            await asyncio.sleep(0.02)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until this, which asks nobody, is true."""

    async def is_true() -> bool:
        return bool(condition())

    await soon(is_true, seconds)


async def quickest(work: Callable[[], Awaitable[object]], times: int = 5) -> float:
    """The seconds that this takes at best: each single time has those for which the machine was busy."""
    took = list[float]()
    for _ in range(times):
        begun = monotonic()
        await work()
        took.append(monotonic() - begun)
    return min(took)
