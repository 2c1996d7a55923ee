"""The session of a source of changes at a real Postgres; each test is a trap of the protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from stormlet.connect import postgres
from stormlet.connect.address import read_address
from stormlet.connect.postgres.capture import AT_ONCE, ChangesSession
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Front
from stormlet.errors import BrokerRefused, ConnectionLost, NotSettled
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import PUBLICATION, SLOT, Place, Postgres, changes_context, through
from tests.connect.sessions import received, soon

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, body text, price numeric, paid bool)"


def bodies(deliveries: Sequence[Delivery]) -> list[Any]:
    """What has come."""
    return [msgspec.json.decode(each.body) for each in deliveries]


def ids(deliveries: Sequence[Delivery]) -> list[int]:
    """The ids of rows that were inserted."""
    return [body["row"]["id"] for body in bodies(deliveries)]


def up_to(delivery: Delivery) -> Settlement:
    """All up to this one is done."""
    assert delivery.place is not None
    return Settlement(fronts=[(delivery.place, Front(delivery.position, 0))])


async def insert(place: Place, *numbers: int) -> None:
    """Rows of one transaction."""
    await place.client.execute("INSERT INTO orders (id) SELECT unnest($1::int[])", numbers)


async def looked_until(session: ChangesSession, condition: Callable[[], Awaitable[object]]) -> None:
    """Have it look until this is true, while nothing comes."""

    async def is_true() -> bool:
        assert await session.receive(9, 0.1) == ()
        return bool(await condition())

    await soon(is_true)


async def test_each_change_comes_with_what_it_was(shop: Place) -> None:
    """Insert, update, update of the key, delete, and truncate."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        for statement in [
            "INSERT INTO orders VALUES (1, 'lä\"mp', 1.50, true)",
            "UPDATE orders SET body = NULL, paid = false",
            "UPDATE orders SET id = 2",
            "DELETE FROM orders",
            "TRUNCATE orders",
        ]:
            await shop.client.execute(statement)
        got = bodies(await received(session, 5))
    empty = {"body": None, "price": "1.50", "paid": False}
    assert [each.pop("table") for each in got] == ["public.orders"] * 5
    assert got == [
        {"kind": "insert", "row": {"id": 1, "body": 'lä"mp', "price": "1.50", "paid": True}},
        {"kind": "update", "row": {"id": 1, **empty}},
        {"kind": "update", "row": {"id": 2, **empty}, "old": {"id": 1}},
        {"kind": "delete", "old": {"id": 2}},
        {"kind": "truncate"},
    ]


async def test_a_table_with_its_full_identity_has_all_that_was(shop: Place) -> None:
    """And nothing that is large and unchanged is missing."""
    await shop.client.execute(f"{TABLE}; ALTER TABLE orders REPLICA IDENTITY FULL")
    await shop.client.execute("ALTER TABLE orders ALTER body SET STORAGE EXTERNAL")
    large = "x" * 10_000
    async with shop.capturing() as session:
        await shop.client.execute("INSERT INTO orders VALUES (1, $1)", large)
        await shop.client.execute("UPDATE orders SET paid = true")
        await shop.client.execute("DELETE FROM orders")
        _, update, delete = bodies(await received(session, 3))
    before = {"id": 1, "body": large, "price": None, "paid": None}
    assert (update["old"], update["row"]) == (before, {**before, "paid": True})
    assert delete["old"] == {**before, "paid": True}


async def test_a_large_value_that_is_unchanged_is_absent(shop: Place) -> None:
    """It is not made NULL."""
    await shop.client.execute(TABLE)
    await shop.client.execute("ALTER TABLE orders ALTER body SET STORAGE EXTERNAL")
    async with shop.capturing() as session:
        await shop.client.execute("INSERT INTO orders VALUES (1, $1)", "x" * 10_000)
        await shop.client.execute("UPDATE orders SET paid = true")
        _, update = bodies(await received(session, 2))
    assert update["row"] == {"id": 1, "price": None, "paid": True}


async def test_values_are_as_postgres_prints_them(shop: Place) -> None:
    """In UTC, whatever the zone of the database is; and numbers of all sizes are JSON."""
    await shop.client.execute(
        "CREATE TABLE kinds (a int8, b float8, c float8, d timestamptz, e bytea, f int[], g jsonb)"
    )
    await shop.client.execute("ALTER ROLE postgres SET timezone = 'Asia/Tokyo'")
    async with shop.capturing() as session:
        await shop.client.execute(
            "INSERT INTO kinds VALUES (9007199254740993, 1e300, 'NaN', '2026-11-24 12:00:00+00', '\\x00ff', '{1,2}',"
            " '{\"a\": 1}')"
        )
        (change,) = bodies(await received(session, 1))
    await shop.client.execute("ALTER ROLE postgres RESET timezone")
    assert list(change["row"].values()) == [
        9007199254740993,
        1e300,
        "NaN",
        "2026-11-24 12:00:00+00",
        "\\x00ff",
        "{1,2}",
        '{"a": 1}',
    ]


