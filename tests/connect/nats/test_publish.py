"""The session of a sink at a real NATS."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from stormlet.connect import nats
from stormlet.connect.nats import Publish
from stormlet.connect.session import DONE, Item
from stormlet.errors import BrokerRefused, ConnectionLost, InvalidTopology
from tests.brokers.proxy import Proxy
from tests.brokers.servers import Nats
from tests.connect.nats.kit import Server, through
from tests.connect.sessions import numbered

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


class Order(msgspec.Struct):
    """A value."""

    shop: str


async def test_values_are_published_in_their_order(server: Server) -> None:
    """Text and bytes as they are, all else as JSON, each with the origin of its message."""
    values = ["a", b"b", Order("north"), 7]
    written = await server.write(*(Item(value, f"queue@{n}") for n, value in enumerate(values)))
    assert written == [DONE] * 4
    there = await server.messages()
    assert [each.data for each in there] == [b"a", b"b", b'{"shop":"north"}', b"7"]
    assert [each.headers for each in there] == [{"stormlet-origin": f"queue@{n}"} for n in range(4)]


async def test_subject_and_headers_may_depend_on_the_value(server: Server) -> None:
    """Each value goes where it belongs."""
    await server.write(
        "north",
        "south",
        subject=lambda shop: f"{server.stream}.{shop}",
        headers=lambda shop: {"shop": shop},
    )
    assert [(each.subject, each.headers) for each in await server.messages()] == [
        (f"{server.stream}.north", {"shop": "north"}),
        (f"{server.stream}.south", {"shop": "south"}),
    ]


async def test_a_message_id_is_kept_once(server: Server) -> None:
    """By another session, too; what the stream has is done."""
    for _ in range(2):
        assert await server.write("1", "2", "1", message_id=lambda value: f"id-{value}") == [DONE] * 3
    assert await server.bodies() == ["1", "2"]


async def test_the_origin_may_be_the_message_id(server: Server) -> None:
    """What has no origin has no id."""
    items = [Item("a", "q@1"), Item("again", "q@1", attempt=2), Item("b"), Item("c")]
    assert await server.write(*items, message_id="origin") == [DONE] * 4
    assert await server.bodies() == ["a", "b", "c"]


async def test_equal_values_are_all_there_without_an_id(server: Server) -> None:
    """A message may lead to the same value twice."""
    await server.write(Item("the", "line@1"), Item("the", "line@1"))
    assert await server.bodies() == ["the", "the"]


async def test_a_subject_that_no_stream_keeps_is_permanent(server: Server) -> None:
    """The others of its batch are published."""
    first, second = await server.write("nowhere.at.all", server.subject, subject=str)
    assert (first.permanent, first.reason) == (True, "no stream keeps the subject 'nowhere.at.all'")
    assert second == DONE


@pytest.mark.parametrize("subject", ["", "a..b", "a.*", "a.>", "a b", "a\r\nPUB x 0"])
async def test_a_subject_that_cannot_be_is_permanent(server: Server, subject: str) -> None:
    """One of the code is not even declared."""
    (written,) = await server.write("x", subject=lambda _: subject)
    assert written.permanent
    assert "cannot be published" in written.reason
    with pytest.raises(InvalidTopology, match="nothing can be published"):
        Publish[str](server.url, subject)


async def test_what_cannot_be_published_is_permanent(server: Server) -> None:
    """A value without JSON, a function that raises, a header that is none, a message that the server never takes."""

    def fail(value: str) -> dict[str, str]:
        raise ValueError(value)

    (no_json,) = await server.write(object())
    (raised,) = await server.write("x", headers=fail)
    (no_name,) = await server.write("x", headers=lambda _: {"a b": "c"})
    (no_text,) = await server.write("x", headers=lambda _: {"a": 7})
    large, small = await server.write("x" * 2_000_000, "x")
    assert [each.permanent for each in (no_json, raised, no_name, no_text, large)] == [True] * 5
    assert "maximum payload" in large.reason
    assert small == DONE


async def test_what_the_stream_is_too_small_for(server: Server) -> None:
    """A message that is too large is never taken; a stream that is full may have room later."""
    await server.make("small", max_msg_size=10, max_msgs=2, discard="new")
    too_large, first, second, third = await server.write("x" * 11, "1", "2", "3", subject="small.x")
    assert (too_large.permanent, "exceeds" in too_large.reason) == (True, True)
    assert (first, second) == (DONE, DONE)
    assert (third.permanent, third.later, third.reason) == (False, True, "maximum messages exceeded")
    await server.js.delete_stream("small")


async def test_a_message_that_is_larger_than_its_stream_waits_for_no_room(server: Server) -> None:
    """There will be none; of one that is smaller there may be some later."""
    await server.make("bytes", max_bytes=2000, discard="new")
    large, small, next_one = await server.write("x" * 5000, "x" * 1500, "x" * 1500, subject="bytes.x")
    assert (large.permanent, large.later, small) == (False, False, DONE)
    assert (next_one.later, next_one.reason) == (True, "maximum bytes exceeded")
    await server.js.delete_stream("bytes")


async def test_what_may_not_replace_others_is_permanent(server: Server) -> None:
    """By a header that the stream does not allow."""
    (written,) = await server.write("x", headers=lambda _: {"Nats-Rollup": "all"})
    assert (written.permanent, "rollup not permitted" in written.reason) == (True, True)


async def test_a_subject_that_has_its_message_is_no_full_stream(server: Server) -> None:
    """A stream that keeps the first of each subject tells doubles by that: to wait for room would be in vain."""
    one = {"max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True}
    await server.make("firsts", **one)
    first, second = await server.write("1", "2", subject="firsts.x")
    assert (first, second.permanent, second.later) == (DONE, False, False)
    assert "per subject" in second.reason
    await server.js.delete_stream("firsts")


async def test_a_subject_without_a_stream_is_refused_at_the_start(server: Server) -> None:
    """By its name."""
    with pytest.raises(BrokerRefused, match=r"no stream keeps the subject 'nowhere.new'"):
        async with server.publishing(subject="nowhere.new"):
            pass


async def test_a_stream_is_made_for_a_subject_if_that_is_wanted(server: Server) -> None:
    """And is left as it is if it is there."""
    for value in ("a", "b"):
        assert await server.write(value, subject="made.here", create="MADE") == [DONE]
    assert await server.bodies("MADE") == ["a", "b"]
    with pytest.raises(BrokerRefused, match="cannot be the name of a stream"):
        await server.write("c", subject="made.there", create="MADE.IT")


async def test_a_stream_whose_server_is_away_is_no_dead_letter(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers then, as without a stream; but JetStream still knows of it."""
    async with server.publishing(subject=str) as session:

        async def known(_: str) -> str:
            return "orders"

        monkeypatch.setattr(session._api, "stream_of", known)  # pyright: ignore[reportPrivateUsage]
        (written,) = await session.write([Item("orders.new")])
    assert (written.permanent, written.reason) == (False, "the stream 'orders' does not answer now")


