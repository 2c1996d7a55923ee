"""The way out of a partition: tuples for other stages, from their emit until they are rows.

A tuple leaves when each tree in this partition that it belongs to has its outcome, and after those that were emitted
before it for the same task: as in process, none overtakes another. Of an attempt that failed nothing
leaves, as the input is executed again here, or given up. A tuple of several trees leaves with those that were acked: to
drop it would lose it for them.

An outlet that leads to other stages makes no tuples, only entries in a :class:`Lane`, which has the values of one task
for another in parallel lists. It draws no edges, either: an edge would be XORed into the tree here, and then out of it
again. Lists leave as a whole where all the trees of their values were acked, as nearly all are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Any, Final

from stormlet.core.groupings import Chooser, Many, One
from stormlet.core.tuples import PLAIN, Lineage, Source
from stormlet.runtime.wire.outlets import Anchors, Outlet
from stormlet.spark.engine.account import Account
from stormlet.spark.engine.numbering import Place
from stormlet.spark.engine.rows import CHUNK, HEAVY, Content, Kind, Row, pack

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
        """Return them in the order of their roots, if each has one."""
        order = sorted(range(len(self.roots)), key=self.roots.__getitem__)
        if not order or self.roots[order[0]] <= 0:
            return self
        ordered = Tuples()
        for position in order:
            attempt = self.attempts.get(position, 1)
            ordered.append(self.values[position], self.stream_at(position), (self.roots[position],), attempt)
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
        """What was emitted, with the roots of its trees here."""
        self.ready = Tuples()
        """What may leave, with the roots of its messages."""

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
            self.ready.append(value, waiting.stream_at(position), messages, waiting.attempts.get(position, 1))

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


class Exits:
    """All ways out of one partition."""

    def __init__(self, places: Mapping[int, Place], account: Account, random: Random) -> None:
        """``places`` are those of the tasks in later stages."""
        self._places = places
        self._account = account
        self._randbytes = random.randbytes
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._numbers: dict[int, int] = {}

    def leads_to(self, task: int) -> bool:
        """True if this task is in a later stage."""
        return task in self._places

    def lane(self, producer: int, target: int, streams: Sequence[str], *, sorts: bool) -> Lane:
        """Return the way between two tasks, of which ``streams`` are all streams of the producer that may come."""
        lane = self._lanes.get((producer, target))
        if lane is None:
            lane = self._lanes[producer, target] = Lane(producer, target, streams, sorts=sorts)
        return lane

    @property
    def waiting(self) -> bool:
        """True if tuples wait for the outcomes of their trees."""
        return any(lane.waiting.values for lane in self._lanes.values())

    def release(self, messages_of: MessagesOf) -> None:
        """Let those tuples leave whose trees have their outcomes."""
        for lane in self._lanes.values():
            if lane.waiting.values:
                lane.let_go(messages_of)

    def release_all(self, first: int, messages: Sequence[int], messages_of: MessagesOf) -> None:
        """Let all tuples leave: the trees from this root on were acked, and have a message each."""
        for lane in self._lanes.values():
            if not lane.waiting.values:
                continue
            if min(lane.waiting.roots) >= first:
                waiting = lane.take()
                lane.ready.extend(waiting, [messages[root - first] for root in waiting.roots])
            else:
                lane.let_go(messages_of)

    def release_messages(self) -> None:
        """Let all tuples leave, whose roots are those of messages: no bolt is here that could fail them."""
        for lane in self._lanes.values():
            waiting = lane.take()
            lane.ready.extend(waiting, waiting.roots)

    def full(self) -> Iterator[Row]:
        """Iterate over chunks that are full."""
        return self._rows(CHUNK)

    def rest(self) -> Iterator[Row]:
        """Iterate over all chunks that are left."""
        return self._rows(1)

    def _rows(self, least: int) -> Iterator[Row]:
        for lane in self._lanes.values():
            for fields in lane.chunks(least):
                yield self._row(lane, fields)

    def _row(self, lane: Lane, fields: dict[str, Any]) -> Row:
        place, producer = self._places[lane.target], lane.producer
        number = self._numbers[producer] = self._numbers.get(producer, 0) + 1
        words = self._randbytes(8 * fields["size"])
        row = Row(
            Kind.CHUNK,
            place.stage,
            place.partition,
            target=lane.target,
            producer=producer,
            number=number,
            words=words,
            **fields,
        )
        self._account.emitted(words)
        self._account.moved(row)
        return row


class Exit(Outlet):
    """A stream with consumers in later stages, and with others in this one or none."""

    __slots__ = ("_inner", "_links", "_sent")

    def __init__(
        self, source: Source, inner: Outlet | None, links: Sequence[tuple[Chooser, Sequence[Lane]]]
    ) -> None:
        """``inner`` leads to the consumers in this stage."""
        super().__init__(source)
        self._inner = inner
        self._links = links
        self._sent = 0

    @property
    def transferred(self) -> int:
        """The number of tuples it has delivered, here and to other stages."""
        return self._sent + (0 if self._inner is None else self._inner.transferred)

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver here and to other stages; return the XOR of the edges here."""
        # All are chosen before any is reached, as everywhere.
        chosen = self._choose(value)
        edges = 0 if self._inner is None else self._inner.deliver(value, root, lineage)
        self._append(chosen, value, (root,) if root else (), lineage)
        return edges

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        """Deliver as a member of several trees."""
        chosen = self._choose(value)
        if self._inner is not None:
            self._inner.deliver_joined(value, anchors, lineage)
        roots = tuple(dict.fromkeys(root for anchor in anchors for root in anchor.roots))
        self._append(chosen, value, roots, lineage)

    def _choose(self, value: object) -> Sequence[Lane]:
        chosen: list[Lane] = []
        for chooser, lanes in self._links:
            if isinstance(chooser, Many):
                chosen.extend(lanes[index] for index in chooser.choose(value))
            else:
                chosen.append(lanes[chooser.pick(value)])
        return chosen

    def _append(
        self, chosen: Sequence[Lane], value: object, roots: tuple[int, ...], lineage: Lineage
    ) -> None:
        self._emitted += 1
        self._sent += len(chosen)
        inner = () if self._inner is None else self._inner.reached
        self.reached = (*inner, *(lane.target for lane in chosen))
        for lane in chosen:
            lane.append(value, self.source.stream, roots, lineage)


