"""Bolts with state for each key, made by hand as a user's test makes them (law K1 to K3)."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import msgspec
import pytest

from stormlet import Cell, Collector, KeyedBolt, ListOf, MapOf, Tuple, Value
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME, Timers
from stormlet.model.state.keyed import attach, key_type, states_of
from stormlet.model.state.slots import hand_of, view_of

N = TypeVar("N")
M = TypeVar("M")
INPUT = cast("Tuple[str]", None)
OUT = cast("Collector[str]", None)


class Cart(msgspec.Struct):
    """Can change in place."""

    items: list[str] = []


class Count(KeyedBolt[str, str, str]):
    """Has one state of each kind."""

    total = Value(int, 0)
    name = Value(str)
    cart = Value(Cart, factory=Cart)
    prices = MapOf(str, float)
    latest = ListOf(int)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        """Count."""
        self.total += 1


class Remind(KeyedBolt[str, str, str]):
    """Has timers."""

    def on_timer(self, at: float, out: Collector[str]) -> None:
        """Act."""


def count(key: str = "moon") -> Count:
    bolt = Count()
    bolt.key = key
    return bolt


def test_an_instance_made_by_hand_has_state() -> None:
    """A user's test sets the key, and calls it."""
    bolt = count()
    bolt.execute(INPUT, OUT)
    bolt.execute(INPUT, OUT)
    assert (bolt.total, bolt.now) == (2, 0.0)


def test_each_key_has_a_value_of_its_own() -> None:
    """And none of them is another instance's (law K2)."""
    bolt = count()
    bolt.total = 5
    bolt.key = "sun"
    assert (bolt.total, count().total) == (0, 0)


def test_a_value_reads_as_its_default_until_it_is_set() -> None:
    """None, where it has no default; deleted or set to None it is absent again."""
    bolt = count()
    assert (bolt.total, bolt.name) == (0, None)
    bolt.total, bolt.name = 7, "Luna"
    assert (bolt.total, bolt.name) == (7, "Luna")
    del bolt.total
    bolt.name = None
    assert (bolt.total, bolt.name) == (0, None)


def test_a_factory_makes_a_value_for_each_key() -> None:
    """Which may be changed in place."""
    bolt = count()
    bolt.cart.items.append("tea")
    assert bolt.cart == Cart(["tea"])
    bolt.key = "sun"
    assert bolt.cart == Cart()


@pytest.mark.parametrize("value", ["one", 2**64, 1.5])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    """Where it is set, whether the key had one before or not."""
    bolt = count()
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^bolt 'Count', state 'total', key 'moon': the value"):
            bolt.total = value
        bolt.total = 1


def test_a_map_is_a_dict() -> None:
    """Of entries that are stored one by one."""
    bolt = count()
    bolt.prices["tea"] = 2.5
    bolt.prices.update(milk=1.0, bread=3.0)
    del bolt.prices["bread"]
    assert bolt.prices == {"tea": 2.5, "milk": 1.0}
    assert (len(bolt.prices), "tea" in bolt.prices, repr(bolt.prices)) == (
        2,
        True,
        "{'tea': 2.5, 'milk': 1.0}",
    )
    bolt.prices = dict(bolt.prices, tea=2.0)
    assert bolt.prices.pop("tea") == 2.0
    for missing in ("tea", "gold"):
        with pytest.raises(KeyError):
            del bolt.prices[missing]
        with pytest.raises(KeyError):
            _ = bolt.prices[missing]
    del bolt.prices
    assert dict(bolt.prices) == {}


def test_a_list_is_a_list() -> None:
    """Of items that are stored one by one."""
    bolt, model = count(), list[int]()
    for items in (bolt.latest, model):
        items.extend([1, 2, 3, 4, 5])
        items.insert(1, 9)
        items.insert(100, 6)
        items.pop()
        del items[0]
        del items[-1]
        items[0] = 7
        items[-1] = 8
        items[1:2] = [20, 21]
        items.reverse()
    assert bolt.latest == model
    assert (list(bolt.latest), bolt.latest[1:3], repr(bolt.latest)) == (model, model[1:3], repr(model))
    bolt.latest = [1]
    assert (bolt.latest == [1], bolt.latest == (1,), len(bolt.latest)) == (True, False, 1)
    del bolt.latest
    assert (len(bolt.latest), bolt.latest == []) == (0, True)
    with pytest.raises(IndexError, match=r"^index 0 of a list of 0$"):
        _ = bolt.latest[0]


