"""The sessions of sinks at a real Postgres."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from stormlet.connect.postgres import Put, Upsert
from stormlet.connect.session import DONE, Item
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import Place, through
from tests.connect.sessions import context, numbered, write

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

CHARGES = "CREATE TABLE charges (id bigint PRIMARY KEY, what text NOT NULL, cents int CHECK (cents > 0))"


class Charge(msgspec.Struct):
    """A row."""

    id: int
    what: Any
    cents: Any


async def test_rows_of_a_queue_are_in_their_order(place: Place) -> None:
    """With the origin of their message, and a key."""
    put = Put[str](place.url, "orders", key=str.upper, create=True)
    assert set(await write(put, *(Item(text, f"q@{text}") for text in numbered(300)))) == {DONE}
    rows = await place.rows("id, body, key, origin")
    assert [row[1:] for row in rows] == [(text, text, f"q@{text}") for text in numbered(300)]


async def test_what_cannot_be_put_is_permanent(place: Place) -> None:
    """A body with a zero, bytes that are no text, a value without JSON; the others are there."""
    put = Put[Any](place.url, "orders", create=True)
    written = await write(put, "a", "b\0", b"\xff", object(), "c")
    assert [each.permanent for each in written] == [False, True, True, True, False]
    assert await place.rows() == ["a", "c"]


async def test_rows_are_new_or_replaced(place: Place) -> None:
    """Of several with one key in a batch the last counts."""
    await place.client.execute(CHARGES)
    sink = Upsert[Charge](place.url, "charges", key=["id"])
    await write(sink, Charge(1, "lamp", 5), Charge(2, "chair", 7))
    written = await write(sink, Charge(2, "old", 1), Charge(3, "table", 9), Charge(2, "couch", 8))
    assert written == [DONE] * 3
    assert await place.rows("id, what, cents", "charges") == [
        (1, "lamp", 5),
        (2, "couch", 8),
        (3, "table", 9),
    ]


async def test_rows_without_a_key_are_all_new(place: Place) -> None:
    """As a log is written; columns may be left to the table."""
    await place.client.execute("CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY, line text)")
    sink = Upsert[str](place.url, "log", columns=["line"], row=lambda line: {"line": line})
    await write(sink, "a", "a", "b")
    assert await place.rows("id, line", "log") == [(1, "a"), (2, "a"), (3, "b")]


async def test_a_row_that_the_table_never_takes_is_permanent(place: Place) -> None:
    """By a constraint, a type, a range, or as it has no such column; all others of the batch are written."""
    await place.client.execute(CHARGES)
    rows: list[Any] = [Charge(number, "ok", 1) for number in range(100)]
    rows[13] = Charge(13, None, 1)
    rows[14] = Charge(14, "free", 0)
    rows[50] = Charge(50, "text", "seven")
    rows[51] = Charge(51, "much", 2**40)
    rows[99] = {"id": 99}
    written = await write(Upsert[Any](place.url, "charges", key=["id"]), *rows)
    bad = [number for number, each in enumerate(written) if each.permanent]
    assert bad == [13, 14, 50, 51, 99]
    assert await place.rows("id", "charges") == [number for number in range(100) if number not in bad]


async def test_types_of_columns(place: Place) -> None:
    """As they are, exactly."""
    await place.client.execute(
        "CREATE TABLE kinds (id int PRIMARY KEY, price numeric, at timestamptz, raw bytea, ratio float8, yes bool)"
    )
    at = datetime(2026, 11, 24, 23, tzinfo=UTC)
    row = {"id": 1, "price": Decimal("1.10"), "at": at, "raw": b"\xff\0", "ratio": 0.1, "yes": None}
    assert await write(Upsert[Any](place.url, "kinds", key=["id"]), row) == [DONE]
    assert await place.rows("id, price, at, raw, ratio, yes", "kinds") == [tuple(row.values())]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"table": "nothing"}, 'relation "nothing" does not exist'),
        ({"columns": ["id", "wat"]}, "has no column 'wat'"),
        ({"key": ["what"]}, "no unique or exclusion constraint"),
        ({"table": "lists"}, "column 'items' of 'lists' is an array"),
    ],
)
async def test_a_table_that_does_not_fit_is_refused(place: Place, options: dict[str, Any], why: str) -> None:
    """At the start."""
    await place.client.execute(CHARGES)
    await place.client.execute("CREATE TABLE lists (id int, items text[])")
    with pytest.raises(BrokerRefused, match=why):
        await write(Upsert[Any](place.url, **{"table": "charges", **options}))


async def test_a_reset_is_a_lost_connection(place: Place, proxy: Proxy) -> None:
    """Nothing is known of what was under way, and no row is at fault."""
    await place.client.execute(CHARGES)
    sink = Upsert[Charge](through(place.url, proxy.port), "charges", key=["id"])
    session = await sink.connect(_address(sink), context())
    proxy.swallow()
    writing = asyncio.ensure_future(session.write([Item(Charge(1, "lamp", 5))]))
    await asyncio.sleep(0.1)
    proxy.reset()
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionLost):
            await writing
    await session.close()


def _address(sink: Upsert[Any]) -> Any:
    from stormlet.connect.address import read_address

    return read_address(sink.url or "", where="here")
