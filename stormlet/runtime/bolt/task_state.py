"""The state of one bolt task, which outlives the instances that work with it (law K4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any

from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.outgoing import Outgoing, OutgoingTable
from stormlet.core.state.timers import Timers
from stormlet.core.tuples import Source, Tuple
from stormlet.runtime.epoch import OpenEpoch

KeyReader = Callable[[Any], Any]


class TaskState:
    """Tables, timers and keys of one task, and the attempt of the open epoch."""

    def __init__(
        self,
        epoch: OpenEpoch,
        tables: dict[str, AnyTable],
        timers: Timers | None,
        readers: Mapping[tuple[str, str], KeyReader],
        outgoing: Outgoing | OutgoingTable | None = None,
    ) -> None:
        """``readers`` read the key from a value of each input, by component and stream; ``outgoing`` has the rows of a
        committer."""
        self.outgoing = outgoing
        self.has_gathered = False
        """True if an instance of this attempt has inputs that live on in it alone (law X7)."""
        self.attempt = epoch.attempt
        self.spoil = epoch.spoil
        self.tables = tables
        self.timers = timers
        self.now = 0.0
        """The time of the epoch, in seconds since 1970."""
        self.columns = tuple(tables.values())
        self._readers = readers
        self._by_source: dict[Source, KeyReader] = {}
        self._turns: dict[Any, asyncio.Lock] = {}
        self._waiting: dict[Any, int] = {}

    def reader_of(self, source: Source) -> KeyReader:
        """Return the function that reads the key from a value of this source, by what its grouping says."""
        found = self._by_source.get(source)
        if found is None:
            found = self._by_source[source] = self._readers[source.component, source.stream]
        return found

    def execute_of(self, bolt: Any) -> Callable[..., Any]:
        """Return what is called with each input of a keyed bolt: its ``execute``."""
        execute: Callable[..., Any] = bolt.execute
        return execute

    def call(
        self, tup: Tuple[Any], context: Context | None, function: Callable[..., object], *arguments: object
    ) -> object:
        """Call user code with an input, in this context if there is one; note that its trees have reached state."""
        for each in self.columns:
            each.touched = False
        try:
            result = function(*arguments) if context is None else context.run(function, *arguments)
        except BaseException:
            self.note_raised(tup)
            raise
        # Before anything is awaited: it must not go on after its tree was replayed.
        self.attempt.reach(tup.roots)
        return result

    def note_raised(self, tup: Tuple[Any]) -> None:
        """A call with this input has raised: its trees have reached state if it has changed something."""
        if any(each.touched for each in self.columns):
            self.attempt.reach(tup.roots)

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
