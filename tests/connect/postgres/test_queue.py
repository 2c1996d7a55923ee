"""The session of a source at a real Postgres; each test is a trap of the protocol."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from stormlet.connect import postgres
from stormlet.connect.address import read_address
from stormlet.connect.session import Rejection, Settlement
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.processes import HOST, free_ports
from tests.brokers.proxy import Proxy
from tests.connect.postgres.kit import Place, Postgres, through
from tests.connect.sessions import (
    bodies,
    context,
    done,
    numbered,
    quickest,
    received,
    rejected,
    returned,
    write,
)

SECRET = "s3cret"
pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


async def test_a_row_comes_with_all_that_it_has(place: Place) -> None:
    """Body, key, its id, and when it was added."""
    async with place.consuming() as session:
        await place.client.execute("INSERT INTO orders (body, key) VALUES ('lamp', 'north')")
        (lamp,) = await received(session, 1)
    assert (lamp.body, lamp.key, lamp.name, lamp.deliveries) == (b"lamp", "north", "orders@1", 1)
    assert abs((lamp.published or 0) - time.time()) < 60


async def test_no_more_come_than_were_asked_for(place: Place) -> None:
    """The rest is for others, in its order."""
    async with place.consuming() as session, place.consuming() as other:
        await place.add(*numbered(6))
        assert bodies(await session.receive(2, 30)) == ["0", "1"]
        assert bodies(await other.receive(2, 30)) == ["2", "3"]
        assert bodies(await session.receive(9, 30)) == ["4", "5"]


async def test_what_is_done_is_deleted_once(place: Place) -> None:
    """A second time it is refused."""
    async with place.consuming() as session:
        await place.add(*numbered(5))
        got = await received(session, 5)
        assert await session.settle(done(got[0], got[3])) == 0
        assert await session.settle(done(got[0], got[1])) == 1
        assert await place.rows() == ["2", "4"]


async def test_what_is_given_back_comes_at_once_and_does_not_count(place: Place) -> None:
    """To anybody."""
    async with place.consuming() as session, place.consuming() as other:
        await place.add("lamp")
        (lamp,) = await received(session, 1)
        assert await session.settle(returned(lamp)) == 0
        (again,) = await received(other, 1)
        assert (again.body, again.deliveries, again.name) == (b"lamp", 1, lamp.name)
        assert await session.settle(done(lamp)) == 1


async def test_a_lease_ends_for_others(place: Place) -> None:
    """As soon as its time is over, and with one delivery more; the first claim can do nothing with it."""
    async with place.consuming(lease=0.5) as session, place.consuming(lease=60, poll=60.0) as other:
        await place.add("lamp")
        (lamp,) = await received(session, 1)
        async with asyncio.timeout(20):  # and not when it looks the next time
            (again,) = await received(other, 1, 60.0)
        assert again.deliveries == 2
        assert await session.renew([lamp.receipt]) == [lamp.receipt]
        settlement = Settlement([lamp.receipt], [lamp.receipt], [Rejection(lamp.receipt, "late")])
        assert await session.settle(settlement) == 3
        assert await other.renew([again.receipt]) == []
        assert await place.rows("body, deliveries, reason") == [("lamp", 2, None)]


async def test_a_renewed_lease_does_not_end(place: Place) -> None:
    """The others of that time do."""
    async with place.consuming(lease=4) as session, place.consuming(lease=60) as other:
        await place.add(*numbered(3))
        got = await received(session, 3)
        for _ in range(5):
            await asyncio.sleep(1)
            assert await session.renew([got[0].receipt, got[2].receipt]) == []
        assert bodies(await other.receive(9, 30)) == ["1"]


async def test_what_is_given_up_stays_with_its_reason(place: Place) -> None:
    """Nobody gets it, until somebody says so."""
    async with place.consuming(lease=0.3, rejects=True) as session:
        await place.add("lamp", "chair")
        lamp, _ = await received(session, 2)
        assert await session.settle(rejected(lamp, "no such\0 lamp")) == 0
        assert bodies(await received(session, 2)) == ["chair", "chair"]
        assert await place.rows("body, reason") == [("chair", None), ("lamp", "no such lamp")]
        assert await session.lag() == {"orders": 1}
        await place.client.execute("UPDATE orders SET leased_until = '-infinity' WHERE body = 'lamp'")
        assert "lamp" in bodies(await received(session, 2))


async def test_a_notification_wakes(place: Place) -> None:
    """And a row without one is found by the next look."""
    async with place.consuming(poll=60.0) as session:
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0.3)
        await write(postgres.Put[str](place.url, "orders"), "lamp")
        async with asyncio.timeout(30):
            assert bodies(await waiting) == ["lamp"]
    async with place.consuming(poll=0.5) as session:
        waiting = asyncio.ensure_future(session.receive(1, 30))
        await asyncio.sleep(0.1)
        await place.add("chair")
        assert bodies(await waiting) == ["chair"]


async def test_a_row_of_a_transaction_comes_when_that_is_committed(place: Place) -> None:
    """As an outbox needs it; a later one that is committed earlier is not held up."""
    async with Place(place.url) as writer, place.consuming() as session:
        transaction = writer.client.transaction()
        async with transaction:
            await writer.add("slow")
            await place.add("quick")
            assert bodies(await session.receive(9, 30)) == ["quick"]
        assert bodies(await session.receive(9, 30)) == ["slow"]


async def test_a_row_that_somebody_is_at_is_passed_over(place: Place) -> None:
    """Nobody waits for another one's transaction."""
    async with Place(place.url) as other, place.consuming() as session:
        await place.add(*numbered(3))
        async with asyncio.timeout(20), other.client.transaction():
            await other.client.execute("SELECT FROM orders WHERE body = '0' FOR UPDATE")
            assert bodies(await session.receive(9, 30)) == ["1", "2"]
        assert bodies(await session.receive(9, 30)) == ["0"]


