"""The messages of ``pgoutput``, without a server."""

from __future__ import annotations

from struct import pack
from typing import Any

import msgspec
import pytest

from stormlet.connect import postgres
from stormlet.connect.postgres.pgoutput import Begin, Change, Commit, Decoder
from stormlet.connect.postgres.slot import lsn_text
from stormlet.connect.session import Delivery

INT, TEXT, BOOL, FLOAT, NUMERIC = 23, 25, 16, 701, 1700


def relation(number: int, name: str, *columns: tuple[str, int, bool], schema: str = "public") -> bytes:
    """A description of a table."""
    parts = [
        pack("!B", is_key) + column.encode() + b"\0" + pack("!Ii", kind, -1)
        for column, kind, is_key in columns
    ]
    names = schema.encode() + b"\0" + name.encode() + b"\0"
    return b"R" + pack("!I", number) + names + b"d" + pack("!H", len(columns)) + b"".join(parts)


def row(*values: str | type | None) -> bytes:
    """The values of a row; a type stands for one that is unchanged."""
    parts = [
        b"n"
        if value is None
        else b"u"
        if isinstance(value, type)
        else b"t" + pack("!I", len(value.encode())) + value.encode()
        for value in values
    ]
    return pack("!H", len(values)) + b"".join(parts)


ORDERS = relation(7, "orders", ("id", INT, True), ("body", TEXT, False), ("paid", BOOL, False))


def decoded(*messages: bytes) -> list[Any]:
    """The changes of the last of these messages."""
    decoder = Decoder()
    *before, last = (decoder.read(message) for message in (ORDERS, *messages))
    assert before[0] == ()
    assert not isinstance(last, Begin | Commit)
    return [msgspec.json.decode(body) for body in last]


def test_a_transaction_has_a_position_and_a_time() -> None:
    """That of its commit, which is before its end."""
    decoder = Decoder()
    assert decoder.read(b"B" + pack("!QqI", 0x1_0000_00AB, 1_000_000, 5)) == Begin(
        0x1_0000_00AB, 946_684_801.0
    )
    assert decoder.read(b"C" + pack("!BQQq", 0, 10, 20, 0)) == Commit(20)
    assert lsn_text(0x1_0000_00AB) == "1/AB"


def test_an_insert_has_a_row() -> None:
    """Numbers, booleans and NULL are those of JSON."""
    (change,) = decoded(b"I" + pack("!I", 7) + b"N" + row("1", "lämp", "f"))
    assert change == {
        "table": "public.orders",
        "kind": "insert",
        "row": {"id": 1, "body": "lämp", "paid": False},
    }
    (change,) = decoded(b"I" + pack("!I", 7) + b"N" + row("-1", None, None))
    assert change["row"] == {"id": -1, "body": None, "paid": None}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (FLOAT, "1e+300", 1e300),
        (FLOAT, "-0.5", -0.5),
        (FLOAT, "NaN", "NaN"),
        (FLOAT, "-Infinity", "-Infinity"),
        (NUMERIC, "0.10", "0.10"),
        (BOOL, "t", True),
        (TEXT, "t", "t"),
        (TEXT, "1", "1"),
        (TEXT, "", ""),
        (INT, "2147483647", 2147483647),
    ],
)
def test_a_value_is_what_its_type_says(kind: int, text: str, value: object) -> None:
    """And what JSON has."""
    decoder = Decoder()
    decoder.read(relation(1, "t", ("a", kind, True)))
    (body,) = decoder.read(b"I" + pack("!I", 1) + b"N" + row(text))
    assert msgspec.json.decode(body)["row"] == {"a": value}  # type: ignore[arg-type]


def test_an_update_may_have_the_old_key_or_the_old_row() -> None:
    """Of a key only its columns, and of neither nothing."""
    update = b"U" + pack("!I", 7)
    (change,) = decoded(update + b"N" + row("1", "a", "t"))
    assert sorted(change) == ["kind", "row", "table"]
    (change,) = decoded(update + b"K" + row("1", None, None) + b"N" + row("2", "a", "t"))
    assert (change["old"], change["row"]["id"]) == ({"id": 1}, 2)
    (change,) = decoded(update + b"O" + row("1", None, "f") + b"N" + row("1", "a", "t"))
    assert change["old"] == {"id": 1, "body": None, "paid": False}


def test_an_unchanged_value_is_the_old_one_or_absent() -> None:
    """It is never NULL."""
    update = b"U" + pack("!I", 7)
    (change,) = decoded(update + b"N" + row("1", type, "t"))
    assert change["row"] == {"id": 1, "paid": True}
    (change,) = decoded(update + b"K" + row("1", None, None) + b"N" + row("2", type, "t"))
    assert change["row"] == {"id": 2, "paid": True}
    (change,) = decoded(update + b"O" + row("1", "large", "f") + b"N" + row("1", type, "t"))
    assert change["row"] == {"id": 1, "body": "large", "paid": True}


def test_a_delete_has_what_was() -> None:
    """The key, or all of it."""
    delete = b"D" + pack("!I", 7)
    (change,) = decoded(delete + b"K" + row("1", None, None))
    assert change == {"table": "public.orders", "kind": "delete", "old": {"id": 1}}
    (change,) = decoded(delete + b"O" + row("1", None, "t"))
    assert change["old"] == {"id": 1, "body": None, "paid": True}


def test_a_truncate_is_one_change_for_each_table() -> None:
    """Each by its name."""
    others = relation(8, "lines", ("id", INT, True), schema="shop")
    changes = decoded(others, b"T" + pack("!IBII", 2, 1, 8, 7))
    assert changes == [
        {"table": "shop.lines", "kind": "truncate"},
        {"table": "public.orders", "kind": "truncate"},
    ]


def test_a_table_that_was_altered_is_described_again() -> None:
    """The last description counts."""
    altered = relation(7, "orders", ("id", INT, True), ("colour", TEXT, False))
    (change,) = decoded(altered, b"I" + pack("!I", 7) + b"N" + row("1", "red"))
    assert change["row"] == {"id": 1, "colour": "red"}


def test_what_is_not_known_is_no_silence() -> None:
    """What is known and has no change is passed over."""
    decoder = Decoder()
    assert decoder.read(b"O" + pack("!Q", 1) + b"there\0") == ()
    with pytest.raises(ValueError, match="unknown kind b'S'"):
        decoder.read(b"S" + pack("!I", 1))


def test_without_a_type_a_value_is_a_change() -> None:
    """What is not there is empty."""
    source = postgres.Changes("postgresql://db/shop", slot="ours", publication="tables")
    value = source.decode(Delivery(body=b'{"table": "public.orders", "kind": "delete", "old": {"id": 1}}'))
    assert value == Change("public.orders", "delete", {}, {"id": 1})
    with pytest.raises(ValueError, match="changes are JSON"):
        postgres.Changes("postgresql://db/shop", slot="ours", publication="tables", encoding="msgpack")
