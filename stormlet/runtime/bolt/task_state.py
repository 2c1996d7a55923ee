"""The state of one bolt task, which outlives the instances that work with it (law K4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from stormlet.core.epochs import Attempt
from stormlet.core.tables import AnyTable
from stormlet.core.timers import Timers
from stormlet.core.tuples import Tuple

KeyReader = Callable[[Any], Any]


class TaskState:
    """Tables, timers and keys of one task, and the attempt of the open epoch."""

    def __init__(
        self,
        attempt: Attempt,
        tables: Mapping[str, AnyTable],
        timers: Timers | None,
        readers: Mapping[tuple[str, str], KeyReader],
    ) -> None:
        """``readers`` read the key from a value of each input, by component and stream."""
        self.attempt = attempt
        self.tables = tables
        self.timers = timers
        self.now = 0.0
        """The time of the epoch, in seconds since 1970."""
        self.columns = tuple(tables.values())
        self._readers = readers
        self._turns: dict[Any, asyncio.Lock] = {}
        self._waiting: dict[Any, int] = {}

    def key_of(self, tup: Tuple[Any]) -> Any:
        """Return the key of an input, by what its grouping says."""
        return self._readers[tup.component, tup.stream](tup.value)

    @property
    def touched(self) -> bool:
        """True if something has changed since the last :meth:`begin_call`."""
        return any(each.touched for each in self.columns)

    def begin_call(self) -> None:
        """A call of user code begins."""
        for each in self.columns:
            each.touched = False

    @asynccontextmanager
    async def turn(self, key: Any) -> AsyncGenerator[None]:
        """Wait for the calls of this key that came before: no two of one key overlap (law K2)."""
        lock = self._turns.setdefault(key, asyncio.Lock())
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._turns[key]
