"""Portions of rows on their way to Spark: each is converted by itself, and many are written at a time.

A write costs Spark 0.15 s however few rows it has. So while one is under way, the rows of the next one are gathered
and converted, a portion after another, and the next write takes all that wait. A sink that has little to do writes
each portion at once; the writes of one that they hold up become larger, as fast as rows come.

What is converted is bounded by bytes. A portion that would take it beyond the bound waits with its conversion until a
write has ended. From the largest portion that was seen follows how many may be under way, so that no more come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stormlet.spark.arrow.tables import Batch

if TYPE_CHECKING:
    from pyarrow import Table

AT_ONCE = 32
"""Portions that may be under way at a time."""
FIRST_AT_ONCE = 2
"""The same before it is known how large one is."""
MOST_BYTES = 64 * 2**20
"""Bytes of converted rows at a time; one portion may be larger."""


@dataclass(slots=True, eq=False)
class Portion:
    """Rows that were given together."""

    batch: Batch
    size: int
    """Bytes of the converted rows."""
    over: bool = False
    """True once it was written, or could not be."""
    error: Exception | None = None
    """The reason that it could not."""


class Portions:
    """The portions of one task. ``convert`` makes a table of values, ``write`` writes tables durably, and ``allow`` is
    told how many portions may be under way."""

    def __init__(
        self,
        convert: Callable[[Sequence[object]], Awaitable[Batch]],
        write: Callable[[Sequence[Table]], Awaitable[None]],
        allow: Callable[[int], None],
    ) -> None:
        self.held = 0
        """Bytes of what is converted and not written."""
        self._convert = convert
        self._write = write
        self._allow = allow
        self._largest = 0
        self._waiting: list[Portion] = []
        self._conversion = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._released = asyncio.Event()

    async def written(self, values: Sequence[object]) -> Batch:
        """Have these values written, together with others. Raises what the write raises."""
        portion = await self._converted(values)
        try:
            async with self._turn:
                if not portion.over:
                    await self._write_waiting()
        finally:
            self._release(portion)
        if portion.error is not None:
            raise portion.error
        return portion.batch

    async def _converted(self, values: Sequence[object]) -> Portion:
        async with self._conversion:
            while self.held and self.held + self._largest > MOST_BYTES:
                self._released.clear()
                await self._released.wait()
            batch = await self._convert(values)
            portion = Portion(batch, batch.table.nbytes)
            self._waiting.append(portion)
            self._note(portion)
            return portion

    def _note(self, portion: Portion) -> None:
        self.held += portion.size
        self._largest = max(self._largest, portion.size, 1)
        self._allow(max(1, min(AT_ONCE, MOST_BYTES // self._largest)))

    async def _write_waiting(self) -> None:
        portions = list(self._waiting)
        error: Exception | None = None
        try:
            await self._write([each.batch.table for each in portions])
        except Exception as raised:
            error = raised
        for each in portions:
            each.over, each.error = True, error
        del self._waiting[: len(portions)]

    def _release(self, portion: Portion) -> None:
        if not portion.over:  # it is cancelled
            self._waiting.remove(portion)
        self.held -= portion.size
        self._released.set()
