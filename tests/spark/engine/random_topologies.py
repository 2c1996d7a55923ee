"""Random topologies whose emissions and outcomes do not depend on order: both engines must agree on them.

A value is the names of the messages that it comes from, and a number that follows from its way. What a bolt does with
it depends on the two and on the attempt alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

from hypothesis import strategies as st

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Reject, To, Topology, Tuple

Value: TypeAlias = tuple[tuple[str, ...], int]

GROUPINGS = ("shuffle", "local_or_shuffle", "none", "fields", "key", "global", "all", "partial", "custom")
CALM = ("same", "fan", "async", "basic", "manual", "loose", "named", "flush", "batch", "group")
WILD = (
    "same",
    "fan",
    "async",
    "basic",
    "manual",
    "loose",
    "named",
    "flush",
    "flaky",
    "choosy",
    "breaks",
    "pair",
)
FUNCTIONS = ("same", "fan", "named", "choosy", "breaks")
MOST = 300
"""Values that a bolt may get; from there on it emits nothing."""


@dataclass(frozen=True)
class Wire:
    """A subscription: the stream by its number, and the grouping."""

    stream: int
    grouping: str


@dataclass(frozen=True)
class Part:
    """A bolt."""

    kind: str
    wires: tuple[Wire, ...]
    parallelism: int
    salt: int
    concurrency: int


@dataclass(frozen=True)
class Plan:
    """A topology."""

    sizes: tuple[int, ...]
    """The number of messages of each spout."""
    parts: tuple[Part, ...]
    spouts: int
    """The number of partitions of each spout."""
    seed: int

    @property
    def joins(self) -> bool:
        """True if messages are joined, so that they share attempts."""
        return any(part.kind in ("pair", "group", "batch") for part in self.parts)

    def sources(self) -> dict[str, list[Value]]:
        """Return the values of each spout."""
        return {
            f"s{spout}": [((f"s{spout}m{number}",), number) for number in range(size)]
            for spout, size in enumerate(self.sizes)
        }

    def topology(self, *, watched: bool = False) -> Topology:
        """Return it, ready to run. If it is watched, all emissions go to a task of :class:`Seen`, too."""
        topology = Topology("random", message_timeout=10_000, replay_delay=0.001)
        streams: list[Any] = [
            topology.spout(id, values, outputs=object) for id, values in self.sources().items()
        ]
        for number, part in enumerate(self.parts):
            inputs = [_grouped(streams[each.stream], each.grouping) for each in part.wires]
            named = part.kind == "named"
            bolt = topology.bolt(
                f"b{number}",
                _logic(part, number),
                *inputs,
                parallelism=part.parallelism,
                outputs={"odd": object, "even": object} if named else object,
                concurrency=part.concurrency if part.kind == "async" else 1,
            )
            streams += [bolt.named("odd"), bolt.named("even")] if named else [bolt]
        if watched:
            topology.bolt("seen", Seen, *(each.global_() for each in streams))
        return topology


@st.composite
def plans(draw: st.DrawFn, kinds: Sequence[str]) -> Plan:
    """Draw a topology of these kinds of bolts."""
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
    rates: list[float] = [float(size) for size in sizes]
    parts = list[Part]()
    for number in range(draw(st.integers(1, 12))):
        part = draw(_parts(kinds, len(rates)))
        arriving = sum(
            rates[each.stream] * (part.parallelism if each.grouping == "all" else 1) for each in part.wires
        )
        if arriving > MOST:
            part = Part("end", part.wires[:1], part.parallelism, number, 1)
        parts.append(part)
        leaving = {"fan": 1.5, "breaks": 2.0, "end": 0.0}.get(part.kind, 1.0) * arriving
        rates += [leaving, leaving] if part.kind == "named" else [leaving]
    return Plan(tuple(sizes), tuple(parts), draw(st.integers(1, 3)), draw(st.integers(0, 9)))


@st.composite
def _parts(draw: st.DrawFn, kinds: Sequence[str], streams: int) -> Part:
    kind = draw(st.sampled_from(kinds))
    joins = kind in ("pair", "group")
    groupings = st.sampled_from(("key", "global")) if joins else st.sampled_from(GROUPINGS)
    chosen = draw(st.lists(st.integers(0, streams - 1), min_size=1, max_size=3, unique=True))
    if joins:  # all of them the same, so that equal keys meet
        groupings = st.just(draw(groupings))
    wires = tuple(Wire(stream, draw(groupings)) for stream in chosen)
    return Part(kind, wires, draw(st.integers(1, 3)), draw(st.integers(0, 99)), draw(st.integers(1, 4)))


def key_of(value: Value) -> int:
    """The number of the message, whatever its spout."""
    return int(value[0][0].split("m")[1]) % 5


class Some:
    """A grouping of the user's own: none, one or two tasks."""

    def prepare(self, targets: Sequence[int]) -> None:
        self._targets = targets

    def choose(self, value: Value) -> Sequence[int]:
        return self._targets[value[1] % 3 :][:2]


def _grouped(stream: Any, grouping: str) -> Any:
    return {
        "key": lambda: stream.fields(key_of),
        "global": lambda: stream.global_(),
        "partial": lambda: stream.partial_key(key_of),
        "custom": lambda: stream.custom(Some()),
    }.get(grouping, lambda: getattr(stream, grouping)())()


def _mixed(*numbers: int) -> int:
    total = 7
    for number in numbers:
        total = (total * 31 + number) % 10_007
    return total