async def test_a_table_that_is_altered_is_read_on(shop: Place) -> None:
    """Each row by the columns of its time."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 1)
        await shop.client.execute("ALTER TABLE orders DROP body, ADD colour text DEFAULT 'red'")
        await insert(shop, 2)
        first, second = bodies(await received(session, 2))
    assert list(first["row"]) == ["id", "body", "price", "paid"]
    assert second["row"] == {"id": 2, "price": None, "paid": None, "colour": "red"}


async def test_transactions_come_whole_in_the_order_of_their_commits(shop: Place) -> None:
    """Not in that of their beginnings; and nothing comes of one that is rolled back, in part or whole."""
    await shop.client.execute(TABLE)
    async with Place(shop.url) as slow, shop.capturing() as session:
        async with slow.client.transaction():
            await insert(slow, 1)
            await insert(shop, 2)
            back = shop.client.transaction()
            await back.start()
            await insert(shop, 3)
            await back.rollback()
            assert ids(await session.receive(9, 30)) == [2]
            assert await session.receive(9, 0.3) == ()
            await slow.client.execute("SAVEPOINT a")
            await insert(slow, 4)
            await slow.client.execute("ROLLBACK TO a")
            await insert(slow, 5)
        assert ids(await received(session, 2)) == [1, 5]


async def test_what_is_not_done_comes_again_under_its_name(shop: Place) -> None:
    """To the next session, in the same order; what is done does not."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        for number in range(5):
            await insert(shop, number * 2, number * 2 + 1)
        got = await received(session, 10)
        await session.settle(up_to(got[3]))
    async with shop.capturing() as session:
        again = await received(session, 6)
        assert await session.receive(9, 0.3) == ()
    assert len({each.name for each in got}) == 10
    assert [(each.name, each.body) for each in again] == [(each.name, each.body) for each in got[4:]]


async def test_a_slot_is_not_advanced_past_an_open_message(shop: Place) -> None:
    """A transaction of which one is open comes again whole."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 0)
        await insert(shop, 1, 2, 3)
        got = await received(session, 4)
        await session.settle(up_to(got[2]))
    async with shop.capturing() as session:
        assert ids(await received(session, 3)) == [1, 2, 3]


async def test_each_comes_once_while_the_first_is_open(shop: Place) -> None:
    """Though every look begins at it."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        count = AT_ONCE // 3 + 100  # each has three messages at least, so that a look is cut off
        for number in range(count):
            await insert(shop, number)
            if number == 10:
                first = await received(session, 11)
        got = first + await received(session, count - 11)
        assert ids(got) == list(range(count))
        assert await session.receive(9, 0.3) == ()
        await session.settle(up_to(got[-1]))
        await insert(shop, count)
        assert ids(await session.receive(9, 30)) == [count]


async def test_a_large_transaction_comes_whole(shop: Place) -> None:
    """Beyond what a look asks for, and as many at a time as were asked for."""
    await shop.client.execute(TABLE)
    count = AT_ONCE * 6
    async with shop.capturing() as session:
        await insert(shop, *range(count))
        await insert(shop, count)
        got = list[Delivery]()
        while len(got) < count:
            more = await session.receive(1000, 30)
            assert 0 < len(more) <= 1000
            got += more
        assert ids(got) == list(range(count))
        assert await session.receive(9, 0.3) == ()  # it waits, as all would be read again
        await session.settle(up_to(got[-1]))
        assert ids(await session.receive(9, 30)) == [count]


async def is_let_go(session: ChangesSession) -> bool:
    """True if the server may forget all but a little of its WAL: it writes some by itself."""
    return (await session.lag())["ours"] < 100_000