async def test_a_reset_is_a_lost_connection(server: Server, proxy: Proxy) -> None:
    """Nothing is known of what was under way."""
    async with server.publishing(url=through(server.url, proxy.port)) as session:
        assert await session.write([Item("a")]) == [DONE]
        proxy.swallow()
        writing = asyncio.ensure_future(session.write([Item(text) for text in numbered(10)]))
        await asyncio.sleep(0.1)
        proxy.reset()
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLost):
                await writing
        with pytest.raises(ConnectionLost):
            await session.write([Item("b")])


async def test_a_client_that_has_just_been_closed_is_a_lost_connection(server: Server) -> None:
    """A moment before anybody has noticed."""
    async with server.publishing() as session:
        await session._connection._client.close()  # pyright: ignore[reportPrivateUsage]
        session._connection.error = None  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ConnectionLost, match="connection closed"):
            await session.write([Item("a")])


async def test_a_black_hole_is_a_lost_connection(server: Server, proxy: Proxy) -> None:
    """By the pings that nobody answers."""
    async with asyncio.timeout(60), server.publishing(url=through(server.url, proxy.port)) as session:
        proxy.swallow()
        with pytest.raises(ConnectionLost):
            await session.write([Item(text) for text in numbered(10)])


async def test_what_is_written_survives_a_kill(server: Server, broker: Nats) -> None:
    """The server has said that it has it."""
    assert set(await server.write(*numbered(300))) == {DONE}
    await asyncio.to_thread(broker.restart)
    async with Server(server.url, server.stream) as later:
        assert await later.bodies() == numbered(300)


async def test_the_names_that_pages_and_logs_show(server: Server) -> None:
    """The stream, its consumer, and the subject."""
    source = nats.Stream(server.url, "orders", consumer="billing")
    assert (repr(source), source.group) == ("Stream('orders')", "billing")
    assert repr(Publish[str](server.url, "orders.new")) == "Publish('orders.new')"
