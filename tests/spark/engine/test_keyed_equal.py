"""Random topologies with keyed bolts leave the same states on the chain of stages, in process, and in a naive model.

Messages go through keyed bolts one after another. Each may fail before or after it has reached state, in the bolt or
behind it, and any may be refused, in the first of the bolts or behind it: what a message has changed in an earlier
stage stays on Spark, and is undone in process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormlet import Cell, Collector, KeyedBolt, ListOf, MapOf, Reject, Topology, Tuple, Value
from stormlet.spark.engine.partition import exits, lanes, partition
from tests.spark.engine.keyed_flows import Holds, Item, States, in_order
from tests.spark.engine.test_keyed import in_process, left_by, run

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Part:
    """A keyed bolt, and what is fused behind it."""

    kind: str
    keys: int
    parallelism: int
    before: int
    """Attempts that fail before they reach state, for some."""
    after: int
    """Those that fail after that."""
    behind: int
    """Those that fail in the bolt behind it."""
    holds: bool


@dataclass(frozen=True)
class Plan:
    """A topology."""

    size: int
    parts: tuple[Part, ...]
    refused: tuple[int, ...]
    """Places that the first bolt refuses after it has counted."""
    refused_behind: tuple[int, ...]
    """Those that are refused behind it."""
    spouts: int
    chunk: int
    seed: int

    def topology(self) -> Topology:
        """Return it, ready to run."""
        topology = Topology("keyed", replay_delay=0.001, max_attempts=9, epoch_messages=self.chunk)
        stream: Any = topology.spout("items", self.items(), outputs=Item)
        for number, part in enumerate(self.parts):
            refused = self.refused if number == 0 else ()
            by = stream.fields(partial(_key, part.keys))
            stream = self._keyed(topology, f"k{number}", part, by, refused)
            behind = self.refused_behind if number == 0 else ()
            stream = topology.bolt(
                f"f{number}", partial(_behind, part.behind, behind), stream.shuffle(), outputs=object
            )
            if part.holds:
                stream = topology.bolt(f"h{number}", Holds, stream.shuffle(), outputs=object)
        return topology

    def _keyed(self, topology: Topology, id: str, part: Part, by: Any, refused: tuple[int, ...]) -> Any:
        options: dict[str, Any] = {"parallelism": part.parallelism, "outputs": object}
        if part.kind == "function":
            logic: Any = partial(_counting, part, refused)
            return topology.bolt(id, logic, by, state=Value(int, 0), **options)
        if part.kind == "async":
            options["concurrency"] = 3
        return topology.bolt(id, partial(KINDS[part.kind], part, refused), by, **options)

    def items(self) -> list[Item]:
        """The messages."""
        return [Item(f"w{place}", place) for place in range(self.size)]

    @property
    def acked(self) -> list[int]:
        """The places of those that are acked."""
        return [place for place in range(self.size) if place not in {*self.refused, *self.refused_behind}]

    def states(self) -> States:
        """The states that it must leave."""
        found: States = {}
        for number, part in enumerate(self.parts):
            counts = Counter(place % part.keys for place in self.acked)
            if part.kind == "kinds":
                places = {key: [each for each in self.acked if each % part.keys == key] for key in counts}
                found[f"k{number}.places"] = places
                found[f"k{number}.kinds"] = {
                    key: dict(Counter(each % 3 for each in all_)) for key, all_ in places.items()
                }
            else:
                found[f"k{number}.total"] = dict(counts)
        return in_order(found)


def _key(keys: int, item: Item) -> int:
    return item.place % keys


def _fails(attempts: int, tup: Tuple[Item]) -> bool:
    return tup.attempt <= tup.value.place % (attempts + 1)


def _behind(attempts: int, refused: tuple[int, ...], item: Item) -> Item:
    if item.place in refused:
        raise Reject("refused")
    if CALLS[item.place, attempts] < item.place % (attempts + 1):
        CALLS[item.place, attempts] += 1
        raise ValueError("not yet")
    return item


def _counting(part: Part, refused: tuple[int, ...], item: Item, total: Cell[int]) -> Item:
    if item.place % 4 == 1 and not CALLS[item.place, -1]:
        CALLS[item.place, -1] += 1
        raise ValueError("not yet")
    total.value += 1
    if item.place in refused:
        raise Reject("refused")
    return item


CALLS: Counter[tuple[int, int]] = Counter()
"""Calls that have failed, by place."""


class Counts(KeyedBolt[int, Item, Item]):
    """Counts."""

    total = Value(int, 0)

    def __init__(self, part: Part, refused: tuple[int, ...]) -> None:
        self.part = part
        self.refused = refused

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        if _fails(self.part.before, tup):
            raise ValueError("before")
        self.total += 1
        out.emit(tup.value)
        self._fail(tup)

    def _fail(self, tup: Tuple[Item]) -> None:
        if tup.value.place in self.refused:
            raise Reject("refused")
        if _fails(self.part.after, tup):
            raise ValueError("after")


class Later(KeyedBolt[int, Item, Item]):
    """Counts with a pause in the midst."""

    total = Value(int, 0)

    def __init__(self, part: Part, refused: tuple[int, ...]) -> None:
        self.part = part
        self.refused = refused

    async def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        if _fails(self.part.before, tup):
            raise ValueError("before")
        before = self.total
        await asyncio.sleep(tup.value.place % 3 / 1000)
        self.total = before + 1
        out.emit(tup.value)
        if tup.value.place in self.refused:
            raise Reject("refused")
        if _fails(self.part.after, tup):
            raise ValueError("after")


class Kinds(KeyedBolt[int, Item, Item]):
    """Has a list and a map."""

    places = ListOf(int)
    kinds = MapOf(int, int)

    def __init__(self, part: Part, refused: tuple[int, ...]) -> None:
        self.part = part
        self.refused = refused

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        if _fails(self.part.before, tup):
            raise ValueError("before")
        place = tup.value.place
        self.places.append(place)
        self.kinds[place % 3] = self.kinds.get(place % 3, 0) + 1
        out.emit(tup.value)
        if place in self.refused:
            raise Reject("refused")
        if _fails(self.part.after, tup):
            raise ValueError("after")


KINDS: dict[str, Any] = {"count": Counts, "async": Later, "kinds": Kinds}
_few = st.sampled_from([0, 0, 0, 1, 2])
_parts = st.builds(
    Part,
    st.sampled_from(["count", "async", "kinds", "function"]),
    st.integers(1, 5),
    st.integers(1, 4),
    _few,
    _few,
    _few,
    st.booleans(),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw one."""
    size = draw(st.integers(0, 40))
    places = st.lists(st.integers(0, 40), max_size=3).map(tuple)
    return Plan(
        size,
        tuple(draw(st.lists(_parts, min_size=1, max_size=3))),
        draw(places),
        draw(places),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 4, 1000])),
        draw(st.integers(0, 9)),
    )


def places(values: Sequence[Item]) -> list[int]:
    return sorted(value.place for value in values)


@pytest.mark.filterwarnings("ignore")
@FEW
@given(plans())
def test_the_states_are_those_of_the_model(plan: Plan) -> None:
    """On the chain and in process; and so is what is given up, and what leaves the first stages."""
    CALLS.clear()
    states, given_up = in_process(plan.topology())
    assert in_order(states) == plan.states()
    CALLS.clear()
    with (
        patch.object(exits, "CHUNK", plan.chunk),
        patch.object(lanes, "CHUNK", plan.chunk),
        patch.object(partition, "CHUNK", plan.chunk),
    ):
        done = run(plan.topology(), spouts=plan.spouts, seed=plan.seed)
    assert in_order(left_by(plan.topology(), done.left)) == plan.states()
    assert (places(done.acked), places(done.failed)) == (plan.acked, sorted(given_up))
