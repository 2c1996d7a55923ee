"""Two states of a key become one (law K10)."""

from __future__ import annotations

from typing import Self

import pytest

from stormlet import Collector, KeyedBolt, ListOf, MapOf, Tuple, Value
from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME
from stormlet.model.state.folding import fold_all
from stormlet.model.state.keyed import merges, states_of


class Count(KeyedBolt[str, str, str]):
    """Has states of each kind, and timers."""

    total = Value(int, 0)
    names = Value(list[str], factory=list)
    prices = MapOf(str, int)
    latest = ListOf(int)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        """Do nothing."""

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Do nothing."""

    def merge(self, other: Self) -> None:
        """Fold in all of them."""
        self.total += other.total
        self.names.extend(other.names)
        self.prices.update(other.prices)
        self.latest.extend(other.latest)


def tables() -> dict[str, AnyTable]:
    return {name: State(StateId("count", name), each).tables[0] for name, each in states_of(Count).items()}


def count(own: dict[str, AnyTable], key: str, *latest: int, **prices: int) -> None:
    """Let a key have these, committed."""
    own["total"].put(key, len(latest))  # type: ignore[call-arg, arg-type]
    own["names"].put(key, [key])  # type: ignore[call-arg, arg-type]
    for name, price in prices.items():
        own["prices"].put(key, name, price)  # type: ignore[call-arg]
    for index, each in enumerate(latest):
        own["latest"].put(key, index, each)  # type: ignore[call-arg]
    commit(own)


def commit(own: dict[str, AnyTable]) -> dict[str, dict[object, object]]:
    for table in own.values():
        table.merge(table.delta())
    return {name: dict(table.committed_items()) for name, table in own.items()}


def test_a_key_that_both_have_is_merged() -> None:
    """By the bolt's own method, and nothing of the other state changes."""
    own, others = tables(), tables()
    count(own, "moon", 1, 2, tea=1, milk=3)
    count(others, "moon", 3, tea=2)
    before = commit(others)
    fold_all(Count(), own, others)
    assert commit(own) == {
        "total": {"moon": 3},
        "names": {"moon": ["moon", "moon"]},
        "prices": {"moon": {"tea": 2, "milk": 3}},
        "latest": {"moon": [1, 2, 3]},
        NAME: {},
    }
    assert {name: dict(table.committed_items()) for name, table in others.items()} == before


def test_a_key_of_one_alone_stays_as_it_is() -> None:
    """Without a call of merge."""

    class Never(Count):
        def merge(self, other: Self) -> None:
            raise AssertionError

    own, others = tables(), tables()
    count(own, "sun", 1)
    count(others, "moon", 2, tea=1)
    fold_all(Never(), own, others)
    assert commit(own) == {
        "total": {"sun": 1, "moon": 1},
        "names": {"sun": ["sun"], "moon": ["moon"]},
        "prices": {"moon": {"tea": 1}},
        "latest": {"sun": [1], "moon": [2]},
        NAME: {},
    }


def test_one_state_of_a_key_is_enough_to_be_merged() -> None:
    """Which one it is does not matter."""
    for name in ("total", "latest"):
        own, others = tables(), tables()
        count(own, "moon", 1)
        for other in {*own} - {name, NAME}:
            own[other].live.clear()
        count(others, "moon", 2)
        fold_all(Count(), own, others)
        assert commit(own)[name] == {"moon": 2 if name == "total" else [1, 2]}


def test_the_timers_of_both_are_set() -> None:
    """One that both have is one."""
    own, others = tables(), tables()
    for each, times in ((own, (1.0, 2.0)), (others, (2.0, 3.0))):
        for order, at in enumerate(times, 1):
            each[NAME].put("moon", at, order)  # type: ignore[call-arg]
        commit(each)
    fold_all(Count(), own, others)
    assert list(commit(own)[NAME]["moon"]) == [1.0, 2.0, 3.0]  # type: ignore[call-overload]


def test_an_instance_made_by_hand_can_be_merged() -> None:
    """A user's test needs nothing but keys."""
    one, other = Count(), Count()
    one.key = other.key = "moon"
    one.total, other.total = 1, 2
    one.merge(other)
    assert one.total == 3


def test_a_class_says_by_merge_that_its_states_can_be() -> None:
    """Without it, the call says so."""

    class Plain(KeyedBolt[str, str, str]):
        """Has none."""

    assert merges(Count)
    assert not merges(Plain)
    assert not merges(dict)
    assert not merges(None)
    with pytest.raises(NotImplementedError, match=r"Plain has no merge\(self, other\)"):
        Plain().merge(Plain())
