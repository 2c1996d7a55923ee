"""The contract of a sink's session with Redis Streams, against a real Valkey."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from stormlet.connect import redis
from stormlet.connect.session import DONE, Item
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.processes import HOST, Broker
from tests.brokers.proxy import Proxy
from tests.connect.redis.streams import Place, begin_sink, bodies, place

pytestmark = pytest.mark.asyncio


class Order(msgspec.Struct):
    id: int


async def fields(at: Place) -> list[dict[bytes, bytes]]:
    """The fields of all entries."""
    return [fields for _, fields in await at.client.xrange(at.stream)]


async def test_values_become_entries_in_order(valkey: Broker) -> None:
    """As JSON in one field, with the origin of their messages."""
    async with place(valkey) as at:
        assert await at.write(Item(Order(1), origin="o@1"), Item("text"), Item(b"bytes")) == [DONE] * 3
        assert await fields(at) == [
            {b"body": b'{"id":1}', b"origin": b"o@1"},
            {b"body": b"text"},
            {b"body": b"bytes"},
        ]


async def test_what_a_sink_has_written_a_source_reads(valkey: Broker) -> None:
    """The origin is among its headers."""
    async with place(valkey) as at:
        await at.write(Item("a", origin=7))
        async with at.session() as session:
            (got,) = await session.receive(10, 20)
        assert (got.body, got.headers) == (b"a", {"origin": b"7"})


async def test_fields_may_be_made_by_a_function(valkey: Broker) -> None:
    """Of text, bytes and numbers."""
    async with place(valkey) as at:
        await at.write(Order(3), fields=lambda order: {"id": order.id, "half": order.id / 2, "raw": b"\xff"})
        assert await fields(at) == [{b"id": b"3", b"half": b"1.5", b"raw": b"\xff"}]


async def test_one_value_that_cannot_be_written_does_not_hold_up_the_others(valkey: Broker) -> None:
    """It is refused for good, with the reason."""
    async with place(valkey) as at:
        good, bad, empty, also_good = await at.write("a", None, "", "b", fields=_odd)
        assert good == also_good == DONE
        assert bad.permanent
        assert bad.reason == "TypeError: a field is text, bytes or a number, not NoneType"
        assert empty.permanent
        assert "wrong number of arguments" in empty.reason
        assert [each[b"x"] for each in await fields(at)] == [b"a", b"b"]


def _odd(value: Any) -> dict[str, Any]:
    return {} if value == "" else {"x": value}


async def test_a_key_that_has_become_a_list_takes_nothing(valkey: Broker) -> None:
    """No later attempt can help."""
    async with place(valkey) as at:
        session = await begin_sink(redis.Add[str](at.url, at.stream))
        await at.client.rpush(at.stream, "x")
        (written,) = await session.write([Item("a")])
        await session.close()
        assert written.permanent
        assert written.reason.startswith("WRONGTYPE")


async def test_a_server_without_memory_may_have_some_later(valkey: Broker) -> None:
    """So the sink waits, and nothing is replayed by that."""
    async with place(valkey) as at:
        await at.client.config_set("maxmemory", "1")
        (written,) = await at.write("a")
        await at.client.config_set("maxmemory", "0")
        assert (written.permanent, written.later) == (False, True)
        assert "maxmemory" in written.reason


async def test_a_right_that_is_taken_away_is_a_refusal(valkey: Broker) -> None:
    """The user may connect all the same; the topology is to crash by it, and not to bury its messages."""
    async with place(valkey) as at:
        ask = at.client.execute_command
        await ask("ACL", "SETUSER", "writer", "reset", "on", ">secret", "~*", "+@all")
        session = await begin_sink(redis.Add[str](at.url.replace("//", "//writer:secret@"), at.stream))
        await ask("ACL", "SETUSER", "writer", "-xadd")
        with pytest.raises(BrokerRefused, match="xadd"):
            await session.write([Item("a")])
        await session.close()
        await ask("ACL", "DELUSER", "writer")


async def test_a_server_that_became_a_replica_is_a_lost_connection(valkey: Broker) -> None:
    """As after a failover: the next connection may reach the new primary."""
    async with place(valkey) as at:
        session = await begin_sink(redis.Add[str](at.url, at.stream))
        await at.client.execute_command("REPLICAOF", HOST, 1)
        with pytest.raises(ConnectionLost):
            await session.write([Item("a")])
        await at.client.execute_command("REPLICAOF", "NO", "ONE")
        await session.close()


async def test_a_reset_connection_writes_nothing_twice(valkey: Broker) -> None:
    """Nothing is known of the batch, and redis-py does not write it once more by itself."""
    lost = 0
    with Proxy(valkey.port) as proxy:
        async with place(valkey) as at:
            session = await begin_sink(redis.Add[str](f"redis://{HOST}:{proxy.port}/0", at.stream))
            for number in range(50):
                cut = asyncio.get_running_loop().run_in_executor(None, proxy.reset)
                try:
                    await session.write([Item(f"{number}") for _ in range(100)])
                except ConnectionLost:
                    lost += 1
                await cut
            await session.close()
            times = Counter(each[b"body"] for each in await fields(at))
    assert lost
    assert max(times.values()) <= 100


async def test_the_oldest_go_beyond_a_length(valkey: Broker) -> None:
    """By blocks of a hundred."""
    async with place(valkey) as at:
        await at.write(*map(str, range(500)), max_length=100)
        assert 100 <= await at.client.xlen(at.stream) <= 200
        async with at.session() as session:
            assert bodies(await session.receive(1000, 20))[-1] == "499"