async def test_wal_that_has_nothing_for_it_is_let_go(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing is ever done; but not before what is open."""
    monkeypatch.setattr("stormlet.connect.postgres.capture.LET_GO", 0.1)
    await shop.client.execute(f"{TABLE}; CREATE TABLE other (id int)")
    async with shop.capturing(create=["orders"]) as session:
        await insert(shop, 1)
        (one,) = await session.receive(9, 30)
        await shop.client.execute("INSERT INTO other SELECT generate_series(1, 20000)")
        assert await session.receive(9, 0.6) == ()
        assert (await session.lag())["ours"] > 1_000_000
        await session.settle(up_to(one))
        await looked_until(session, lambda: is_let_go(session))
        await insert(shop, 2)
        assert ids(await session.receive(9, 30)) == [2]


async def test_a_transaction_outlives_the_wal_of_its_beginning(
    shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has changed before that was let go comes with the rest, to the next session, too."""
    monkeypatch.setattr("stormlet.connect.postgres.capture.LET_GO", 0.0)
    await shop.client.execute(f"{TABLE}; CREATE TABLE other (id int)")
    async with shop.capturing(create=["orders"]):
        pass  # the slot would wait for the end of a transaction
    async with Place(shop.url) as slow, slow.client.transaction():
        async with shop.capturing() as session:
            await insert(slow, 1)
            for _ in range(3):
                await shop.client.execute("INSERT INTO other SELECT generate_series(1, 20000)")
                await shop.client.execute("CHECKPOINT")
                await looked_until(session, lambda: is_let_go(session))
        await insert(slow, 2)
    async with shop.capturing() as session:
        assert ids(await received(session, 2)) == [1, 2]


async def test_a_slot_that_keeps_too_much_is_warned_of_once(
    shop: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """As it fills the disk of the server."""
    await shop.client.execute(TABLE)
    async with shop.capturing(warn_bytes=200_000) as session:
        await session.lag()
        with caplog.at_level(logging.WARNING):
            await insert(shop, *range(5000))
            for _ in range(2):
                await session.lag()
    assert [record.getMessage().count("'ours', which may fill its disk") for record in caplog.records] == [1]


async def test_an_interrupted_source_reads_nothing(shop: Place) -> None:
    """At once, and later; the last settlement is told nevertheless."""
    await shop.client.execute(TABLE)
    async with shop.capturing(poll=30.0) as session:
        await insert(shop, 1)
        (one,) = await session.receive(1, 60)
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0.2)
        session.interrupt()
        async with asyncio.timeout(20):
            assert await waiting == ()
        await session.settle(up_to(one))
        await insert(shop, 2)
        assert await session.receive(1, 60) == ()
    async with shop.capturing() as session:
        assert ids(await received(session, 1)) == [2]


async def test_an_interrupt_ends_a_look_that_takes_long(shop: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the connection is as good as before."""
    await shop.client.execute(TABLE)
    slow = "SELECT ''::bytea AS data FROM pg_sleep(60) s WHERE concat(s, $1::text, $2::int, $3::text) = ''"
    async with shop.capturing() as session:
        await insert(shop, 0)
        (first,) = await received(session, 1)
        monkeypatch.setattr("stormlet.connect.postgres.slot.PEEK", slow)
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await insert(shop, 1)
        await asyncio.sleep(0.5)
        assert not waiting.done()
        session.interrupt()
        async with asyncio.timeout(20):
            assert await waiting == ()
            await session.settle(up_to(first))


async def test_a_paused_source_returns_nothing(shop: Place) -> None:
    """Until it is resumed, at once."""
    await shop.client.execute(TABLE)
    async with shop.capturing(poll=30.0) as session:
        await insert(shop, 1)
        await insert(shop, 2)
        (one,) = await session.receive(1, 30)
        assert one.place is not None
        await session.pause([one.place])
        waiting = asyncio.ensure_future(session.receive(9, 60))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await session.resume([one.place])
        async with asyncio.timeout(20):
            assert ids(await waiting) == [2]


async def test_what_is_revoked_advances_nothing(shop: Place) -> None:
    """As of a connection that is lost."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 1)
        (one,) = await received(session, 1)
        assert one.place is not None
        one.place.revoke()
        await session.settle(up_to(one))
    async with shop.capturing() as session:
        assert ids(await received(session, 1)) == [1]


async def test_another_reader_is_refused(shop: Place) -> None:
    """It would do everything twice; when the first is gone, it may."""
    await shop.client.execute(TABLE)
    async with shop.capturing():
        with pytest.raises(ConnectionLost, match="somebody else reads the replication slot 'ours'"):
            async with shop.capturing():
                pass
    async with shop.capturing():
        pass


HELD = """SELECT count(*) FROM generate_series(1, 1000000) AS g, LATERAL pg_logical_slot_peek_binary_changes(
$1, NULL, NULLIF(g, g), 'proto_version', '1', 'publication_names', $2)"""
"""One peek after another, as each depends on a number, until it is cancelled."""


async def test_a_slot_that_somebody_is_at_is_waited_for(shop: Place) -> None:
    """As a process before, which the server has not missed yet."""
    await shop.client.execute(TABLE)

    async def settled() -> bool:
        with suppress(NotSettled):
            await session.settle(up_to(one))
            return True
        return False

    async with shop.capturing() as session:
        await insert(shop, 1)
        (one,) = await session.receive(9, 30)
        await insert(shop, *range(2, 20_000))
        async with Place(shop.url) as other:
            busy = asyncio.ensure_future(other.client.fetch(HELD, SLOT, f'"{PUBLICATION}"', timeout=120))
            await soon(lambda: _is_active(shop))
            assert not await settled()
            busy.cancel()
            with pytest.raises(asyncio.CancelledError):
                await busy
        await soon(settled)


async def _is_active(place: Place) -> bool:
    active = "SELECT count(active_pid) FROM pg_replication_slots WHERE slot_name = $1"
    return bool(await place.client.fetchval(active, SLOT))


async def test_the_start_says_what_is_missing(shop: Place, logical: Postgres, place: Place) -> None:
    """Publication, slot, another plugin or database, a role that may not, another server, and a second task."""
    await shop.client.execute(TABLE)

    async def refused(match: str, **options: Any) -> None:
        with pytest.raises(BrokerRefused, match=match):
            async with shop.capturing(**{"create": False, **options}):
                pass

    await refused("there is no publication 'Our tables': create=True")
    await shop.client.execute('CREATE PUBLICATION "Our tables" FOR TABLE orders')
    await refused("there is no replication slot 'ours': create=True")
    await refused("'Ours' contains invalid|replication slot name", slot="Ours", create=True)
    await shop.client.execute("SELECT pg_create_logical_replication_slot('text', 'test_decoding')")
    await refused("'text' is of the plugin 'test_decoding', and must be of 'pgoutput'", slot="text")
    await shop.client.execute("SELECT pg_create_physical_replication_slot('bytes')")
    await refused("'bytes' is physical", slot="bytes")
    await shop.client.execute("SELECT pg_drop_replication_slot('bytes')")
    async with Place(logical.database("elsewhere")) as other:
        await other.client.execute("SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')")
        await refused("'theirs' is of the database 'elsewhere'", slot="theirs")
        await other.drop_slots()
    await shop.client.execute("CREATE ROLE weak LOGIN")
    await refused(
        "superuser or replication role|permission", url=shop.url.replace("postgres@", "weak@"), create=True
    )
    await refused("wal_level is 'replica'", url=place.url)
    source = postgres.Changes(shop.url, slot=SLOT, publication=PUBLICATION)
    with pytest.raises(BrokerRefused, match="parallelism must be 1"):
        await source.begin(read_address(shop.url, where="here"), changes_context(2))


async def test_a_publication_that_is_younger_than_its_slot_is_refused(shop: Place) -> None:
    """Once there are changes before it, which nobody can read."""
    await shop.client.execute(TABLE)
    await shop.client.execute("SELECT pg_create_logical_replication_slot('ours', 'pgoutput')")
    await insert(shop, 1)
    with pytest.raises(BrokerRefused, match='publication "Our tables" does not exist'):
        async with shop.capturing():
            pass


async def test_a_reset_is_a_lost_connection(shop: Place, logical: Postgres) -> None:
    """For all who wait; the next session has all that was not done."""
    await shop.client.execute(TABLE)
    with Proxy(logical.port) as proxy:
        async with shop.capturing(url=through(shop.url, proxy.port)) as session:
            await insert(shop, 1)
            (one,) = await received(session, 1)
            waiting = asyncio.ensure_future(session.receive(1, 60))
            await asyncio.sleep(0.2)
            proxy.reset()
            async with asyncio.timeout(30):
                for lost in (waiting, session.settle(up_to(one)), session.lag()):
                    with pytest.raises(ConnectionLost):
                        await lost
        async with shop.capturing(url=through(shop.url, proxy.port)) as session:
            assert ids(await received(session, 1)) == [1]


async def test_a_black_hole_is_a_lost_connection(
    shop: Place, logical: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the question for the lag, as a look may take its time; and it can be closed."""
    monkeypatch.setattr("stormlet.connect.postgres.connection.ANSWERS_WITHIN", 3.0)
    await shop.client.execute(TABLE)
    with Proxy(logical.port) as proxy:
        async with asyncio.timeout(50), shop.capturing(url=through(shop.url, proxy.port)) as session:
            proxy.swallow()
            errors = await asyncio.gather(session.receive(1, 60), session.lag(), return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionLost] * 2


async def test_nothing_is_given_while_nobody_answers(shop: Place, logical: Postgres) -> None:
    """It would all come again; once the slot is advanced, the next one comes at once."""
    await shop.client.execute(TABLE)
    with Proxy(logical.port) as proxy:
        async with shop.capturing(url=through(shop.url, proxy.port), poll=30.0) as session:
            for number in range(3):
                await insert(shop, number)
            (first,) = await session.receive(1, 30)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(session.settle(up_to(first)))
                second = tasks.create_task(session.receive(1, 60))
                async with asyncio.timeout(20):
                    assert ids(await second) == [1]
            proxy.swallow()
            settling = asyncio.ensure_future(session.settle(up_to((await second)[0])))
            await asyncio.sleep(0)
            assert await session.receive(1, 0.5) == ()
            proxy.reset()
            with pytest.raises(ConnectionLost):
                await settling


async def test_a_server_that_is_killed_forgets_no_change(shop: Place, logical: Postgres) -> None:
    """What was done may come again, and what was not done does."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        for number in range(20):
            await insert(shop, number)
        got = await received(session, 20)
        await session.settle(up_to(got[9]))
        await asyncio.to_thread(logical.stop)
        with pytest.raises(ConnectionLost):
            await session.receive(1, 60)
    await asyncio.to_thread(logical.start)
    await shop.again()
    async with shop.capturing() as session:
        again = ids(await received(session, 10))
        more = ids(await session.receive(99, 0.5))
    assert (again + more)[-10:] == list(range(10, 20))
    assert again + more == list(range((again + more)[0], 20))


async def confirmed(place: Place) -> int:
    """The position up to which the server knows that all is done."""
    known = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1"
    return int(await place.client.fetchval(known, SLOT))


async def is_confirmed_behind(place: Place, position: int) -> bool:
    """True if the server knows of more."""
    return await confirmed(place) > position


async def test_it_goes_on_behind_a_change_that_the_state_has(shop: Place) -> None:
    """In the middle of a transaction, and at its end, whatever the slot says."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 1)
        await insert(shop, 2, 3, 4)
        await insert(shop, 5)
        got = await received(session, 5)
    for last in range(5):
        async with shop.capturing(behind=got[last].name) as session:
            assert ids(await received(session, 4 - last)) == [2, 3, 4, 5][last:]
            assert await received(session, 1, 0.1) == []


async def test_what_the_state_has_is_let_go_at_once(shop: Place) -> None:
    """Up to the last transaction that is there as a whole; the rest of one is done when its end is."""
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 1)
        await insert(shop, 2, 3)
        got = await received(session, 3)
    before = await confirmed(shop)
    async with shop.capturing(behind=got[1].name) as session:
        (last,) = await received(session, 1)
        await looked_until(session, lambda: is_confirmed_behind(shop, before))
        assert await confirmed(shop) == got[1].position
        await session.settle(up_to(last))
        assert await confirmed(shop) == last.position


async def test_what_another_session_has_emitted_is_kept_until_more_is_done(
    shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not be durable yet, and what is behind it is durable later; nor is WAL let go meanwhile."""
    monkeypatch.setattr("stormlet.connect.postgres.capture.LET_GO", 0.0)
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        await insert(shop, 1)
        (first,) = await received(session, 1)
    before = await confirmed(shop)
    async with shop.capturing(behind=first.name, again=True) as session:
        await shop.client.execute("CREATE TABLE others (id int)")
        await received(session, 1, 0.5)
        assert await confirmed(shop) == before
        await insert(shop, 2)
        (second,) = await received(session, 1)
        await session.settle(up_to(second))
        assert await confirmed(shop) == second.position


@pytest.mark.parametrize("again", [False, True])
async def test_much_that_is_passed_over_ends(
    again: bool, shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is more than a peek asks for."""
    monkeypatch.setattr("stormlet.connect.postgres.capture.AT_ONCE", 5)
    await shop.client.execute(TABLE)
    async with shop.capturing() as session:
        for number in range(20):
            await insert(shop, number)
        got = await received(session, 20)
    async with shop.capturing(behind=got[17].name, again=again) as session:
        assert ids(await received(session, 2)) == [18, 19]


async def test_a_state_of_another_server_is_refused(shop: Place) -> None:
    """All would be passed over until the WAL gets there."""
    with pytest.raises(BrokerRefused, match="the state goes on behind FF/0, which its WAL has not reached"):
        async with shop.capturing(behind=f"{SLOT}@FF/0/3"):
            pass