async def test_an_interrupted_source_claims_nothing(place: Place) -> None:
    """At once, and later."""
    async with place.consuming(poll=30.0) as session:
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0.2)
        session.interrupt()
        async with asyncio.timeout(20):
            assert await waiting == []
        await place.add("lamp")
        assert await session.receive(1, 60) == []
        assert await place.rows("deliveries") == [0]


async def test_a_receive_returns_nothing_after_its_time(place: Place) -> None:
    """And has what comes later."""
    async with place.consuming() as session:
        assert 0.25 < await quickest(lambda: session.receive(10, 0.3)) < 2
        await place.add("lamp")
        assert bodies(await session.receive(10, 30)) == ["lamp"]


async def test_the_lag_is_what_is_not_done(place: Place) -> None:
    """Claimed or not."""
    async with place.consuming() as session:
        await place.add(*numbered(10))
        got = await session.receive(4, 30)
        assert await session.lag() == {"orders": 10}
        await session.settle(done(*got))
        assert await session.lag() == {"orders": 6}


@pytest.mark.parametrize("kind", ["json", "jsonb", "bytea", "varchar(20)"])
async def test_bodies_of_other_types(place: Place, kind: str) -> None:
    """A table that was made by somebody else."""
    async with place.consuming():
        pass
    await place.client.execute(f"ALTER TABLE orders ALTER body TYPE {kind} USING body::{kind}")
    await write(postgres.Put[dict[str, int]](place.url, "orders"), {"a": 1})
    async with place.consuming(create=False) as session:
        (got,) = await received(session, 1)
    assert got.body.replace(b" ", b"") == b'{"a":1}'


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DROP TABLE orders", 'relation "orders" does not exist'),
        ("ALTER TABLE orders DROP lease", 'column "lease" does not exist'),
        ("ALTER TABLE orders ALTER body TYPE integer USING 1", "is integer, not one of"),
    ],
)
async def test_a_table_that_is_no_queue_is_refused(place: Place, change: str, why: str) -> None:
    """With what is missing."""
    async with place.consuming():
        pass
    await place.client.execute(change)
    with pytest.raises(BrokerRefused, match=why):
        async with place.consuming(create=False):
            pass


async def test_tables_that_are_made_at_once(place: Place) -> None:
    """By all tasks, and in a schema with a strange name."""
    await place.client.execute('CREATE SCHEMA "a b"')
    sinks = [postgres.Put[str](place.url, 'a b.or"ders', create=True) for _ in range(5)]
    await asyncio.gather(*(write(sink, "x") for sink in sinks))
    assert await place.rows(table='"a b"."or""ders"') == ["x"] * 5


