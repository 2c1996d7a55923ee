"""States beside naive models: dicts and copies of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stormlet.core.keys import stable_hash
from stormlet.core.state.commits import Append, StateId
from stormlet.core.state.map_table import Changes, MapTable
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared

ID = StateId("count", "total")


class Point(msgspec.Struct, frozen=True):
    """Immutable by its type."""

    x: int
    y: float = 0.0


class Cart(msgspec.Struct):
    """Can change in place."""

    items: list[str] = []
    sum: int = 0


class Log:
    """A store of one state that drops what it may."""

    def __init__(self) -> None:
        self.appends: list[Append] = []

    def take(self, appends: Sequence[Append]) -> None:
        for each in appends:
            if each.begins_round:
                self.drop()
            self.appends.append(each)

    def drop(self) -> None:
        begins = [number for number, each in enumerate(self.appends) if each.begins_round]
        if begins:
            del self.appends[: begins[-1]]

    @property
    def blobs(self) -> list[bytes]:
        return [each.blob for each in self.appends]

    @property
    def size(self) -> int:
        return sum(map(len, self.blobs))


def task_of(key: object) -> int:
    return stable_hash(key) % 3


KEYS = st.sampled_from(["a", "b", "é", "moon", 1, True, 2.0, None, ("a", 1)])
VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, st.integers(-(2**63), 2**64 - 1)),
    "str": (str, st.text(max_size=3)),
    "point": (Point, st.builds(Point, st.integers(0, 3))),
    "cart": (Cart, st.builds(Cart, st.lists(st.text(max_size=2), max_size=2))),
    "list": (list[int], st.lists(st.integers(0, 3), max_size=3)),
}


class Twin(RuleBasedStateMachine):
    """A state of single values in three tasks, and a dict."""

    kind = "int"

    @initialize()
    def begin(self) -> None:
        self.declared = Declared("value", VALUES[self.kind][0])
        self.state, self.log = State(ID, self.declared, 3), Log()
        self.durable: dict[Any, Any] = {}
        self.model: dict[Any, Any] = {}

    def table(self, key: object) -> Any:
        return self.state.tables[task_of(key)]

    @rule(key=KEYS, data=st.data())
    def put(self, key: Any, data: st.DataObject) -> None:
        value = data.draw(VALUES[self.kind][1])
        self.table(key).put(key, deepcopy(value))
        self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key: Any) -> None:
        self.table(key).put(key, None)
        self.model.pop(key, None)

    @rule(key=KEYS)
    def change_in_place(self, key: Any) -> None:
        value, expected = self.table(key).get(key), self.model.get(key)
        if isinstance(value, list):
            value.append(7)
            expected.append(7)
        elif isinstance(value, Cart):
            value.items.append("more")
            expected.items.append("more")

    @rule()
    def roll_back(self) -> None:
        self.state.roll_back()
        self.model = deepcopy(self.durable)

    @rule()
    def seal(self) -> None:
        self.log.take(self.state.seal())
        self.durable = deepcopy(self.model)

    @rule(tasks=st.sampled_from([1, 3]))
    def restart(self, tasks: int) -> None:
        first, self.state = State(ID, self.declared, tasks), State(ID, self.declared, 3)
        first.load(self.log.blobs, None if tasks == 1 else task_of)
        assert committed(first) == self.durable
        self.state.load(self.log.blobs, task_of)
        self.model = deepcopy(self.durable)

    @invariant()
    def reads_are_those_of_the_model(self) -> None:
        for key in ["a", 1, True, 1.0, None, ("a", 1)]:
            assert self.table(key).get(key) == self.model.get(key)

    @invariant()
    def what_is_committed_is_what_was_sealed(self) -> None:
        assert committed(self.state) == self.durable


def committed(state: State) -> dict[Any, Any]:
    return {key: value for table in state.tables for key, value in table.committed_items()}


MAPS = {"int": int, "cart": Cart}


def changes_of(table: MapTable) -> int:
    """The entries in the overlay of a table, counted one by one."""
    changed: dict[Any, Changes] = table.changed
    return sum(len(each.entries) for each in changed.values())


class MapTwin(RuleBasedStateMachine):
    """A state of maps in three tasks, and a dict of dicts."""

    kind = "int"

    @initialize()
    def begin(self) -> None:
        self.declared = Declared("map", MAPS[self.kind], str)
        self.state, self.log = State(ID, self.declared, 3), Log()
        self.durable: dict[Any, dict[str, Any]] = {}
        self.model: dict[Any, dict[str, Any]] = {}

    def table(self, key: object) -> Any:
        return self.state.tables[task_of(key)]

    def made(self, number: int) -> Any:
        return number if MAPS[self.kind] is int else Cart([], number)

    @rule(key=st.sampled_from("ab"), inner=st.sampled_from("xyz"), number=st.integers(0, 3))
    def put(self, key: str, inner: str, number: int) -> None:
        self.table(key).put(key, inner, self.made(number))
        self.model.setdefault(key, {})[inner] = self.made(number)

    @rule(key=st.sampled_from("ab"), inner=st.sampled_from("xyz"))
    def delete(self, key: str, inner: str) -> None:
        self.table(key).put(key, inner, None)
        self.model.get(key, {}).pop(inner, None)

    @rule(key=st.sampled_from("ab"), inner=st.sampled_from("xyz"))
    def change_in_place(self, key: str, inner: str) -> None:
        value = self.table(key).get(key, inner)
        if isinstance(value, Cart):
            value.items.append("more")
            self.model[key][inner].items.append("more")

    @rule()
    def roll_back(self) -> None:
        self.state.roll_back()
        self.model = deepcopy(self.durable)

    @rule()
    def seal(self) -> None:
        self.log.take(self.state.seal())
        self.durable = deepcopy(self.model)

    @rule()
    def restart(self) -> None:
        self.state = State(ID, self.declared, 3)
        self.state.load(self.log.blobs, task_of)
        self.model = deepcopy(self.durable)

    @invariant()
    def reads_are_those_of_the_model(self) -> None:
        for key in "ab":
            table, expected = self.table(key), self.model.get(key, {})
            assert table.length(key) == len(expected)
            assert {inner: table.get(key, inner) for inner in table.inner(key)} == expected

    @invariant()
    def changes_are_those_of_the_overlay(self) -> None:
        for table in self.state.tables:
            assert table.changes == changes_of(cast("MapTable", table))

    @invariant()
    def what_is_committed_is_what_was_sealed(self) -> None:
        assert committed(self.state) == {key: each for key, each in self.durable.items() if each}
