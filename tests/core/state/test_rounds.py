"""The time for a round: when it frees something (law K6, and the log of a state)."""

from __future__ import annotations

from random import Random
from typing import Literal, cast

import pytest

from stormlet.core.state import rounds
from stormlet.core.state.rounds import MOST_CHANGES, Rounds
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable
from tests.core.state.twins import ID, Log, committed

LEAST = 1000


@pytest.fixture(autouse=True)
def rounds_of_small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few changes are worth one."""
    monkeypatch.setattr(rounds, "LEAST_LOG", LEAST)


def state_and_log(ttl: float | None = None) -> tuple[State, Log]:
    return State(ID, Declared("value", str, ttl=ttl)), Log()


def put(state: State, key: str, value: str | None) -> None:
    cast(ValueTable, state.tables[0]).put(key, value)


def read_again(state: State, log: Log) -> bool:
    """Whether what a next run finds is what this one has."""
    again = State(ID, state.declared)
    again.load(log.blobs)
    return committed(again) == committed(state)


def test_what_only_grows_is_seldom_written_twice() -> None:
    """Nothing is replaced, so that a round would free nothing: a quarter is written again, and not twice as much."""
    state, log = state_and_log()
    written = changed = 0
    for epoch in range(2000):
        for number in range(10):
            put(state, f"key {epoch:04} {number}", "value")
        state.encode()
        appends = state.seal()
        written += sum(len(each.blob) for each in appends)
        changed += len(appends[0].blob)
        log.take(appends)
    assert changed < written < 1.6 * changed
    assert read_again(state, log)


def test_what_grows_and_changes_has_a_log_of_three_times_its_size() -> None:
    """Whatever part of the changes is of new keys, and however that part changes."""
    for seed in range(30):
        random, (state, log) = Random(seed), state_and_log()
        live: dict[str, str] = {}
        most, part = 0, 1.0
        for epoch in range(400):
            if epoch % 50 == 49:
                part = random.choice([0.0, 0.1, 0.5, 1.0])
            for number in range(random.randrange(1, 20)):
                new = random.random() < part or not live
                key = f"key {epoch:04} {number:02}" if new else random.choice([*live])
                live[key] = f"value {epoch:04}"
                put(state, key, live[key])
            appends = state.seal()
            most = max(most, sum(len(each.blob) for each in appends))
            log.take(appends)
            size = sum(len(key) + len(value) + 2 for key, value in live.items())
            assert log.size <= 3 * size + 2 * LEAST + 2 * most
        assert committed(state) == live
        assert read_again(state, log)


@pytest.mark.parametrize("kind", ["value", "map"])
def test_what_comes_and_goes_has_a_log_of_three_times_its_size(kind: Literal["value", "map"]) -> None:
    """As sessions do: all entries are new, and yet the state does not grow."""
    state, log = State(ID, Declared(kind, str, str)), Log()
    table = state.tables[0]
    most = 0
    for epoch in range(600):
        for number in range(10):
            for moment, value in ((epoch, "value"), (epoch - 20, None)):
                key = f"key {moment:04} {number}"
                if isinstance(table, ValueTable):
                    table.put(key, value)
                else:
                    table.put("all", key, value)
        appends = state.seal()
        most = max(most, sum(len(each.blob) for each in appends))
        log.take(appends)
        assert log.size <= 3 * 200 * (len("key 0000 0value") + 7) + 2 * LEAST + 2 * most
    assert state.size == 200


def test_a_large_value_among_small_new_ones_does_not_let_the_log_grow_for_ever() -> None:
    """By the number of entries nearly nothing is replaced, by bytes nearly all."""
    state, log = state_and_log()
    live = 4000
    for epoch in range(500):
        put(state, "model", f"{epoch % 10}" * 4000)
        for number in range(20):
            key = f"key {epoch * 20 + number}"
            put(state, key, "v")
            live += len(key) + 3
        log.take(state.seal())
        assert log.size <= 10 * live + 10 * LEAST
    assert read_again(state, log)


def test_with_a_ttl_rounds_follow_each_other() -> None:
    """Or what only grows would never be freed, however old it is (law K6)."""
    state, log = state_and_log(ttl=10.0)
    sizes = list[int]()
    for epoch in range(300):
        state.tell(float(epoch))
        for number in range(10):
            put(state, f"key {epoch:04} {number}", "value")
        log.take(state.seal())
        sizes.append(state.size)
    assert max(sizes) <= 250  # of which 100 are young enough


def test_changes_that_replace_nothing_are_worth_no_round_until_they_are_many() -> None:
    """As many bytes as the last round has written, four times."""
    log = Rounds(2.0, frees_old=False)
    log.change(LEAST, entries=1000, more=1000)
    assert not log.is_due
    log.change(int((MOST_CHANGES - 1) * LEAST), entries=1, more=1)
    assert log.is_due
    log.begin()
    log.write(5000)
    log.end()
    log.change(int(MOST_CHANGES * 5000) - 1, entries=1, more=1)
    assert not log.is_due
    log.change(1, entries=1, more=1)
    assert log.is_due


def test_a_round_is_worth_it_when_half_of_the_live_bytes_were_replaced() -> None:
    """New bytes are live, too."""
    log = Rounds(2.0, frees_old=False)
    log.load(0, live=4000.0, entries=400)
    log.begin()
    log.write(4000)
    log.end()
    log.change(1000, entries=100, more=100)
    log.change(2499, entries=249, more=0)
    assert not log.is_due
    log.change(1, entries=1, more=0)
    assert log.is_due


@pytest.mark.parametrize("rest", [None, "v"], ids=["deleted", "made small"])
def test_what_has_become_small_is_given_back_soon(rest: str | None) -> None:
    """A deletion is a few bytes, and so is a small value; what it frees may be a thousand times as much."""
    state, log = state_and_log()
    keys = [f"key {number:03}" for number in range(300)]
    # Whole rounds, so that none is under way when the values go: its end would free them anyway.
    epoch = 0
    while epoch < 2 * len(keys) or not state._begins_round:
        put(state, keys[epoch % len(keys)], "value" * 200)
        log.take(state.seal())
        epoch += 1
    for key in keys:
        put(state, key, rest)
        log.take(state.seal())
    for epoch in range(500):
        put(state, "last", f"{epoch}")
        log.take(state.seal())
    live = sum(len(key) + 3 for key in keys) if rest else 0
    assert log.size <= 3 * live + 6 * LEAST
    assert read_again(state, log)