def _logic(part: Part, number: int) -> Any:
    made: dict[str, Callable[[int], Any]] = {
        "same": lambda salt: partial(_same, salt),
        "fan": lambda salt: partial(_fan, salt),
        "async": lambda salt: partial(_later, salt),
        "named": lambda salt: partial(_named, salt),
        "choosy": lambda salt: partial(_choosy, salt),
        "breaks": lambda salt: partial(_breaks, salt),
        "end": lambda salt: partial(_end, salt),
    }
    classes: dict[str, Callable[[int], Any]] = {
        "basic": Basic,
        "manual": Manual,
        "loose": Loose,
        "flush": Flushed,
        "batch": Batched,
        "group": Grouped,
        "flaky": Flaky,
        "pair": Paired,
    }
    salt = part.salt + number
    return made[part.kind](salt) if part.kind in made else partial(classes[part.kind], salt)


def _same(salt: int, value: Value) -> Value:
    return value[0], _mixed(salt, value[1])


def _fan(salt: int, value: Value) -> Iterator[Value]:
    for copy in range(_mixed(salt, value[1]) % 4):
        yield value[0], _mixed(salt, value[1], copy)


async def _later(salt: int, value: Value) -> AsyncIterator[Value]:
    await asyncio.sleep(_mixed(salt, value[1]) % 3 / 1000)
    yield _same(salt, value)


def _named(salt: int, value: Value) -> To[Value]:
    return To(_same(salt, value), stream="odd" if _mixed(salt, value[1]) % 2 else "even")


def _choosy(salt: int, value: Value) -> Value:
    if _mixed(salt, value[1]) % 7 == 0:
        raise Reject("not this one")
    return _same(salt, value)


def _breaks(salt: int, value: Value) -> Iterator[Value]:
    yield _same(salt, value)
    if _mixed(salt, value[1]) % 7 == 0:
        raise ValueError("in the middle")
    yield value[0], _mixed(salt, value[1], 1)


def _end(salt: int, value: Value) -> None:
    """Emit nothing."""


class Salted:
    """A bolt with a number of its own."""

    def __init__(self, salt: int) -> None:
        self.salt = salt


class Basic(Salted, BasicBolt[Value, Value]):
    """Emits one value for each."""

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        out.emit(_same(self.salt, tup.value))


class Manual(Salted, Bolt[Value, Value]):
    """The same by hand."""

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        out.emit(_same(self.salt, tup.value), anchors=tup)
        out.ack(tup)


class Loose(Salted, Bolt[Value, Value]):
    """The same without an anchor."""

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        out.emit(_same(self.salt, tup.value))
        out.ack(tup)


class Flushed(Salted, Bolt[Value, Value]):
    """Holds all, and emits and acks when nothing moves."""

    def __init__(self, salt: int) -> None:
        super().__init__(salt)
        self.held: list[Tuple[Value]] = []

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        self.held.append(tup)

    def flush(self, out: Collector[Value]) -> None:
        while self.held:
            tup = self.held.pop()
            out.emit(_same(self.salt, tup.value), anchors=tup)
            out.ack(tup)


class Batched(Salted, BatchBolt[Value, Value]):
    """Emits one value for each of a batch, anchored to all."""

    size = 3

    def execute_batch(self, tups: Sequence[Tuple[Value]], out: Collector[Value]) -> None:
        for tup in tups:
            out.emit(_same(self.salt, tup.value), anchors=tups)


class Grouped(Salted, Bolt[Value, Value]):
    """Emits in the end one value for each key, anchored to all that had it."""

    def __init__(self, salt: int) -> None:
        super().__init__(salt)
        self.held: dict[int, list[Tuple[Value]]] = {}

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        self.held.setdefault(key_of(tup.value), []).append(tup)

    def finish(self, out: Collector[Value]) -> None:
        held, self.held = self.held, {}
        for key, tups in held.items():
            names = sorted({name for tup in tups for name in tup.value[0]})
            value = tuple(names), _mixed(self.salt, key, *sorted(tup.value[1] for tup in tups))
            out.emit(value, anchors=tups)
            for tup in tups:
                out.ack(tup)


class Paired(Salted, Bolt[Value, Value]):
    """Holds all values of a key until there are two different messages, and emits one value anchored to them; later
    ones and replays give the same value again."""

    def __init__(self, salt: int) -> None:
        super().__init__(salt)
        self.held: dict[int, list[Tuple[Value]]] = {}

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        self.held.setdefault(key_of(tup.value), []).append(tup)

    def flush(self, out: Collector[Value]) -> None:
        held, self.held = self.held, {}
        for key, tups in held.items():
            first, rest = tups[:2], tups[2:]
            for tup in first:
                out.emit((tup.value[0], _mixed(self.salt, key, tup.value[1])), anchors=first)
            for tup in rest:
                out.emit((tup.value[0], _mixed(self.salt, key, tup.value[1])), anchors=tup)
            for tup in tups:
                out.ack(tup)


class Seen(BasicBolt[Value, None]):
    """Notes what comes to it, in the process that has begun to note."""

    _noting: ClassVar[list[tuple[str, str, Value]]] = []

    @classmethod
    @contextmanager
    def noted(cls) -> Iterator[list[tuple[str, str, Value]]]:
        """Give a list that has all of it at the end."""
        cls._noting = []
        yield cls._noting

    def execute(self, tup: Tuple[Value], out: Collector[None]) -> None:
        self._noting.append((tup.component, tup.stream, tup.value))


class Flaky(Salted, BasicBolt[Value, Value]):
    """Emits, then fails the attempts below a number that depends on the value; at most the last attempt, too."""

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        out.emit(_same(self.salt, tup.value))
        if tup.attempt < max(1, _mixed(self.salt, tup.value[1]) % 12 - 5):
            raise ValueError("not yet")