class SingleExit(Exit):
    """The only stream on its lanes, with one consumer, whose grouping sends each value to one task."""

    __slots__ = ("_chooser", "_lanes")

    def __init__(self, source: Source, chooser: One, lanes: Sequence[Lane]) -> None:
        super().__init__(source, None, [(chooser, lanes)])
        self._chooser = chooser
        self._lanes = lanes

    @property
    def transferred(self) -> int:
        """The number of tuples it has delivered."""
        return self._emitted

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver to another stage; return 0."""
        lane = self._lanes[self._chooser.pick(value)]
        self._emitted += 1
        self.reached = lane.ids
        waiting = lane.waiting
        if lineage is not PLAIN and lineage.attempt > 1:
            waiting.attempts[len(waiting.values)] = lineage.attempt
        waiting.roots.append(root)
        waiting.values.append(value)
        return 0


class FanExit(Exit):
    """The only stream on its lanes, with several consumers, each of whose groupings sends a value to one task."""

    __slots__ = ("_ways",)

    def __init__(self, source: Source, ways: Sequence[tuple[One, Sequence[Lane]]]) -> None:
        super().__init__(source, None, ways)
        self._ways = ways

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver to other stages; return 0."""
        if lineage is not PLAIN:
            return super().deliver(value, root, lineage)
        chosen = [lanes[chooser.pick(value)] for chooser, lanes in self._ways]
        self._emitted += 1
        self._sent += len(chosen)
        self.reached = tuple([lane.target for lane in chosen])
        for lane in chosen:
            waiting = lane.waiting
            waiting.roots.append(root)
            waiting.values.append(value)
        return 0
