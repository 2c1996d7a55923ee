"""The components that several of these tests use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from stormlet import Explanation, Running, Stream, Topology
from tests.runtime.explain.reading import lines

__all__ = ["explained", "lines", "no_answer", "one_bolt", "wait_for_ever"]


async def no_answer() -> None:
    await asyncio.Event().wait()


async def wait_for_ever(value: object) -> None:
    await no_answer()


@asynccontextmanager
async def one_bolt(
    bolt: Any, *, record: float = 0.0, run: Any = None, **options: Any
) -> AsyncIterator[tuple[Running, Stream[Any]]]:
    """A fed spout and one bolt; what is left at the end fails at once."""
    topology = Topology("stuck", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("bolt", bolt, source.shuffle(), **options)
    async with topology.run(**(run or {})) as running:
        running.record_edges(record)
        yield running, source


async def explained(bolt: Any, *values: object, **options: Any) -> Explanation:
    """Of the last of these values, after some seconds."""
    async with one_bolt(bolt, **options) as (running, source):
        trees = [await running.emit(source, value) for value in values]
        await asyncio.sleep(12.5)
        return trees[-1].explain()
