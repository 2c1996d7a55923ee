"""Topologies with keyed state, each with a naive model of it: what the state must be in the end, on every engine.

A model is a loop over the messages that were acked, in the order of the source. What it says of a list is sorted, as
replays come later, and so are the lists that engines give.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import msgspec

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Cell,
    Collector,
    KeyedBolt,
    ListOf,
    MapOf,
    Reject,
    Topology,
    Tuple,
    Value,
)

States: TypeAlias = dict[str, dict[Any, Any]]
"""By ``component.state`` and key."""
WORDS = [
    "the",
    "sun",
    "was",
    "shining",
    "on",
    "the",
    "sea",
    "shining",
    "with",
    "all",
    "his",
    "might",
    "was",
    "odd",
] * 3


class Item(msgspec.Struct, frozen=True):
    """A word, its place in the source, and what a bolt did to it."""

    word: str
    place: int


class Basket(msgspec.Struct):
    """A record that can change."""

    places: list[int] = []


class Count(KeyedBolt[Any, Item, Item]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one, and hand it on."""
        self.total += 1
        out.emit(tup.value)


class Merges(Count):
    """Says how two counts become one."""

    def merge(self, other: Self) -> None:
        """Add them up."""
        self.total += other.total


class FailsFirst(Count):
    """Fails before it counts: most words once, "sea" for good."""

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one, in its second attempt."""
        if tup.value.word == "sea":
            raise Reject("salt")
        if tup.attempt == 1 and tup.value.place % 3 == 0:
            raise ValueError("not yet")
        super().execute(tup, out)


class FailsLast(Count):
    """Fails after it has counted: most words once, "sea" for good."""

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one."""
        super().execute(tup, out)
        if tup.value.word == "sea":
            raise Reject("salt")
        if tup.attempt <= tup.value.place % 3:
            raise ValueError("not yet")


class Asynchronous(KeyedBolt[str, Item, Item]):
    """Counts while others of its kind wait; calls of one key would lose counts if they overlapped."""

    total = Value(int, 0)

    async def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one, with a pause in between."""
        before = self.total
        await asyncio.sleep(0.001 * (tup.value.place % 3))
        self.total = before + 1
        if tup.attempt == 1 and tup.value.place % 7 == 0:
            raise ValueError("not yet")
        out.emit(tup.value)


class Kinds(KeyedBolt[str, Item, Item]):
    """Has a state of each kind."""

    places = ListOf(int)
    lengths = MapOf(int, int)
    basket = Value(Basket, factory=Basket)
    last = Value(str)

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Change all of them, and then fail once."""
        word, place = tup.value.word, tup.value.place
        self.places.append(place)
        self.lengths[len(word)] = self.lengths.get(len(word), 0) + 1
        self.basket.places.append(place)
        if word == "odd":
            del self.lengths[len(word)]
            self.last = None
        else:
            self.last = word
        if tup.attempt == 1 and place % 4 == 0:
            raise ValueError("not yet")
        out.emit(tup.value)


class MergesKinds(Kinds):
    """Says how two states of each kind become one."""

    def merge(self, other: Self) -> None:
        """Put them together."""
        self.places.extend(other.places)
        for length, count in other.lengths.items():
            self.lengths[length] = self.lengths.get(length, 0) + count
        self.basket.places += other.basket.places
        self.last = other.last


class Dies(Count):
    """Its instance dies once, after it has counted; the state belongs to the task."""

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one."""
        super().execute(tup, out)
        if tup.attempt == 1 and tup.value.place == 5:
            raise ValueError("not yet")


class Holds(Bolt[Item, Item]):
    """Holds its inputs until it is flushed, and fails some of them then."""

    def __init__(self) -> None:
        self.held: list[Tuple[Item]] = []

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Hold one."""
        self.held.append(tup)

    def flush(self, out: Collector[Item]) -> None:
        """Settle all."""
        held, self.held = self.held, []
        for tup in held:
            if tup.attempt == 1 and tup.value.place % 5 == 0:
                out.fail(tup, "not yet")
            else:
                out.emit(tup.value, anchors=tup)
                out.ack(tup)


class Pairs(BatchBolt[Item, Item]):
    """Takes two at a time, and fails both if one of them is new and odd."""

    size = 2

    def execute_batch(self, tups: Sequence[Tuple[Item]], out: Collector[Item]) -> None:
        """Take them."""
        if any(tup.attempt == 1 and tup.value.place % 9 == 0 for tup in tups):
            raise ValueError("not yet")
        for tup in tups:
            out.emit(tup.value, anchors=[tup])


class Reminds(KeyedBolt[str, Item, str]):
    """Is called when a timer is due that was there before; sets one for later, and one that it cancels."""

    calls = Value(int, 0)

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        """Set a timer."""
        self.set_timer(self.now + 60)
        self.set_timer(self.now + 90)
        self.cancel_timer(self.now + 90)

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Count the call."""
        self.calls += 1
        out.emit(f"{self.key} {self.now >= at}")


class Hurries(Reminds):
    """Sets timers for times that are past, and for now."""

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        """Set them."""
        self.set_timer(self.now - 5)
        self.set_timer(self.now)

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Set another one, which is past as well."""
        super().on_timer(at, out)
        if at == self.now - 15:
            self.set_timer(self.now - 1)


