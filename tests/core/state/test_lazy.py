"""States whose entries are read from the store, beside the same ones in memory (law K2, K3, K6, X3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.state.blobs import bytes_of_key
from stormlet.core.state.committed import Committed
from stormlet.core.state.lazy import maps, sweeping
from stormlet.core.state.lazy.states import LazyState
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.timers import Timers, timers_by
from stormlet.errors import StateUnusable
from stormlet.model.state.views import StateList, StateMap
from tests.core.state.kept_entries import KeptInMemory
from tests.core.state.twins import ID, Cart, Log, changes_of, task_of


@pytest.fixture(autouse=True, scope="module")
def few_at_once() -> Iterator[None]:
    """Maps of some entries are large, and sweeps are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "AT_ONCE", 2)
        patch.setattr(sweeping, "LEAST", 2)
        patch.setattr(sweeping, "MORE", 1)
        yield


DECLARED = {
    "int": Declared("value", int),
    "cart": Declared("value", Cart),
    "map": Declared("map", int, str),
    "map of carts": Declared("map", Cart, str),
    "list": Declared("list", int, int),
    "list of carts": Declared("list", Cart, int),
}
SCALAR = st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
KEY = st.recursive(SCALAR, lambda inner: st.tuples(inner, inner), max_leaves=3)
KEYS = ["a", "a", 1, 1.0, True, ("b", 2), ("b", 2.0), "c"]
WORDS = "uvwxyz"


class Word(Enum):
    """A key that is a member."""

    COW = "cow"


class Place(msgspec.Struct, frozen=True):
    """A record that is a key."""

    name: str
    number: float


class Pair:
    """A state in a store, and the same one in memory: whatever is done to both, they say the same."""

    def __init__(self, declared: Declared, random: Random) -> None:
        self._declared = declared
        self._random = random
        self._log, self.entries, self._now = Log(), KeptInMemory(), 0.0
        self._is_sealed = self._is_open = False
        self._start()

    def _start(self) -> None:
        self._plain = State(ID, self._declared, 3)
        self._plain.load(self._log.blobs, task_of)
        self._lazy = LazyState(ID, self._declared, 3, self.entries, task_of)
        self._lazy.check()
        for each in self._both:
            each.tell(self._now)
            each.remember()

    @property
    def _both(self) -> tuple[State, State]:
        return self._plain, self._lazy

    def step(self) -> None:
        """Do something to both."""
        ways = [self.put, self.read, self.read_all, self.change_in_place, self.clear, self.roll_back]
        others = [self.seal, self.write, self.tell, self.pass_time, self.restart]
        (way,) = self._random.choices([*ways, *others], [8, 4, 4, 2, 1, 1, 4, 2, 2, 2, 1])
        way(self._random.choice(KEYS))

    def _tables(self, key: object) -> Sequence[Any]:
        self._is_open = True
        return [each.tables[task_of(key)] for each in self._both]

    def _made(self, number: int) -> Any:
        return number if self._declared.value is int else Cart([], number)

    def _at(self) -> tuple[object, ...]:
        kind, random = self._declared.kind, self._random
        return () if kind == "value" else (random.choice(WORDS),) if kind == "map" else (random.randrange(6),)

    def put(self, key: object) -> None:
        """Several at once, and now and then fewer than before."""
        numbers, at = [self._random.randrange(4) for _ in range(3)], self._at()
        is_gone = self._random.random() < 0.3
        for table in self._tables(key):
            if self._declared.kind != "list":
                table.put(key, *at, None if is_gone else self._made(numbers[0]))
            elif is_gone:
                del StateList[Any](table, key)[-1:]
            else:
                StateList[Any](table, key).extend(map(self._made, numbers))

    def read(self, key: object) -> None:
        at = self._at()
        plain, lazy = (table.get(key, *at) for table in self._tables(key))
        assert lazy == plain

    def read_all(self, key: object) -> None:
        if self._declared.kind == "map":
            plain, lazy = (StateMap[Any, Any](table, key) for table in self._tables(key))
            assert (len(lazy), dict(lazy)) == (len(plain), dict(plain))
        elif self._declared.kind == "list":
            assert len({repr(StateList[Any](table, key)) for table in self._tables(key)}) == 1

    def change_in_place(self, key: object) -> None:
        at = self._at()
        for table in self._tables(key):
            found = table.get(key, *at)
            if isinstance(found, Cart):
                found.items.append("more")

    def clear(self, key: object) -> None:
        for table in self._tables(key):
            if self._declared.kind == "value":
                table.delete(key)
            else:
                view: Any = StateMap if self._declared.kind == "map" else StateList
                view(table, key).clear()

    def roll_back(self, key: object) -> None:
        for each in self._both:
            each.roll_back()

    def seal(self, key: object) -> None:
        self.tell(key)
        self._log.take(self._plain.seal())
        self.entries.on_its_way = self._lazy.seal()
        self._is_sealed, self._is_open = True, False

    def write(self, key: object) -> None:
        self.entries.write()

    def tell(self, key: object) -> None:
        self.entries.write()
        self._is_sealed = False
        for each in self._both:
            each.told()

    def pass_time(self, key: object) -> None:
        if not self._is_open:  # it stands still within an epoch
            self._now += self._random.choice([0.5, 2.0])
            for state in self._both:
                state.tell(self._now)

    def restart(self, key: object) -> None:
        if not self._is_sealed:
            self._start()

    def check(self) -> None:
        """What is durable is the same."""
        plain, lazy = map(Committed, self._both)
        assert (dict(lazy), len(lazy)) == (dict(plain), len(plain))
        if self._declared.kind != "value":
            for table in self._lazy.tables:
                assert table.changes == changes_of(cast("MapTable", table))
        if self._declared.ttl is None:
            assert self._lazy.size == self._plain.size
        if not self._is_sealed:
            assert self._lazy.size == len(self.entries.entries)


