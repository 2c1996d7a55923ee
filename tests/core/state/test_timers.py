"""Timers of keys (law K7)."""

from __future__ import annotations

from typing import cast

import pytest

from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME, Timers, timers_by

ID = StateId("remind", NAME)


def made() -> tuple[State, Timers]:
    state = State(ID, timers_by(str))
    return state, Timers(cast(MapTable, state.tables[0]))


def test_they_are_due_by_time_and_then_in_the_order_they_were_set() -> None:
    """Never early, and once (law K7)."""
    _, timers = made()
    for key, at in [("late", 3), ("b", 2), ("a", 2), ("b", 1)]:
        timers.set(key, at)
    assert timers.next == 1
    assert timers.due(2) == [(1, "b"), (2, "b"), (2, "a")]
    assert (timers.due(2), timers.next) == ([], 3)


def test_one_that_is_set_twice_is_set_once() -> None:
    """It keeps its place (law K7)."""
    _, timers = made()
    for key in ("a", "b", "a"):
        timers.set(key, 1)
    assert timers.due(1) == [(1, "a"), (1, "b")]


def test_one_that_is_cancelled_is_not_due() -> None:
    """It may be set again, and cancelling what is not set does nothing (law K7)."""
    _, timers = made()
    timers.set("a", 1)
    timers.set("b", 1)
    timers.cancel("a", 1)
    timers.cancel("c", 1)
    timers.set("a", 1)
    assert timers.due(1) == [(1, "b"), (1, "a")]


def test_a_roll_back_brings_back_what_was_set_before() -> None:
    """What has fired, and what was cancelled; what was set in the attempt is gone (law K3)."""
    state, timers = made()
    for key in ("fired", "cancelled", "left"):
        timers.set(key, 1)
    state.seal()
    timers.sealed()
    timers.cancel("cancelled", 1)
    timers.set("new", 0.5)
    assert timers.due(1) == [(0.5, "new"), (1, "fired"), (1, "left")]
    state.roll_back()
    timers.rolled_back()
    assert timers.due(1) == [(1, "fired"), (1, "cancelled"), (1, "left")]
    state.seal()
    timers.sealed()
    timers.rolled_back()
    assert timers.due(1) == []


def test_a_restart_finds_them_in_their_order() -> None:
    """As they are an entry of the state each."""
    state, timers = made()
    for key in ("b", "a", "c"):
        timers.set(key, 1)
    timers.cancel("c", 1)
    again, found = made()
    again.load([each.blob for each in state.seal()])
    found.load()
    found.set("c", 1)
    assert found.due(1) == [(1, "b"), (1, "a"), (1, "c")]


@pytest.mark.parametrize("at", [float("nan"), float("inf")])
def test_a_time_that_never_comes_is_refused(at: float) -> None:
    """As what waits for it would wait for ever."""
    with pytest.raises(ValueError, match=r"^a timer is set for a number of seconds since 1970, not"):
        made()[1].set("a", at)


def test_one_for_a_time_that_is_past_is_due_in_the_next_epoch() -> None:
    """However often the epoch that has set it is asked (law K7)."""
    state, timers = made()
    state.tell(5)
    timers.set("a", 5)
    assert timers.due(5) == []
    state.seal()
    timers.sealed()
    assert timers.due(5) == [(5, "a")]
