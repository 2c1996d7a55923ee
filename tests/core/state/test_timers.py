"""Timers of keys (law K7)."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest

from stormlet.core.state import timers as module
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


def heap_of(timers: Timers) -> int:
    return len(timers._heap) + len(timers._gone)


def test_timers_that_are_put_off_again_and_again_do_not_pile_up() -> None:
    """Also where an earlier one is not due for long, so that none of them ever comes first."""
    state, timers = made()
    timers.set("idle", 1)
    for at in range(2, 20_000):
        timers.cancel("busy", at - 1)
        timers.set("busy", at)
        if at % 100 == 0:
            state.seal()
            timers.sealed()
    assert heap_of(timers) < 4 * module.LEAST_GONE
    assert timers.due(20_000) == [(1, "idle"), (19_999, "busy")]


def test_timers_of_attempts_that_are_rolled_back_do_not_pile_up() -> None:
    """Each attempt sets others, as its time is another one."""
    state, timers = made()
    timers.set("idle", 1)
    state.seal()
    timers.sealed()
    for at in range(2, 20_000):
        timers.set("failing", at)
        if at % 100 == 0:
            state.roll_back()
            timers.rolled_back()
    assert heap_of(timers) < 4 * module.LEAST_GONE
    state.roll_back()
    timers.rolled_back()
    assert timers.due(20_000) == [(1, "idle")]


class Plain:
    """Timers without a heap."""

    def __init__(self) -> None:
        self.set: dict[tuple[str, float], int] = {}
        self.late: set[tuple[str, float]] = set()
        self.order = 0
        self.sealed()

    def put(self, key: str, at: float, now: float) -> None:
        if (key, at) not in self.set:
            self.order += 1
            self.set[key, at] = self.order
            if at <= now:
                self.late.add((key, at))

    def cancel(self, key: str, at: float) -> None:
        self.set.pop((key, at), None)
        self.late.discard((key, at))

    def due(self, now: float) -> list[tuple[float, str]]:
        found = sorted(
            (at, order, key)
            for (key, at), order in self.set.items()
            if at <= now and (key, at) not in self.late
        )
        for at, _, key in found:
            del self.set[key, at]
        return [(at, key) for at, _, key in found]

    def sealed(self) -> None:
        self.late = set()
        self._before = dict(self.set)

    def rolled_back(self) -> None:
        self.late = set()
        self.set = dict(self._before)


@pytest.mark.parametrize("seed", range(20))
def test_they_are_as_timers_without_a_heap(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is set, cancelled, fired, sealed and rolled back, and however often the heap is built anew."""
    monkeypatch.setattr(module, "LEAST_GONE", 1)
    random, plain, now = Random(seed), Plain(), 0.0
    state, timers = made()
    for _ in range(500):
        key, at = random.choice("abc"), now + random.randrange(-1, 8)
        match random.randrange(8):
            case 0:
                assert timers.due(now + 1) == plain.due(now + 1)
            case 1:
                now += random.randrange(2)
                state.seal()
                timers.sealed()
                plain.sealed()
                state.tell(now)
            case 2:
                state.roll_back()
                timers.rolled_back()
                plain.rolled_back()
            case 3 | 4:
                timers.cancel(key, at)
                plain.cancel(key, at)
            case _:
                timers.set(key, at)
                plain.put(key, at, now)
        assert heap_of(timers) <= 4 * len(plain.set) + 40
    state.seal()
    timers.sealed()
    plain.sealed()
    assert timers.due(now + 9) == plain.due(now + 9)
