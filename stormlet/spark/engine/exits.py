"""The way out of a partition: tuples for other stages, from their emit until they are rows.

A tuple leaves when each tree in this partition that it belongs to has its outcome. Of an attempt that failed nothing
leaves, as the input is executed again here, or given up. A tuple of several trees leaves with those that were acked: to
drop it would lose it for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from stormlet.core.tuples import AnyTuple
from stormlet.runtime.wire.inbox import Inbox
from stormlet.spark.engine.account import Account
from stormlet.spark.engine.numbering import Place
from stormlet.spark.engine.rows import CHUNK, Content, Kind, Row, pack


class Exits:
    """All ways out of one partition."""

    def __init__(self, places: Mapping[int, Place], account: Account, random: Random) -> None:
        """``places`` are those of the tasks in other stages."""
        self.inboxes: Mapping[int, Inbox] = {task: Inbox(UNBOUNDED, _nobody) for task in places}
        """By task id; nobody takes from them but this."""
        self._places = places
        self._account = account
        self._randbytes = random.randbytes
        self._waiting: dict[int, list[AnyTuple]] = {}
        self._chunks: dict[tuple[int, int], _Chunk] = {}
        self._numbers: dict[int, int] = {}

    def emitted(self) -> Iterator[AnyTuple]:
        """Iterate over the tuples that were emitted since the last call, all of which wait from now on."""
        for task, inbox in self.inboxes.items():
            if inbox.items:
                items, inbox.items = inbox.items, []
                self._waiting.setdefault(task, []).extend(items)
                yield from items

    def release(self, messages_of: Callable[[AnyTuple], tuple[int, ...] | None]) -> Iterator[Row]:
        """Let tuples leave, and iterate over the chunks that are full. ``messages_of`` gives the roots of the messages
        that a tuple belongs to; None if it must wait. It raises :class:`Dropped` if the tuple must not leave."""
        for task, tuples in list(self._waiting.items()):
            kept = list[AnyTuple]()
            for tup in tuples:
                try:
                    roots = messages_of(tup)
                except Dropped:
                    continue
                if roots is None:
                    kept.append(tup)
                else:
                    yield from self._append(task, tup, roots)
            if kept:
                self._waiting[task] = kept
            else:
                del self._waiting[task]

    @property
    def waiting(self) -> bool:
        """True if tuples wait for the outcomes of their trees."""
        return bool(self._waiting)

    def rest(self) -> Iterator[Row]:
        """Return the chunks that are not full."""
        for (task, producer), chunk in self._chunks.items():
            if chunk.values:
                yield self._row(task, producer, chunk)
        self._chunks.clear()

    def _append(self, task: int, tup: AnyTuple, roots: tuple[int, ...]) -> Iterator[Row]:
        producer = tup.source.task
        chunk = self._chunks.get((task, producer))
        if chunk is None:
            chunk = self._chunks[task, producer] = _Chunk()
        chunk.append(tup, roots)
        if len(chunk.values) >= CHUNK:
            yield self._row(task, producer, chunk)
            del self._chunks[task, producer]

    def _row(self, task: int, producer: int, chunk: _Chunk) -> Row:
        place = self._places[task]
        words = self._randbytes(8 * len(chunk.values))
        number = self._numbers[producer] = self._numbers.get(producer, 0) + 1
        content = Content(chunk.values, chunk.streams_in_short(), chunk.roots, chunk.attempts)
        row = Row(
            Kind.CHUNK,
            place.stage,
            place.partition,
            target=task,
            producer=producer,
            number=number,
            words=words,
            **pack(content),
        )
        self._account.emitted(words)
        self._account.moved(row)
        return row


UNBOUNDED = 2**62
"""More tuples than there can be: who emits to another stage never waits for room."""


class Dropped(Exception):
    """A tuple belongs to failed attempts alone."""


class _Chunk:
    """Tuples of one producer for one task."""

    __slots__ = ("attempts", "roots", "streams", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.streams: list[str] = []
        self.roots: list[tuple[int, ...]] = []
        self.attempts: list[int] = []

    def append(self, tup: AnyTuple, roots: tuple[int, ...]) -> None:
        self.values.append(tup.value)
        self.streams.append(tup.source.stream)
        self.roots.append(roots)
        self.attempts.append(tup.lineage.attempt)

    def streams_in_short(self) -> Sequence[str]:
        first = self.streams[0]
        return [first] if all(each == first for each in self.streams) else self.streams


def _nobody() -> None:
    """Wake nobody."""


def edges_of(tuples: Iterable[AnyTuple]) -> Mapping[int, int]:
    """Return the XOR of the edges of tuples, by root."""
    edges: dict[int, int] = {}
    for tup in tuples:
        if tup.root:
            edges[tup.root] = edges.get(tup.root, 0) ^ tup.edge
        else:
            for root, edge in tup.edges().items():
                edges[root] = edges.get(root, 0) ^ edge
    return edges
