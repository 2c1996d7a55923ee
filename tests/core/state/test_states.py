"""Keyed state against a naive model: dicts and copies of them (law X1, K2, K3, K5)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from stormlet.core.state import blobs, rounds
from stormlet.core.state.codecs import encoded
from stormlet.core.state.commits import Shape
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared, Kind
from stormlet.core.state.value_table import ValueTable
from stormlet.errors import StateUnusable
from tests.core.state.twins import ID, VALUES, Cart, Log, MapTwin, Point, Twin, committed


@pytest.fixture(autouse=True, scope="module")
def rounds_at_once() -> Iterator[None]:
    """Rounds of small states, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "LEAST_LOG", 0)
        yield


@pytest.mark.parametrize("kind", VALUES)
def test_any_sequence_of_changes_ends_as_in_a_dict(kind: str) -> None:
    """Puts, changes in place, deletes, roll-backs, seals and restarts, in any order."""
    run_state_machine_as_test(type(f"Twin_{kind}", (Twin,), {"kind": kind}))


@pytest.mark.parametrize("kind", ["int", "cart"])
def test_any_sequence_of_changes_of_maps_ends_as_in_a_dict(kind: str) -> None:
    """Entries are put, changed in place, deleted, rolled back, sealed and loaded one by one."""
    run_state_machine_as_test(type(f"MapTwin_{kind}", (MapTwin,), {"kind": kind}))


def filled(kind: Any = int, *, keys: int = 100, tasks: int = 1, **more: Any) -> tuple[State, Log]:
    """A state whose keys all have a value, sealed once."""
    state, log = State(ID, Declared("value", kind, **more), tasks), Log()
    for number in range(keys):
        table = state.tables[number % tasks]
        cast(ValueTable, table).put(f"key {number:05}", kind(1))
    log.take(state.seal())
    return state, log


def table_of(state: State) -> ValueTable:
    """Its only table."""
    return cast(ValueTable, state.tables[0])


@settings(deadline=None, max_examples=50)
@given(
    keys=st.integers(1, 300),
    hot=st.integers(1, 50),
    epochs=st.integers(1, 300),
    tasks=st.sampled_from([1, 3]),
    seed=st.randoms(use_true_random=False),
)
def test_the_log_stays_within_three_times_the_state(
    keys: int, hot: int, epochs: int, tasks: int, seed: Random
) -> None:
    """However the changes fall on the keys, and beside that the blobs of the last epochs."""
    state, log = filled(keys=keys, tasks=tasks)
    live, most = log.size, 0
    for _ in range(epochs):
        for number in {seed.randrange(keys) % (hot * tasks) for _ in range(hot)}:
            cast(ValueTable, state.tables[number % tasks]).put(f"key {number:05}", 2)
        appends = state.seal()
        most = max(most, sum(len(each.blob) for each in appends))
        log.take(appends)
        assert log.size <= 3 * live + 2 * most + 6 * tasks
    again = State(ID, state.declared)
    again.load(log.blobs)
    assert committed(again) == committed(state)


def test_a_round_that_a_restart_has_interrupted_is_not_taken_for_a_whole_one() -> None:
    """What it had not come to is kept until the next life has written it."""
    state, log = filled(keys=100)
    expected = {**committed(state), "key 00000": 99}
    for life in range(100):
        table_of(state).put("key 00000", life)
        log.take(state.seal())
        state = State(ID, state.declared)
        state.load(log.blobs)
    assert committed(state) == expected


def test_restarts_do_not_let_the_log_grow() -> None:
    """Each life ends long before its round; the log is cut back all the same."""
    state, log = filled(keys=1000)
    live = log.size
    for life in range(100):
        state = State(ID, state.declared)
        state.load(log.blobs)
        for epoch in range(20):
            for number in range(10):
                table_of(state).put(f"key {number:05}", life + epoch)
            log.take(state.seal())
        assert log.size <= 5 * live


def test_nothing_is_written_where_nothing_has_changed() -> None:
    """A value that was only read is not a change, and neither is one that is as it was."""
    state = State(ID, Declared("value", Cart))
    table_of(state).put("a", Cart(["x"]))
    assert len(state.seal()) == 2
    assert table_of(state).get("a") == Cart(["x"])
    assert (state.changes, state.seal()) == (1, ())