async def test_the_start_says_why_it_fails(place: Place, server: Postgres) -> None:
    """And shows no secret."""
    (port,) = free_ports(1)
    for url, kind, why in [
        (
            f"postgresql://nobody:{SECRET}@{HOST}:{server.port}/x",
            BrokerRefused,
            'role "nobody" does not exist',
        ),
        (
            f"postgresql://postgres:{SECRET}@{HOST}:{server.port}/nowhere",
            BrokerRefused,
            '"nowhere" does not exist',
        ),
        (f"postgresql://postgres:{SECRET}@{HOST}:{port}/x", ConnectionLost, "postgres"),
        (f"postgresql://postgres:{SECRET}@{HOST}:{server.port}/x?sslmode=require", ConnectionLost, "SSL"),
        (f"mysql://postgres:{SECRET}@{HOST}/x", BrokerRefused, "must begin with"),
    ]:
        with pytest.raises(kind, match=why) as raised:
            await postgres.Queue(url, "orders").begin(read_address(url, where="here"), context())
        assert SECRET not in f"{raised.getrepr(chain=True)}"


async def test_a_right_that_is_taken_away_is_a_refusal(place: Place) -> None:
    """The user may connect all the same."""
    async with place.consuming():
        pass  # it makes the table
    await place.client.execute("DROP ROLE IF EXISTS reader")
    await place.client.execute("CREATE ROLE reader LOGIN")
    await place.client.execute("GRANT SELECT, UPDATE, DELETE ON orders TO reader")
    url = place.url.replace("postgres@", "reader@")
    async with place.consuming(url=url, create=False) as session:
        await place.client.execute("REVOKE UPDATE ON orders FROM reader")
        with pytest.raises(BrokerRefused, match="permission denied for table orders"):
            await session.receive(1, 30)
    await place.client.execute("DROP OWNED BY reader; DROP ROLE reader")


async def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A black hole accepts connections, too."""
    monkeypatch.setattr("stormlet.connect.postgres.connection.CONNECTS_WITHIN", 0.2)
    with socket.create_server((HOST, 0)) as silent:
        url = f"postgresql://postgres@{HOST}:{silent.getsockname()[1]}/x?sslmode=disable"
        with pytest.raises(ConnectionLost, match=r"/x: no answer within 0.2 s$"):
            await postgres.Queue(url, "orders").begin(read_address(url, where="here"), context())


async def test_a_reset_is_a_lost_connection(place: Place, proxy: Proxy) -> None:
    """For all who wait. A receipt is good at the next connection, too."""
    url = through(place.url, proxy.port)
    async with place.consuming(url=url) as session:
        await place.add(*numbered(3))
        got = await received(session, 3)
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0.2)
        proxy.reset()
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLost):
                await waiting
        with pytest.raises(ConnectionLost):
            await session.settle(done(got[0]))
    async with place.consuming(url=url) as session:
        assert await session.settle(done(*got)) == 0


async def test_a_black_hole_is_a_lost_connection(
    place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the statement that nobody answers; and it can be closed."""
    monkeypatch.setattr("stormlet.connect.postgres.connection.ANSWERS_WITHIN", 3.0)
    async with asyncio.timeout(50), place.consuming(url=through(place.url, proxy.port)) as session:
        await place.add("lamp")
        (lamp,) = await received(session, 1)
        proxy.swallow()
        waiting = [
            session.receive(1, 60),
            session.settle(done(lamp)),
            session.lag(),
            session.renew([lamp.receipt]),
        ]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionLost] * 4


async def test_a_server_that_is_killed_is_a_lost_connection(place: Place, server: Postgres) -> None:
    """When it is there again, so are all rows that were not done, and no others."""
    async with place.consuming(lease=1.0) as session:
        await place.add(*numbered(20))
        got = await received(session, 20)
        await session.settle(done(*got[:10]))
        await asyncio.to_thread(server.stop)
        with pytest.raises(ConnectionLost):
            await session.receive(1, 60)
        with pytest.raises(ConnectionLost):
            async with place.consuming():
                pass
    await asyncio.to_thread(server.start)
    async with place.consuming(lease=1.0) as session:
        assert await session.settle(done(*got[10:15])) == 0
        assert bodies(await received(session, 5)) == numbered(20)[15:]
