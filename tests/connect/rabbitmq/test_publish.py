"""The session of a sink at a real RabbitMQ."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormlet.connect.rabbitmq import Publish
from stormlet.connect.rabbitmq.publish import CONFIRMS
from stormlet.connect.session import DONE, Item, Written
from stormlet.errors import BrokerRefused, ConnectionLost, InvalidTopology
from tests.brokers.proxy import Proxy
from tests.connect.rabbitmq.kit import Rabbit, consuming, publishing, through
from tests.connect.sessions import numbered, received

pytestmark = pytest.mark.asyncio


def items(*values: object) -> list[Item]:
    return [Item(value) for value in values]


async def test_what_is_written_is_in_the_queue(rabbit: Rabbit) -> None:
    """In its order, persistent, with its kind and its origin."""
    await rabbit.declare()
    values = [{"n": 1}, "text", b"\xff"]
    async with publishing(rabbit.url, routing_key=rabbit.queue) as session:
        assert await session.write([Item(value, "o1") for value in values]) == [DONE] * 3
    taken = await rabbit.take()
    assert [message.body for message in taken] == [b'{"n":1}', b"text", b"\xff"]
    properties = [message.header.properties for message in taken]
    assert [each.content_type for each in properties] == [
        "application/json",
        "text/plain",
        "application/octet-stream",
    ]
    assert {each.delivery_mode for each in properties} == {2}
    assert {str(each.headers) for each in properties} == {"{'stormlet-origin': 'o1'}"}


async def test_the_order_is_kept_over_more_than_may_be_under_way(rabbit: Rabbit) -> None:
    """And no more than 500 are published and not confirmed."""
    await rabbit.declare()
    under_way, count = [0], CONFIRMS + 700
    async with publishing(rabbit.url, routing_key=rabbit.queue) as session:
        channel: Any = session._channel  # pyright: ignore[reportPrivateUsage]
        publish = channel.basic_publish

        async def counted(*given: Any, **named: Any) -> None:
            under_way.append(under_way[-1] + 1)
            await publish(*given, **named)
            under_way.append(under_way[-1] - 1)

        channel.basic_publish = counted
        assert await session.write(items(*numbered(count))) == [DONE] * count
    assert max(under_way) == CONFIRMS
    assert await rabbit.bodies() == numbered(count)


async def test_routing_key_and_properties_are_of_the_value(rabbit: Rabbit) -> None:
    """Functions of it; headers come back as they were, bytes too."""
    await rabbit.declare()

    def properties(value: str) -> dict[str, object]:
        return {"message_id": f"id {value}", "priority": 3, "headers": {"shop": value, "raw": b"\xff"}}

    async with publishing(rabbit.url, routing_key=lambda _: rabbit.queue, properties=properties) as session:
        assert await session.write(items("north")) == [DONE]
    async with consuming(rabbit.url, rabbit.queue, unique_ids=True) as source:
        (message,) = await received(source, 1)
    assert message.name == "id north"
    assert (message.headers["shop"], message.headers["raw"]) == ("north", b"\xff")


async def test_what_no_queue_gets_is_rejected(rabbit: Rabbit) -> None:
    """For good, and the others are written."""
    await rabbit.declare()
    async with publishing(rabbit.url, routing_key=lambda value: str(value)) as session:
        written = await session.write(items(rabbit.queue, "nowhere", rabbit.queue))
    assert [each.permanent for each in written] == [False, True, False]
    assert "the default exchange has no route for routing key 'nowhere'" in written[1].reason
    assert len(await rabbit.bodies()) == 2


async def test_equal_message_ids_do_not_hide_what_no_queue_gets(rabbit: Rabbit) -> None:
    """The client knows a returned message by its id, and would take another one for it."""
    await rabbit.declare()
    options: Any = {"routing_key": str, "properties": lambda value: {"message_id": "same"}}
    async with publishing(rabbit.url, **options) as session:
        written = await session.write(items("nowhere", rabbit.queue, "nowhere", rabbit.queue))
    assert [each.permanent for each in written] == [True, False, True, False]
    assert await rabbit.bodies() == [rabbit.queue] * 2


async def test_what_a_full_queue_refuses_is_tried_again(rabbit: Rabbit) -> None:
    """It is not rejected for good, as there may be room later."""
    await rabbit.declare(x_max_length=1, x_overflow="reject-publish")
    async with publishing(rabbit.url, routing_key=rabbit.queue) as session:
        written = [(await session.write(items(text)))[0] for text in numbered(3)]
    assert written[0] == DONE
    assert (written[-1].permanent, written[-1].later, "nack" in written[-1].reason) == (False, True, True)


async def test_what_an_empty_queue_refuses_does_not_wait(rabbit: Rabbit) -> None:
    """It is larger than the queue ever takes."""
    await rabbit.declare(x_max_length_bytes=1000, x_overflow="reject-publish")
    async with publishing(rabbit.url, routing_key=rabbit.queue) as session:
        (large,) = await session.write(items("x" * 5000))
    assert (bool(large.reason), large.permanent, large.later) == (True, False, False)


async def test_what_one_of_several_queues_refuses_does_not_wait(rabbit: Rabbit) -> None:
    """The others have it, and would get it with each attempt."""
    await rabbit.declare(x_max_length=1, x_overflow="reject-publish")
    other = await rabbit.declare(f"{rabbit.queue} other")
    await rabbit.fanout("both", rabbit.queue, other)
    async with publishing(rabbit.url, exchange="both") as session:
        written = [(await session.write(items(text)))[0] for text in numbered(3)]
    await rabbit.delete_exchange("both")
    assert (bool(written[-1].reason), written[-1].later) == (True, False)
    assert await rabbit.bodies(other) == numbered(3)


async def test_what_cannot_be_published_is_rejected(rabbit: Rabbit) -> None:
    """With the reason, and the confirms of the others stay in step."""
    await rabbit.declare()

    def key(value: object) -> str:
        if value == "raises":
            raise LookupError("no shop")
        return "é" * 200 if value == "long" else rabbit.queue

    def properties(value: object) -> dict[str, object]:
        return {"headers": {"x": object()}} if value == "header" else {"colour": 1} if value == "name" else {}

    values = ["raises", "fine", "long", object(), "header", "name", "fine"]
    async with publishing(rabbit.url, routing_key=key, properties=properties) as session:
        written = await session.write(items(*values))
        assert await session.write(items("fine")) == [DONE]
    assert [bool(each.reason) for each in written] == [value != "fine" for value in values]
    assert all(each.permanent for each in written if each.reason)
    assert "LookupError: no shop" in written[0].reason
    assert await rabbit.bodies() == ["fine"] * 3


async def test_a_message_that_the_broker_cannot_take_spoils_no_other(rabbit: Rabbit) -> None:
    """It closes the channel for all that are under way. It alone is rejected; others may be there twice."""
    await rabbit.declare()

    def properties(value: str) -> dict[str, object]:
        return {"expiration": "soon"} if value in ("7", "31") else {}

    async with publishing(rabbit.url, routing_key=rabbit.queue, properties=properties) as session:
        written = await session.write(items(*numbered(50)))
        assert [str(number) for number, each in enumerate(written) if each.permanent] == ["7", "31"]
        assert [each for each in written if not each.permanent] == [Written()] * 48
        assert "soon" in written[7].reason
    assert set(await rabbit.bodies()) == set(numbered(50)) - {"7", "31"}


async def test_a_reset_while_writing_is_a_lost_connection(rabbit: Rabbit, proxy: Proxy) -> None:
    """Nothing is known then of any of them; whatever was confirmed before is there."""
    await rabbit.declare()
    async with publishing(through(rabbit.url, proxy.port), routing_key=rabbit.queue) as session:
        assert await session.write(items("before")) == [DONE]
        proxy.swallow()
        writing = asyncio.ensure_future(session.write(items(*numbered(100))))
        await asyncio.sleep(0.2)
        assert not writing.done()
        proxy.reset()
        with pytest.raises(ConnectionLost):
            await writing
    assert "before" in await rabbit.bodies()


async def test_a_black_hole_while_writing_is_a_lost_connection(rabbit: Rabbit, proxy: Proxy) -> None:
    """Nobody is cancelled by the client's own reader, which is."""
    await rabbit.declare()
    async with publishing(through(rabbit.url, proxy.port), routing_key=rabbit.queue) as session:
        proxy.swallow()
        async with asyncio.timeout(60):
            with pytest.raises(ConnectionLost):
                await session.write(items(*numbered(10)))


async def test_an_exchange_that_is_deleted_is_a_lost_connection(rabbit: Rabbit) -> None:
    """And to connect again is refused."""
    exchange = f"{rabbit.queue} exchange"
    await rabbit.declare()
    await rabbit.fanout(exchange, rabbit.queue)
    async with publishing(rabbit.url, exchange=exchange) as session:
        assert await session.write(items("lamp")) == [DONE]
        await rabbit.delete_exchange(exchange)
        with pytest.raises(ConnectionLost, match="no exchange"):
            await session.write(items("chair"))
    with pytest.raises(BrokerRefused, match="no exchange"):
        async with publishing(rabbit.url, exchange=exchange):
            pass


async def test_a_missing_queue_is_refused_at_the_start(rabbit: Rabbit) -> None:
    """Where the routing key of the default exchange is constant."""
    with pytest.raises(BrokerRefused, match="no queue 'nowhere'"):
        async with publishing(rabbit.url, routing_key="nowhere"):
            pass


async def test_a_sink_to_nowhere_is_no_sink() -> None:
    """It needs an exchange or a queue."""
    with pytest.raises(InvalidTopology, match="exchange="):
        Publish[str]("amqp://host")
