"""Entries of a state without the program that has declared it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from stormlet.core.state.commits import Shape, StateId
from stormlet.core.state.tables import Declared
from stormlet.errors import StateUnusable
from stormlet.state.entries import Entry, as_json, by_key, decoder_of, entries_of, line_of, plain

ID = StateId("count", "total")


class Point(msgspec.Struct, frozen=True):
    x: int
    y: str


def found(*blobs: dict[Any, Any], key: str = "Any", kind: str = "value") -> list[tuple[Any, Any]]:
    entries = entries_of(ID, Shape(kind, key, "Any"), map(msgspec.msgpack.encode, blobs))
    return [(plain(each.key), plain(each.value)) for each in entries]


def test_the_newest_value_of_a_key_wins() -> None:
    """Nil stands for a key that was deleted."""
    assert found({"a": 1, "b": 2}, {"b": None, "a": 3}, {"c": 4}) == [("a", 3), ("c", 4)]


def test_equal_keys_are_one_key() -> None:
    """Whatever their bytes are (law K1)."""
    assert found({1: "a"}, {1.0: "b"}) == [(1, "b")]
    assert found({Decimal("1.0"): 1}, {Decimal("1.00"): 2}, key="Decimal") == [("1.0", 2)]


@pytest.mark.parametrize("size", [1, 15, 16, 70_000])
def test_records_are_keys_too(size: int) -> None:
    """In blobs of any size, also within other keys."""
    points = {Point(number, "ü"): number for number in range(size)}
    entries = found(points, {Point(0, "ü"): 7})
    assert entries[0] == ({"x": 0, "y": "ü"}, 7)
    assert len(entries) == size
    assert found({("eu", Point(1, "a")): 5}) == [(["eu", {"x": 1, "y": "a"}], 5)]


@pytest.mark.parametrize(
    "blob", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x81\xa1a", b"\x82\x81\xa1a\x01\x02", b"\x07"]
)
def test_what_is_no_log_is_refused_and_named(blob: bytes) -> None:
    """With the way out."""
    with pytest.raises(StateUnusable, match=r"state 'count.total' cannot be read: .*; put a saved copy"):
        entries_of(ID, None, [blob])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, 2.5, True, None, "x"], '[1,2.5,true,null,"x"]'),
        ([float("nan"), float("-inf")], '["nan","-inf"]'),
        (b"\x00\xff", '"AP8="'),
        ({"a": b"\x00"}, '{"a":"AA=="}'),
        ({1: 2, 1.5: 3}, '{"1":2,"1.5":3}'),
        ({True: 1, (1, 2): 3}, "[[true,1],[[1,2],3]]"),
        (datetime(2026, 11, 23, 18, 30, tzinfo=UTC), '"2026-11-23T18:30:00Z"'),
        ("a\x1b[2J\x9b\u202e\U000e0001\n", '"a\\u001b[2J\\u009b\\u202e\\udb40\\udc01\\n"'),
        (2**64 - 1, "18446744073709551615"),
    ],
)
def test_values_are_plain_and_move_no_cursor(value: object, shown: str) -> None:
    """As JSON that everybody reads."""
    assert as_json(plain(value)) == shown
    assert shown.isprintable()


def test_a_line_has_the_time_of_an_entry_with_a_ttl() -> None:
    """And of no other."""
    assert line_of(Entry("count.total", "a", 1)) == '{"state":"count.total","key":"a","value":1}'
    assert line_of(Entry("count.total", "a", 1, 5.5)).endswith('"written":5.5}')


def test_entries_are_gathered_by_key() -> None:
    """A list in the order of its indexes, whatever the order of the entries."""
    entries = [Entry("s", ("a", 1), "two"), Entry("s", ("b", 0), "x"), Entry("s", ("a", 0), "one")]
    assert list(by_key(entries, "list with ttl")) == [("a", ["one", "two"]), ("b", ["x"])]
    assert list(by_key(entries, "map")) == [("a", {"1": "two", "0": "one"}), ("b", {"0": "x"})]


@pytest.mark.parametrize(("kind", "inner"), [("value", None), ("map", "a"), ("list", 0)])
def test_a_tuple_that_is_a_key_of_no_declared_type_comes_back(kind: Any, inner: object) -> None:
    """As grouping by two fields gives it: JSON has a list in its place, also within the pair of a map."""
    key = ("ann", ("tea", 1))
    entry = key if inner is None else (key, inner)
    read = decoder_of(Declared(kind, int, inner=type(inner)))
    assert read(msgspec.json.encode(entry), b"7", None) == (entry, 7)
