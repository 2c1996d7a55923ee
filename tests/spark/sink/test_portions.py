"""Portions of rows: which of them are written together, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from stormlet.spark.arrow.tables import Batch
from stormlet.spark.sink.portions import AT_ONCE, MOST_BYTES, Portions
from tests.helpers import now

pytestmark = pytest.mark.simulated_time

MEBI = 2**20
EMPTY = pa.py_buffer(bytes(100 * MEBI))


class Place:
    """Where a write takes a second and a conversion a tenth; a value is a table of so many MiB."""

    def __init__(self) -> None:
        self.converted: list[tuple[int, float]] = []
        self.written: list[tuple[list[int], float]] = []
        self.most_held = 0
        self.allowed = 0
        self.failing = 0
        self.portions = Portions(self.convert, self.write, self.allow)

    async def convert(self, values: Sequence[Any]) -> Batch:
        await asyncio.sleep(0.1)
        self.converted.append((values[0], round(now(), 3)))
        table = pa.table({"a": pa.Array.from_buffers(pa.int8(), values[0] * MEBI, [None, EMPTY])})
        self.most_held = max(self.most_held, self.portions.held + table.nbytes)
        return Batch(table, {})

    async def write(self, tables: Sequence[pa.Table]) -> None:
        self.written.append(([table.nbytes // MEBI for table in tables], round(now(), 3)))
        await asyncio.sleep(1.0)
        if self.failing:
            self.failing -= 1
            raise OSError("the disk is full")

    def allow(self, at_once: int) -> None:
        self.allowed = at_once

    def begin(self, *sizes: int) -> list[asyncio.Task[Batch]]:
        return [asyncio.ensure_future(self.portions.written([size])) for size in sizes]


async def test_those_that_come_during_a_write_are_written_together() -> None:
    """The first one at once, and alone; they are converted beside its write."""
    place = Place()
    await asyncio.gather(*place.begin(1, 2, 3, 4))
    assert place.converted == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]
    assert place.written == [([1], 0.1), ([2, 3, 4], 1.1)]
    assert place.portions.held == 0


async def test_a_portion_that_nothing_holds_up_is_written_alone() -> None:
    """Each when it comes."""
    place = Place()
    for size in (1, 2):
        await place.portions.written([size])
    assert [sizes for sizes, _ in place.written] == [[1], [2]]


@pytest.mark.parametrize(("size", "allowed"), [(0, AT_ONCE), (1, AT_ONCE), (10, 6), (64, 1), (100, 1)])
async def test_how_many_there_may_be_follows_from_their_size(size: int, allowed: int) -> None:
    """As many as fit the bound together, and one that is larger."""
    place = Place()
    await place.portions.written([size])
    assert place.allowed == allowed


async def test_the_largest_one_counts() -> None:
    """Another one may be as large."""
    place = Place()
    for size in (1, 20, 1):
        await place.portions.written([size])
    assert place.allowed == 3


async def test_what_is_held_is_bounded() -> None:
    """However many come: what would be too much is converted when a write has ended."""
    place = Place()
    await asyncio.gather(*place.begin(20, 20, 20, 20, 20, 20))
    assert place.most_held == 60 * MEBI < MOST_BYTES
    assert [sizes for sizes, _ in place.written] == [[20], [20, 20], [20], [20, 20]]
    assert place.portions.held == 0


async def test_one_may_be_larger_than_the_bound() -> None:
    """Alone."""
    place = Place()
    await asyncio.gather(*place.begin(100, 1, 1))
    assert [sizes for sizes, _ in place.written] == [[100], [1], [1]]


async def test_a_write_that_fails_fails_all_that_is_in_it() -> None:
    """And nothing else; the next one goes on."""
    place = Place()
    place.failing = 1
    results = await asyncio.gather(*place.begin(1, 2, 3), return_exceptions=True)
    assert [type(each) for each in results] == [OSError, Batch, Batch]
    place.failing = 2
    results = await asyncio.gather(*place.begin(1, 2, 3), return_exceptions=True)
    assert [type(each) for each in results] == [OSError, OSError, OSError]
    assert place.portions.held == 0


async def test_one_that_is_cancelled_while_it_waits_is_not_written() -> None:
    """The others are."""
    place = Place()
    first, second, third = place.begin(1, 2, 3)
    await asyncio.sleep(0.5)
    second.cancel()
    await asyncio.wait([first, second, third])
    assert [sizes for sizes, _ in place.written] == [[1], [3]]
    assert place.portions.held == 0


async def test_a_write_that_is_cancelled_leaves_the_others_to_the_next() -> None:
    """What was in it with the one that wrote is written again: nobody knows what became of it."""
    place = Place()
    first, second, third = place.begin(1, 2, 3)
    await asyncio.sleep(1.5)
    second.cancel()
    await asyncio.wait([first, second, third])
    assert [sizes for sizes, _ in place.written] == [[1], [2, 3], [3]]
    assert not third.exception()
    assert place.portions.held == 0