class Loose(KeyedBolt[str, Item, Item]):
    """Emits without an anchor, and fails once after it has counted; notes the times of its calls."""

    total = Value(int, 0)
    times: ClassVar[list[float]] = []

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Count one."""
        self.times.append(asyncio.get_running_loop().time())
        self.total += 1
        out.emit(tup.value, anchors=())
        if tup.value.place == 1 and tup.attempt == 1:
            raise ValueError("not yet")


class Stumbles(Reminds):
    """Fails in its first call for a timer, after it has done all."""

    attempts: ClassVar[int] = 0

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Count the call, and fail once."""
        super().on_timer(at, out)
        type(self).attempts += 1
        if self.attempts == 1:
            raise ValueError("not yet")


class Misfit(KeyedBolt[str, Item, Item]):
    """Puts into a record what is not of its type."""

    basket = Value(Basket, factory=Basket)

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Put it in."""
        self.basket.places.append("a place")  # type: ignore[arg-type]


class HoldsForEver(Bolt[Item, Item]):
    """Never settles what is about the sea."""

    def __init__(self) -> None:
        self.held: list[Tuple[Item]] = []

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Hold it."""
        if tup.value.word == "sea":
            self.held.append(tup)
        else:
            out.ack(tup)


class Brief(KeyedBolt[str, Item, tuple[str, int]]):
    """Counts words, and forgets those that have not come for a minute."""

    total = Value(int, 0, ttl=60)

    def execute(self, tup: Tuple[Item], out: Collector[tuple[str, int]]) -> None:
        """Count one."""
        self.total += 1
        out.emit((self.key, self.total))


class Ends(BasicBolt[Item, Item]):
    """Emits in the end what belongs to no message."""

    def __init__(self) -> None:
        self.taken: list[Item] = []

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        """Take one."""
        self.taken.append(tup.value)

    def finish(self, out: Collector[Item]) -> None:
        """Emit all."""
        for item in self.taken:
            out.emit(item)