def test_none_is_no_entry() -> None:
    """It stands for none."""
    with pytest.raises(TypeError, match=r"^None cannot be an entry of a state"):
        count().latest.append(cast(int, None))


def test_one_entry_of_a_large_map_is_one_change() -> None:
    """The others are neither read nor written."""
    state = State(StateId("count", "prices"), states_of(Count)["prices"])
    bolt = count()
    attach(bolt, {"prices": state.tables[0]})
    bolt.prices = {str(number): 1.0 for number in range(1000)}
    state.seal()
    assert bolt.prices["7"] == 1.0
    bolt.prices["7"] = 2.0
    assert state.changes == 1


def test_without_a_key_there_is_no_state() -> None:
    """The message says so, and what a test does."""
    with pytest.raises(
        AttributeError, match=r"^Count has a key, and state, in execute and on_timer alone; a test .*key"
    ):
        _ = Count().total


def test_a_missing_attribute_is_missed_as_ever() -> None:
    """In Python's own words."""
    with pytest.raises(AttributeError, match="'Count' object has no attribute 'totals'"):
        _ = count().totals  # type: ignore[attr-defined]


def test_execute_must_be_defined() -> None:
    """By whoever derives from it."""
    with pytest.raises(NotImplementedError, match=r"^Remind must define execute\(self, tup, out\)$"):
        Remind().execute(INPUT, OUT)


def test_timers_are_a_state() -> None:
    """Of those that define ``on_timer`` (law W7)."""
    bolt = Remind()
    bolt.key = "moon"
    bolt.set_timer(3)
    bolt.set_timer(2)
    bolt.cancel_timer(3)
    tables = hand_of(bolt).tables
    attach(bolt, tables, Timers(tables[NAME]))
    bolt.set_timer(4)
    assert (list(states_of(Remind)), list(states_of(Count))[-1]) == ([NAME], "latest")
    with pytest.raises(
        AttributeError, match=r"^Count has no timers: it does not define on_timer\(self, at, out\)$"
    ):
        count().set_timer(1)
    assert bolt.on_timer(2, OUT) is None
    assert KeyedBolt[str, str, str].on_timer(bolt, 2, OUT) is None


def test_calls_that_overlap_have_a_view_each() -> None:
    """With a key of its own, and all else in common (law K2)."""
    bolt = count()
    bolt.total = 1
    view = view_of(bolt, "sun")
    view.total = 2
    view.now = 5.0
    assert (bolt.key, bolt.total, view.key, view.total, bolt.now) == ("moon", 1, "sun", 2, 5.0)


def test_the_type_of_the_keys_is_the_first_type_argument() -> None:
    """Followed through the classes between; unknown where there is none."""

    class Base(KeyedBolt[N, str, M], Generic[M, N]):
        """Swaps them."""

    class Derived(Base[int, bytes]):
        """Names them."""

    class Bare(KeyedBolt):  # type: ignore[type-arg]
        """Names none."""

    assert key_type(Count) is str
    assert key_type(Derived) is bytes
    assert key_type(Base[int, bytes]) is bytes
    assert (key_type(Bare), key_type(Base)) == (Any, Any)


def test_states_are_inherited() -> None:
    """By their names; an attribute in the place of one takes it away."""

    class More(Count):
        more = Value(int, 0)
        name = "plain"  # type: ignore[assignment]

    assert list(states_of(More)) == ["total", "cart", "prices", "latest", "more"]


def test_a_cell_is_the_value_of_the_key_in_hand() -> None:
    """For functions."""
    declared = Value(int, 0)
    state = State(StateId("count", "total"), declared.declared)
    cell = Cell(declared, cast(Any, state.tables[0]), "moon")
    cell.value += 1
    other = cell.at("sun", 5.0)
    other.value = 7
    assert (cell.value, other.value, other.now) == (1, 7, 5.0)
    cell.key = "sun"
    assert cell.value == 7


def test_the_class_shows_its_declarations() -> None:
    """Read on the class, a state and the key are what declares them."""
    assert Count.prices is vars(Count)["prices"]  # type: ignore[comparison-overlap]
    assert Count.key is vars(KeyedBolt)["key"]


def test_an_instance_without_a_key_says_so() -> None:
    """There is none between two calls."""
    with pytest.raises(AttributeError, match="Count has a key, and state, in execute and on_timer alone"):
        _ = Count().key
