"""Lanes: what one task has emitted for one task in another stage, from the emit until it is a chunk.

A lane has parallel lists of values, roots and, where they differ, streams and attempts. An emit appends to two of
them. Lists leave as a whole where all the trees of their values were acked, as nearly all are. Else one value after
another is looked at, up to the first whose tree is open: none overtakes another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from stormlet.core.tuples import Lineage
from stormlet.spark.engine.partition.rows import CHUNK, HEAVY, Content, pack

LARGEST: Final = 32 << 20
"""Bytes of a row from which on it is parted in two, if it has more than one value."""
SEVERAL: Final = -1
"""Stands for the roots of an output of several trees, which are elsewhere."""

MessagesOf = Callable[[Sequence[int]], "tuple[int, ...] | None"]
"""Gives the roots of the messages of an output that has these local roots; None if it must wait. Raises
:class:`Dropped` if it must not leave."""


class Dropped(Exception):
    """A tuple belongs to failed attempts alone."""


class Unpicklable(Exception):
    """A value cannot leave this process; ``__cause__`` says why."""

    def __init__(self, producer: int, stream: str, value: object) -> None:
        super().__init__(producer, stream, value)
        self.producer = producer
        self.stream = stream
        self.value = value


class Tuples:
    """Tuples in parallel lists."""

    __slots__ = ("attempts", "roots", "several", "streams", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.streams: list[str] = []
        """The stream of each value, if there are several."""
        self.roots: list[int] = []
        """The root of each value; 0 if it has none, and :data:`SEVERAL` if it has several."""
        self.several: dict[int, tuple[int, ...]] = {}
        """The roots of those that have several, by position."""
        self.attempts: dict[int, int] = {}
        """The attempts of those that are not the first, by position."""

    def roots_at(self, position: int) -> tuple[int, ...]:
        """Return the roots of a value."""
        root = self.roots[position]
        if root == SEVERAL:
            return self.several[position]
        return (root,) if root else ()

    def append(self, value: Any, stream: str | None, roots: tuple[int, ...], attempt: int) -> None:
        """Append one tuple."""
        if len(roots) > 1:
            self.several[len(self.values)] = roots
        if attempt != 1:
            self.attempts[len(self.values)] = attempt
        if stream is not None:
            self.streams.append(stream)
        self.roots.append(SEVERAL if len(roots) > 1 else roots[0] if roots else 0)
        self.values.append(value)

    def stream_at(self, position: int) -> str | None:
        """Return the stream of a value; None if all have the same."""
        return self.streams[position] if self.streams else None

    def after(self, first: int) -> Tuples:
        """Return those from this position on."""
        if not first:
            return self
        rest = Tuples()
        rest.values, rest.streams, rest.roots = self.values[first:], self.streams[first:], self.roots[first:]
        rest.several = {at - first: roots for at, roots in self.several.items() if at >= first}
        rest.attempts = {at - first: attempt for at, attempt in self.attempts.items() if at >= first}
        return rest

    def by_root(self) -> Tuples:
        """Return them in the order of their roots, or of the first ones of those with several; as they are, if some
        have none."""
        firsts = [self.several[at][0] if root == SEVERAL else root for at, root in enumerate(self.roots)]
        if 0 in firsts:
            return self
        ordered = Tuples()
        for at in sorted(range(len(firsts)), key=firsts.__getitem__):
            ordered.append(self.values[at], self.stream_at(at), self.roots_at(at), self.attempts.get(at, 1))
        return ordered

    def extend(self, other: Tuples, roots: Sequence[int]) -> None:
        """Append others, each of which has one root, with these roots in the place of their own."""
        first = len(self.values)
        self.attempts.update((first + position, attempt) for position, attempt in other.attempts.items())
        self.streams += other.streams
        self.roots += roots
        self.values += other.values


class Lane:
    """The way from one producer task to one task in another stage."""

    __slots__ = ("ids", "producer", "ready", "sorts", "streams", "target", "waiting")

    def __init__(self, producer: int, target: int, streams: Sequence[str], *, sorts: bool) -> None:
        self.producer = producer
        self.target = target
        self.ids = (target,)
        self.streams = streams
        """All streams that come this way."""
        self.sorts = sorts
        """True if the producer's calls run beside each other, and so emit in another order each time. What they emit
        leaves in the order of their inputs, so that an attempt that Spark makes again makes the same rows."""
        self.waiting = Tuples()
        """The tuples that were emitted, with the roots of their trees here."""
        self.ready = Tuples()
        """The tuples that may leave, with the roots of their messages."""

    def append(self, value: object, stream: str, roots: tuple[int, ...], lineage: Lineage) -> None:
        """A tuple was emitted."""
        self.waiting.append(value, stream if len(self.streams) > 1 else None, roots, lineage.attempt)

    def take(self) -> Tuples:
        """Take what waits."""
        waiting, self.waiting = self.waiting, Tuples()
        return waiting.by_root() if self.sorts else waiting

    def let_go(self, messages_of: MessagesOf) -> None:
        """Let those tuples leave whose trees have their outcomes, up to the first that must wait: none overtakes
        another."""
        waiting = self.take()
        for position, value in enumerate(waiting.values):
            try:
                messages = messages_of(waiting.roots_at(position))
            except Dropped:
                continue
            if messages is None:
                self.waiting = waiting.after(position)
                return
            attempt = waiting.attempts.get(position, 1)
            self.make_ready(value, waiting.stream_at(position), messages, attempt)

    def make_ready(self, value: Any, stream: str | None, messages: tuple[int, ...], attempt: int) -> None:
        """A tuple may leave."""
        self.ready.append(value, stream, messages, attempt)

    def make_all_ready(self, tuples: Tuples, messages: Sequence[int]) -> None:
        """These tuples may leave, each of which belongs to one message."""
        self.ready.extend(tuples, messages)

    def chunks(self, least: int) -> Iterator[dict[str, Any]]:
        """Iterate over the fields of chunks, while at least so many tuples are ready, or so few of large values."""
        count = len(self.ready.values)
        if count and sys.getsizeof(self.ready.values[-1]) * count >= HEAVY:
            least = 1
        if count < least:
            return
        ready, self.ready = self.ready, Tuples()
        whole = count - count % least
        for first in range(0, whole, CHUNK):
            yield from self._parted(ready, first, min(first + CHUNK, whole))
        self.ready = ready.after(whole)

    def _parted(self, ready: Tuples, first: int, end: int) -> Iterator[dict[str, Any]]:
        fields = self._packed(self._content(ready, first, end))
        if len(fields["payload"]) <= LARGEST or end - first == 1:
            yield fields
            return
        middle = (first + end) // 2
        yield from self._parted(ready, first, middle)
        yield from self._parted(ready, middle, end)

    def _content(self, ready: Tuples, first: int, end: int) -> Content:
        streams: Sequence[str] = ready.streams[first:end] or self.streams
        if len(set(streams)) == 1:
            streams = streams[:1]
        roots, counts, attempts = ready.roots[first:end], list[int](), list[int]()
        if ready.several or 0 in roots:
            each = [ready.roots_at(position) for position in range(first, end)]
            roots, counts = list(chain.from_iterable(each)), list(map(len, each))
        if ready.attempts:
            attempts = [ready.attempts.get(position, 1) for position in range(first, end)]
        return Content(ready.values[first:end], streams, roots, counts, attempts)

    def _packed(self, content: Content) -> dict[str, Any]:
        try:
            return pack(content)
        except Exception as error:
            raise self._unpicklable(content) from error

    def _unpicklable(self, content: Content) -> Unpicklable:
        for position, value in enumerate(content.values):
            stream = content.streams[position if len(content.streams) > 1 else 0]
            try:
                pack(Content([value], [stream], [], [], []))
            except Exception:
                return Unpicklable(self.producer, stream, value)
        return Unpicklable(self.producer, content.streams[0], content.values)