@pytest.mark.parametrize("ttl", [None, 3.0])
@pytest.mark.parametrize("kind", DECLARED)
def test_a_state_in_a_store_is_as_one_in_memory(kind: str, ttl: float | None) -> None:
    """Whatever is read, changed, rolled back, sealed, written, told and begun anew, in any order."""
    declared = msgspec.structs.replace(DECLARED[kind], ttl=ttl)
    for seed in range(60):
        pair = Pair(declared, Random(seed))
        for _ in range(80):
            pair.step()
            pair.check()


@pytest.mark.parametrize("kind", DECLARED)
def test_the_space_of_what_is_too_old_comes_back(kind: str) -> None:
    """Some of it with each epoch that changes something (law K6)."""
    declared = msgspec.structs.replace(DECLARED[kind], ttl=3.0)
    pair = Pair(declared, Random(1))
    for _ in range(2):
        for number in range(40):
            pair.put(f"key {number}")
        pair.seal("")
        pair.tell("")
        whole = len(pair.entries.entries)
        for _ in range(whole):
            pair.pass_time("")
            pair.put("another")
            pair.seal("")
            pair.check()
        pair.tell("")
        assert whole > 25
        assert not any(b"key " in each for each in pair.entries.entries)


def lazy(declared: Declared, entries: KeptInMemory, tasks: int = 1) -> LazyState:
    """It is begun anew."""
    made = LazyState(ID, declared, tasks, entries, lambda key: task_of(key) % tasks)
    made.check()
    return made


def commit(state: LazyState, entries: KeptInMemory) -> None:
    entries.on_its_way = state.seal()
    entries.write()
    state.told()


def test_a_key_in_use_is_read_once() -> None:
    """In each of two epochs that follow one another; another epoch reads it anew, and has forgotten the rest."""
    entries = KeptInMemory()
    state = lazy(Declared("value", int), entries)
    table: Any = state.tables[0]
    table.put("a", 1)
    commit(state, entries)
    entries.reads = 0
    for _ in range(3):
        assert table.get("a") == 1
        commit(state, entries)
    assert entries.reads == 0
    commit(state, entries)
    assert [table.get("a") for _ in range(9)] == [1] * 9
    assert entries.reads == 1


def test_a_long_list_is_added_to_without_being_read() -> None:
    """Its end is found, and so is that of one of which only the first items are at hand."""
    entries = KeptInMemory()
    state = lazy(DECLARED["list"], entries)
    items = StateList[int](state.tables[0], "a")  # type: ignore[arg-type]
    items.extend(range(1000))
    for _ in range(3):
        commit(state, entries)
    entries.reads = 0
    items.append(1000)
    assert (items[-1], len(items), entries.reads) == (1000, 1001, 4)


def test_a_map_whose_entries_come_and_go_is_read_once() -> None:
    """What is gone takes no space beside what is there, or it would be read again in each epoch; so it is with a timer
    that is put off again and again."""
    entries = KeptInMemory()
    state = lazy(DECLARED["map"], entries)
    entry = StateMap[str, int](state.tables[0], "a")  # type: ignore[arg-type]
    entry["0"] = 0
    commit(state, entries)
    entries.reads = 0
    for number in range(1, 20):
        entry[str(number)] = entry.pop(str(number - 1)) + 1
        commit(state, entries)
    assert (dict(entry), entries.reads) == ({"19": 19}, 0)


def test_a_value_is_set_in_a_large_map_without_counting_it() -> None:
    """Entries are read one by one."""
    entries = KeptInMemory()
    state = lazy(DECLARED["map"], entries)
    entry = StateMap[str, int](state.tables[0], "a")  # type: ignore[arg-type]
    entry.update({f"{number:04}": number for number in range(1000)})
    for _ in range(3):
        commit(state, entries)
    entries.reads = 0
    entry["0500"] += 1
    entry["new"] = 7
    assert entries.reads == 3
    assert (len(entry), entry["0500"], state.size) == (1001, 501, 1000)


