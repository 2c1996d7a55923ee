"""The state of one bolt task, which outlives the instances that work with it (law K4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any

from stormlet.core.groupings import FieldNames
from stormlet.core.shortened import shortened, text_of
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
        fields: Mapping[tuple[str, str], FieldNames] | None = None,
    ) -> None:
        """``readers`` read the key from a value of each input, by component and stream, and ``fields`` are those that
        it is made of; ``outgoing`` has the rows of a committer."""
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
        self._fields = fields or {}
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

    def in_words(self, component: str, inputs: Sequence[Tuple[Any]], error: Exception) -> Exception:
        """Return what a call with these inputs has raised; in the place of what the hash of a key has raised, a
        sentence that names it."""
        for tup in inputs:
            fault = self._fault_of_key(tup, error)
            if fault is not None:
                return TypeError(f"bolt {component!r}: {fault}").with_traceback(error.__traceback__)
        return error

    def _fault_of_key(self, tup: Tuple[Any], raised: Exception) -> str | None:
        source = tup.source
        try:
            key = self.reader_of(source)(tup.value)
        except Exception:  # as it may have been that
            return None
        return unusable_key(key, source, self._fields.get((source.component, source.stream), ()), raised)

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


def unusable_key(key: Any, source: Source, fields: FieldNames, raised: Exception) -> str | None:
    """Return the reason why state cannot be kept by a key, with the way out; None if its hash raises nothing like
    this."""
    parts = dict(zip(fields, key, strict=True)) if len(fields) > 1 else dict.fromkeys(fields or ("",), key)
    # Python 3.14 puts the words of the hash into a sentence of its own.
    looked_up = _raised_by(dict[Any, Any]().get, key)
    for name, part in parts.items():
        error = _raised_by(hash, part)
        if error is None or not any(_are_alike(each, raised) for each in (error, looked_up)):
            continue
        what = f"the field {name!r}" if fields else "the key"
        why = text_of(error) if type(error) is TypeError else shortened(error)
        return (
            f"{what} of a value from {source.component!r}, {shortened(part)}, is of type {type(part).__name__}, by "
            f"which no state can be kept ({why}); group by a function of the value that makes a tuple or a text "
            f"of it"
        )
    return None


def _raised_by(function: Callable[[Any], object], key: Any) -> Exception | None:
    try:
        function(key)
    except Exception as error:
        return error
    return None


def _are_alike(error: Exception | None, raised: Exception) -> bool:
    return type(error) is type(raised) and shortened(error) == shortened(raised)
