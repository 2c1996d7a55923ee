"""The view of what is durable of a state, between the end of an epoch and the moment at which it is durable."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet.core.state.commits import StateId
from stormlet.core.state.committed import Committed
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared

VALUES = Declared("value", int, key=str)
MAPS = Declared("map", int, str, str)
LISTS = Declared("list", int, int, str)


def state(declared: Declared, tasks: int = 1) -> tuple[State, Committed]:
    made = State(StateId("count", "total"), declared, tasks)
    made.remember()
    return made, Committed(made)


def put(state: State, key: Any, value: Any, task: int = 0) -> None:
    table: Any = state.tables[task]
    if state.declared.kind == "value":
        table.put(key, value)
    else:
        table.put(*key, value)


def commit(state: State) -> None:
    state.seal()
    state.told()


def test_what_is_open_or_sealed_is_not_seen() -> None:
    """Nothing but what is durable is (law X3)."""
    counts, seen = state(VALUES)
    put(counts, "a", 1)
    assert dict(seen) == {}
    counts.seal()
    assert dict(seen) == {}
    counts.told()
    assert dict(seen) == {"a": 1}


def test_until_it_is_durable_the_values_before_are_seen() -> None:
    """Of what was changed, removed and added; the rest as it is."""
    counts, seen = state(VALUES)
    for key in "abc":
        put(counts, key, 1)
    commit(counts)
    put(counts, "a", 2)
    put(counts, "b", None)
    put(counts, "d", 4)
    counts.seal()
    assert dict(seen) == {"a": 1, "b": 1, "c": 1}
    assert (len(seen), "d" in seen, "b" in seen, seen.get("d")) == (3, False, True, None)
    counts.told()
    assert dict(seen) == {"a": 2, "c": 1, "d": 4}
    assert (len(seen), "d" in seen, "b" in seen) == (3, True, False)


@pytest.mark.parametrize(
    ("declared", "before", "after"), [(MAPS, {"x": 1}, {"x": 2, "y": 3}), (LISTS, [1], [2, 3])]
)
def test_maps_and_lists_are_seen_whole(declared: Declared, before: Any, after: Any) -> None:
    """As a dict and a list, of one epoch."""
    kept, seen = state(declared)
    first, second = ("x", "y") if declared is MAPS else (0, 1)
    put(kept, ("a", first), 1)
    commit(kept)
    put(kept, ("a", first), 2)
    put(kept, ("a", second), 3)
    kept.seal()
    assert seen["a"] == before
    kept.told()
    assert seen["a"] == after


def test_all_tasks_are_seen() -> None:
    """Each key is in the table of one of them."""
    counts, seen = state(VALUES, tasks=3)
    for task, key in enumerate("abc"):
        put(counts, key, task + 1, task)
    commit(counts)
    put(counts, "b", 9, 1)
    counts.seal()
    assert dict(seen) == {"a": 1, "b": 2, "c": 3}


def test_a_key_that_is_not_there_is_none() -> None:
    """As in any mapping."""
    _, seen = state(VALUES)
    assert seen.get("a") is None
    with pytest.raises(KeyError, match="a"):
        seen["a"]


def test_a_value_that_is_too_old_is_not_seen() -> None:
    """It reads as absent (law K6)."""
    counts, seen = state(Declared("value", int, key=str, ttl=5.0))
    put(counts, "a", 1)
    commit(counts)
    counts.tell(4.0)
    assert dict(seen) == {"a": 1}
    counts.tell(6.0)
    assert (dict(seen), len(seen), "a" in seen) == ({}, 0, False)


def test_nothing_is_remembered_unless_somebody_looks() -> None:
    """It would cost each epoch something."""
    counts = State(StateId("count", "total"), VALUES)
    put(counts, "a", 1)
    counts.seal()
    assert counts.before == {}


def test_it_says_what_it_is() -> None:
    """Not all that it has."""
    counts, seen = state(VALUES)
    put(counts, "a", 1)
    commit(counts)
    assert repr(seen) == "<state count.total of 1 entry>"