def test_timers_are_found_in_the_store() -> None:
    """By the task that has their key (law K7)."""
    entries = KeptInMemory()
    for keys, at in (("ab", 1.0), ("cd", 0.5)):
        state = lazy(timers_by(str), entries, 3)
        timers = [Timers(cast("MapTable", table)) for table in state.tables]
        for key in keys:
            timers[task_of(key)].set(key, at)
        commit(state, entries)
    found = [Timers(cast("MapTable", table)) for table in lazy(timers_by(str), entries, 3).tables]
    due = [[key for _, key in each.due(1.0)] for each in found]
    assert sorted(key for keys in due for key in keys) == ["a", "b", "c", "d"]
    assert all(task_of(key) == task for task, keys in enumerate(due) for key in keys)


@pytest.mark.parametrize("kind", ["int", "map"])
def test_each_task_goes_over_its_own_keys(kind: str) -> None:
    """Of all that the store has."""
    entries = KeptInMemory()
    state = lazy(DECLARED[kind], entries, 3)
    for key in "abcdef":
        table: Any = state.tables[task_of(key) % 3]
        table.put(key, 1) if kind == "int" else table.put(key, "inner", 1)
    commit(state, entries)
    commit(state, entries)
    found = [list(table.committed_keys()) for table in state.tables]
    assert sorted(key for keys in found for key in keys) == list("abcdef")
    assert all(task_of(key) % 3 == task for task, keys in enumerate(found) for key in keys)


def test_a_key_of_another_type_is_refused_by_name() -> None:
    """Also where it has no bytes to look for."""
    table: Any = lazy(Declared("value", int, key=str), KeptInMemory()).tables[0]
    with pytest.raises(TypeError, match="bolt 'count', state 'total'"):
        table.get(2**70)


def test_what_no_store_can_have_is_not_there() -> None:
    """The host may ask for anything."""
    seen = Committed(lazy(Declared("value", int, key=str), KeptInMemory()))
    assert [object() in seen, 2**70 in seen, seen.get((object(), 1))] == [False, False, None]


def test_what_does_not_decode_fails_the_start() -> None:
    """Each entry is looked at, though none stays (law K5)."""
    entries = KeptInMemory()
    state = lazy(Declared("value", str, key=str), entries)
    cast("Any", state.tables[0]).put("a", "one")
    commit(state, entries)
    with pytest.raises(StateUnusable, match=r"state count.total does not decode as int by str: .* upgrade="):
        lazy(Declared("value", int, key=str), entries)
    upgraded = lazy(Declared("value", int, key=str, upgrade=len), entries)
    assert dict(Committed(upgraded)) == {"a": 3}


class Region(msgspec.Struct, frozen=True, omit_defaults=True):
    """The default is left out of the bytes of one, and an equal text that was read is not."""

    shop: str
    name: str = "europe"


@dataclass(frozen=True)
class Noted:
    """Of two that are equal the notes may differ."""

    name: str
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Caseless:
    """Two are equal whose letters are."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Caseless) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


class Sized(NamedTuple):
    """A record with one inside of which equal ones may have other bytes."""

    size: int
    noted: Noted


@pytest.mark.parametrize(
    "kind",
    [Decimal, tuple[str, Decimal], time, frozenset[int], Region, Noted, Caseless, Sized, Region | None],
)
def test_keys_of_which_equal_ones_have_other_bytes_are_refused(kind: Any) -> None:
    """The state is named, and the ways out."""
    for declared in (Declared("value", int, key=kind), Declared("map", int, kind, str)):
        with pytest.raises(StateUnusable, match=r"state 'count.total' has keys of type .*; group by a str"):
            lazy(declared, KeptInMemory())


class Labelled(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is left out of its bytes is equal to itself alone."""

    name: str
    is_new: bool = False
    label: str | None = None
    number: int = 1
    note: str = ""


class Listed(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """Nothing is left out of its bytes."""

    name: str = "a name"


@dataclass(frozen=True)
class Plain:
    """A record as most are."""

    name: str
    number: int = 300


@dataclass(frozen=True)
class Exact(Caseless):
    """Compares its fields again."""


@pytest.mark.parametrize("kind", [Labelled, Listed, Plain, Exact, Place, tuple[Plain, Word], UUID])
def test_keys_of_which_equal_ones_have_the_same_bytes_are_taken(kind: Any) -> None:
    """Records too."""
    for declared in (Declared("value", int, key=kind), Declared("map", int, kind, str)):
        lazy(declared, KeptInMemory())


SAME: list[tuple[object, ...]] = [
    (1, 1.0, True),
    (0, 0.0, -0.0, False),
    (2**63, float(2**63)),
    (("a", 1), ("a", 1.0), ["a", True]),
    (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
    (Place("x", 1), Place("x", 1.0)),
    (Labelled("x"), Labelled("x", bool(0), None, int("1"), str(b"", "ascii"))),
]


@pytest.mark.parametrize("keys", SAME)
def test_equal_keys_have_the_same_bytes(keys: tuple[object, ...]) -> None:
    """Also within tuples and records (law K1)."""
    assert len({bytes_of_key(key) for key in keys}) == 1


@given(st.lists(KEY, unique=True))
def test_other_keys_have_other_bytes(keys: list[Any]) -> None:
    """And none has those with which another one begins."""
    found = sorted(map(bytes_of_key, keys))
    assert not any(after.startswith(before) for before, after in pairwise(found))
