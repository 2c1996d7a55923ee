"""Runs one bolt, and reads what is explained of its trees."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from stormlet import Explanation, Running, Stream, Topology


def lines(explanation: Explanation) -> list[str]:
    """Its text line by line, without line numbers of files and without roots."""
    text = re.sub(r"(\.py):\d+", r"\1", str(explanation))
    return [line.strip() for line in re.sub(r"root \d+", "root", text).splitlines()]


@asynccontextmanager
async def one_bolt(
    bolt: Any, *, record: float = 1.0, **options: Any
) -> AsyncIterator[tuple[Running, Stream[Any]]]:
    """A fed spout and one bolt; what is left at the end fails at once."""
    topology = Topology("stuck", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("bolt", bolt, source.shuffle(), **options)
    async with topology.run() as running:
        running.record_edges(record)
        yield running, source


async def explained(bolt: Any, *values: object, seconds: float = 12.5, **options: Any) -> list[str]:
    """What is told of the last of these values after some seconds."""
    async with one_bolt(bolt, **options) as (running, source):
        trees = [await running.emit(source, value) for value in values]
        await asyncio.sleep(seconds)
        return lines(trees[-1].explain())