def test_a_value_that_does_not_fit_leaves_all_as_it_was() -> None:
    """It is found when the epoch is encoded, and named; nothing was committed by then."""
    state = State(ID, Declared("value", Cart))
    table_of(state).put("b", Cart())
    table_of(state).put("a", Cart([], cast(int, "many")))
    with pytest.raises(
        TypeError, match=r"^bolt 'count', state 'total', key 'a': the value Cart\(.* kept as Cart: Exp"
    ):
        state.encode()
    assert committed(state) == {}
    state.roll_back()
    assert state.seal() == ()


def test_states_are_encoded_before_one_of_them_is_sealed() -> None:
    """So that one that cannot be leaves them all as they were; a roll-back forgets what was encoded."""
    state = State(ID, Declared("value", int))
    table_of(state).put("a", 1)
    state.encode()
    state.roll_back()
    assert state.seal() == ()
    table_of(state).put("a", 2)
    state.encode()
    assert (len(state.seal()), committed(state)) == (2, {"a": 2})


def test_the_mean_size_is_that_of_late() -> None:
    """Values that have grown are large, however many small ones there were."""
    state = State(ID, Declared("value", str))
    for length in (1, 100):
        for _ in range(3):
            for number in range(60_000):
                table_of(state).put(number, "x" * length)
            state.seal()
    assert state.size_in_bytes > 60_000 * 80


def test_a_large_blob_is_cut() -> None:
    """By the number of its entries, and by their bytes; a value of its own is never cut."""
    state = State(ID, Declared("value", bytes))
    for number in range(25_000):
        table_of(state).put(number, b"x" * (400_000 if number < 6 else 1))
    blobs = [each.blob for each in state.seal()]
    assert max(map(len, blobs)) <= 2**20
    again = State(ID, state.declared)
    again.load(blobs)
    assert committed(again) == committed(state)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            Declared("value", int),
            r"^state count.total does not decode as int by str.* got `str`.*upgrade=",
        ),
        (Declared("value", str, key=int), r"as str by int: Expected `int`, got `str`.* declare it as it was"),
        (Declared("value", Cart), r"as Cart by str"),
    ],
)
def test_what_does_not_decode_fails_the_start(wrong: Declared, says: str) -> None:
    """The state is named, and the ways out (law K5)."""
    state = State(ID, Declared("value", str, key=str))
    table_of(state).put("a", "one")
    blobs = [each.blob for each in state.seal()]
    wrong = wrong if wrong.key is int else msgspec.structs.replace(wrong, key=str)
    with pytest.raises(StateUnusable, match=says):
        State(ID, wrong).load(blobs)


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        (
            "value",
            r"declare it as it was, convert it with upgrade=, or remove it with `stormlet state forget`$",
        ),
        ("map", r"declare it as it was, or remove it with `stormlet state forget`$"),
        ("list", r"declare it as it was, or remove it with `stormlet state forget`$"),
    ],
)
def test_the_ways_out_are_those_of_the_kind(kind: Kind, ways: str) -> None:
    """Maps and lists have no upgrade=."""
    entry: Any = "a" if kind == "value" else ("a", 0)
    with pytest.raises(StateUnusable, match=ways):
        State(ID, Declared(kind, int, int, key=str)).load([encoded({entry: "one"})])


@pytest.mark.parametrize("kind", [int, Cart])
def test_an_old_value_is_upgraded(kind: Any) -> None:
    """The function gets basic types; what decodes as the new type is left alone (law K5)."""
    made = {int: len, Cart: lambda old: Cart([old])}[kind]
    old = State(ID, Declared("value", str))
    table_of(old).put("a", "three")
    table_of(old).put("b", "gone")
    blobs = [each.blob for each in old.seal()]
    table_of(old).put("b", None)
    blobs += [each.blob for each in old.seal()]
    new = State(ID, Declared("value", kind, upgrade=made))
    new.load(blobs)
    assert committed(new) == {"a": made("three")}