class Kept(BasicBolt[object, None]):
    """Keeps what comes to it, in the driver."""

    kept: ClassVar[list[object]] = []

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Keep one."""
        self.kept.append(tup.value)


def count(item: Item, total: Cell[int]) -> Item:
    """Count words, in a function."""
    total.value += 1
    if item.place == 4:
        raise Reject("four")
    return item


def items() -> list[Item]:
    """The words with their places."""
    return [Item(word, place) for place, word in enumerate(WORDS)]


def seen(item: Item) -> int:
    """The place, of all that comes to the end."""
    return item.place


def flaky(item: Item) -> Iterator[Item]:
    """Hand one on and then fail, for good where the place is divisible by 7."""
    yield item
    if item.place % 7 == 0:
        raise Reject("seven")


def by_word(topology: Topology, logic: Any, *, outputs: Any = Item, **options: Any) -> Any:
    """A keyed bolt behind the source of a topology."""
    source = topology.spout("items", items(), outputs=Item)
    return topology.bolt("count", logic, source.fields("word"), parallelism=3, outputs=outputs, **options)


def counted(chosen: Callable[[Item], bool] = lambda item: True) -> States:
    """The number of each word."""
    return {"count.total": dict(Counter(item.word for item in items() if chosen(item)))}


@dataclass(frozen=True)
class Case:
    """A topology, the states that it must leave, and the places of the messages that it must give up."""

    name: str
    build: Callable[[Topology], Any]
    """Gives the last stream; None if nobody is to take from it."""
    states: States
    given_up: Sequence[int] = ()
    epochs: Sequence[tuple[float, Mapping[str, Sequence[Item]]]] = ((0.0, {}),)
    """The time of each, and its items, if they are not all."""

    def __str__(self) -> str:
        return self.name

    def topology(self) -> Topology:
        """Return it, ready to run."""
        topology = Topology("keyed", replay_delay=0.001)
        last = self.build(topology)
        if last is not None:
            topology.bolt("seen", seen, last.global_(), outputs=int)
        return topology


SEA = [item.place for item in items() if item.word == "sea"]
SEVENTH = [item.place for item in items() if item.place % 7 == 0]


def _plain(topology: Topology) -> Any:
    return by_word(topology, Count)


def _fails_first(topology: Topology) -> Any:
    return by_word(topology, FailsFirst)


def _fails_last(topology: Topology) -> Any:
    return by_word(topology, FailsLast)


def _fails_behind(topology: Topology) -> Any:
    return topology.bolt("flaky", flaky, by_word(topology, Count).shuffle())


def _asynchronous(topology: Topology) -> Any:
    return by_word(topology, Asynchronous, concurrency=8)


def _kinds(topology: Topology) -> Any:
    return by_word(topology, Kinds)


def _dies(topology: Topology) -> Any:
    return by_word(topology, Dies, on_error="restart")


def _held(topology: Topology) -> Any:
    return topology.bolt("hold", Holds, by_word(topology, Count).shuffle())


def _in_pairs(topology: Topology) -> Any:
    return topology.bolt("pairs", Pairs, by_word(topology, Count).local_or_shuffle())


def _function(topology: Topology) -> Any:
    return by_word(topology, count, state=Value(int, 0))


def _global(topology: Topology) -> Any:
    source = topology.spout("items", items(), outputs=Item)
    return topology.bolt("count", FailsLast, source.global_())


def _unowned(topology: Topology) -> Any:
    source = topology.spout("items", items(), outputs=Item)
    ends = topology.bolt("ends", Ends, source.shuffle())
    return topology.bolt("count", Count, ends.fields("word"), parallelism=3)


def _merged(topology: Topology) -> None:
    by_word(topology, Merges)


def _merged_kinds(topology: Topology) -> None:
    by_word(topology, MergesKinds)


def _timers(topology: Topology) -> None:
    by_word(topology, Reminds, outputs=str)


def _brief(topology: Topology) -> None:
    by_word(topology, Brief, outputs=object)


def _kinds_model() -> States:
    found: dict[str, dict[str, list[Item]]] = {"items": {}}
    for item in items():
        found["items"].setdefault(item.word, []).append(item)
    places = {word: [item.place for item in all_] for word, all_ in found["items"].items()}
    return {
        "count.places": dict(places),
        "count.basket": {word: Basket(each) for word, each in places.items()},
        "count.lengths": {word: {len(word): len(each)} for word, each in places.items() if word != "odd"},
        "count.last": {word: word for word in places if word != "odd"},
    }


CASES = [
    Case("a count", _plain, counted()),
    Case("failures before state", _fails_first, counted(lambda item: item.word != "sea"), SEA),
    Case("failures after state", _fails_last, counted(lambda item: item.word != "sea"), SEA),
    Case("failures behind it", _fails_behind, counted(lambda item: item.place % 7 != 0), SEVENTH),
    Case("calls that overlap", _asynchronous, counted()),
    Case("every kind of state", _kinds, _kinds_model()),
    Case("an instance that dies", _dies, counted()),
    Case("inputs that are held", _held, counted()),
    Case("inputs in pairs", _in_pairs, counted()),
    Case("a function", _function, counted(lambda item: item.place != 4), [4]),
    Case("a single state", _global, {"count.total": {None: len(WORDS) - len(SEA)}}, SEA),
    Case("inputs without messages", _unowned, counted()),
    Case("counts that can be merged", _merged, counted()),
    Case("every kind of state that can be merged", _merged_kinds, _kinds_model()),
]
"""Those of one run."""


def words(*given: str) -> Mapping[str, Sequence[Item]]:
    """Items of an epoch."""
    return {"items": [Item(word, place) for place, word in enumerate(given)]}


IN_EPOCHS = [
    Case(
        "counts that go on",
        _plain,
        {"count.total": {"sea": 1, "sun": 2}},
        epochs=[(0.0, words("sun")), (1.0, words("sea", "sun"))],
    ),
    Case(
        "failures in each epoch",
        _fails_last,
        {"count.total": {"sun": 4}},
        [0, 1],
        epochs=[(0.0, words("sun", "sea", "sun")), (1.0, words("sea", "sun", "sun"))],
    ),
    Case(
        "a timer that is not due",
        _timers,
        {"count.on_timer": {"sun": [60.0]}},
        epochs=[(0.0, words("sun")), (59.0, words())],
    ),
    Case(
        "a timer that is due",
        _timers,
        {"count.calls": {"sun": 1}},
        epochs=[(0.0, words("sun")), (60.0, words()), (200.0, words())],
    ),
    Case(
        "timers that are set again",
        _timers,
        {"count.calls": {"sea": 1, "sun": 2}},
        epochs=[(0.0, words("sun")), (61.0, words("sea", "sun")), (122.0, words())],
    ),
    Case(
        "a value that is too old",
        _brief,
        {"count.total": {"sea": 1}},
        epochs=[(0.0, words("sun")), (30.0, words("sea")), (61.0, words())],
    ),
    Case(
        "a value that is renewed in time",
        _brief,
        {"count.total": {"sun": 3}},
        epochs=[(0.0, words("sun")), (59.0, words("sun")), (118.0, words("sun"))],
    ),
    Case(
        "a value that begins anew",
        _brief,
        {"count.total": {"sun": 1}},
        epochs=[(0.0, words("sun")), (61.0, words("sun"))],
    ),
    Case(
        "merged counts that go on",
        _merged,
        {"count.total": {"sea": 1, "sun": 5}},
        epochs=[(0.0, words(*["sun"] * 3)), (1.0, words("sea", "sun", "sun"))],
    ),
]
"""Those of several epochs."""


def in_order(states: Mapping[str, Mapping[Any, Any]]) -> States:
    """States with their lists sorted."""
    return {
        name: {key: _sorted(value) for key, value in each.items()} for name, each in states.items() if each
    }


def _sorted(value: Any) -> Any:
    if isinstance(value, Basket):
        return Basket(sorted(value.places))
    return sorted(value) if isinstance(value, list) else value