def blobs_of(value: Any) -> list[bytes]:
    state = State(ID, Declared("value", type(value), key=str))
    table_of(state).put("a", value)
    return [each.blob for each in state.seal()]


def missing(old: Any) -> int:
    raise KeyError(old)


def test_an_upgrade_that_raises_fails_the_start() -> None:
    """The state and the old value are named (law K5)."""
    new = State(ID, Declared("value", int, key=str, upgrade=missing))
    with pytest.raises(
        StateUnusable, match=r"^state count.total .*: upgrade= raised KeyError\('one'\) for 'one'; declare"
    ):
        new.load(blobs_of("one"))


class Strict(msgspec.Struct):
    """A record that takes nothing."""

    items: list[str]

    def __post_init__(self) -> None:
        raise LookupError("nothing fits")


class Large(msgspec.Struct):
    """A record for which there is no room."""

    items: list[str]

    def __post_init__(self) -> None:
        raise MemoryError


def test_a_value_for_which_there_is_no_room_is_not_called_unfit() -> None:
    """What the process lacks is not the fault of the file."""
    new = State(ID, Declared("value", Large, key=str))
    with pytest.raises(MemoryError):
        new.load(blobs_of(Cart(["tea"])))


def test_a_class_that_raises_fails_the_start() -> None:
    """The state is named (law K5)."""
    new = State(ID, Declared("value", Strict, key=str))
    with pytest.raises(
        StateUnusable, match=r"^state count.total .* its class raised LookupError\('nothing fits'\); declare"
    ):
        new.load(blobs_of(Cart(["tea"])))


def test_statistics_say_about_how_large_it_is() -> None:
    """Keys are counted, bytes estimated by the mean of an entry."""
    state, log = filled(keys=500)
    assert state.size == 500
    assert state.size_in_bytes == pytest.approx(log.size / 2, rel=0.05)


def test_the_types_are_told_in_words() -> None:
    """As the store notes them (law K5)."""
    assert Declared("value", Cart, key=str).shape == Shape("value", "str", "Cart")
    assert Declared("map", list[Point], int, key=tuple[str, int]).shape == Shape(
        "map", "tuple[str, int]", "dict[int, list[Point]]"
    )
    assert Declared("list", Point | None, int).shape == Shape("list", "Any", "list[Point | None]")


def test_a_small_state_begins_no_round_before_its_log_is_worth_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """So its earlier epochs can be read; the log is bounded all the same."""
    monkeypatch.setattr(rounds, "LEAST_LOG", 10_000)
    state, sizes, begun = State(ID, Declared("value", int)), list[int](), list[int]()
    for epoch in range(3000):
        cast("ValueTable", state.tables[0]).put(f"key {epoch % 50}", epoch)
        appends = state.seal()
        sizes.append(sum(len(each.blob) for each in appends))
        begun += [epoch] * sum(each.begins_round for each in appends)
    assert len(begun) >= 3
    between = [sum(sizes[one:other]) for one, other in zip([0, *begun], begun, strict=False)]
    assert all(9_900 <= each < 12_000 for each in between)


def test_a_log_that_a_start_finds_is_worth_a_round_when_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs would never come to one otherwise."""
    monkeypatch.setattr(rounds, "LEAST_LOG", 1000)
    blobs, begun = list[bytes](), 0
    for run in range(400):
        state = State(ID, Declared("value", int))
        state.load(blobs)
        cast("ValueTable", state.tables[0]).put(f"key {run % 10}", run)
        for epoch in range(2):
            cast("ValueTable", state.tables[0]).put("last", run * epoch)
            for each in state.seal():
                begun += each.begins_round
                blobs.append(each.blob)
    assert begun > 5


def test_many_entries_are_several_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with as many as a blob should have."""
    monkeypatch.setattr(blobs, "MOST_ENTRIES", 10)
    state = State(ID, Declared("value", int))
    for number in range(25):
        cast("ValueTable", state.tables[0]).put(f"key {number}", number)
    state.encode()
    again = State(ID, state.declared)
    found = [each.blob for each in state.seal()]
    again.load(found)
    assert len(found) >= 3
    assert again.size == 25
