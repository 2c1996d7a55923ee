"""The session of a source at a real RabbitMQ."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from stormlet.connect.rabbitmq import Queue, queue
from stormlet.connect.session import Rejection, Settlement
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.proxy import Proxy
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit, consuming, through
from tests.connect.sessions import begun, bodies, done, numbered, received, soon

pytestmark = pytest.mark.asyncio


async def test_a_message_comes_with_all_that_it_has(rabbit: Rabbit) -> None:
    """Body, routing key, headers, properties, and when it was published."""
    await rabbit.declare()
    at = datetime(2026, 11, 22, 10, tzinfo=UTC)
    await rabbit.publish(
        "lamp", headers={"shop": "north"}, message_id="m1", correlation_id="c1", timestamp=at
    )
    async with consuming(rabbit.url, rabbit.queue) as session:
        (lamp,) = await received(session, 1)
    assert (lamp.body, lamp.key, lamp.deliveries) == (b"lamp", rabbit.queue, 1)
    assert lamp.headers == {"shop": "north", "message_id": "m1", "correlation_id": "c1"}
    assert (lamp.published, lamp.name) == (at.timestamp(), "")


async def test_headers_are_text_or_bytes_whatever_they_were(rabbit: Rabbit) -> None:
    """Numbers, times and tables, which nobody has promised."""
    await rabbit.declare()
    at = datetime(2026, 11, 22, 10, tzinfo=UTC)
    given = {"n": 7, "yes": True, "none": None, "at": at, "price": Decimal("1.5"), "list": [1, {"a": "b"}]}
    await rabbit.publish("", headers={**given, "raw": bytearray(b"\xfe")})
    async with consuming(rabbit.url, rabbit.queue) as session:
        (message,) = await received(session, 1)
    assert {name: text for name, text in message.headers.items() if name != "message_id"} == {
        "n": "7",
        "yes": "true",
        "none": "null",
        "at": at.isoformat(),
        "price": "1.5",
        "list": '[1,{"a":"b"}]',
        "raw": b"\xfe",
    }


async def test_no_more_is_pushed_than_there_is_credit(rabbit: Rabbit) -> None:
    """What is settled makes room for as many."""
    await rabbit.declare()
    await rabbit.publish(*numbered(10))
    async with consuming(rabbit.url, rabbit.queue, credit=4) as session:
        first = await received(session, 4)
        assert await session.receive(1, 0.3) == []
        assert (bodies(first), await rabbit.ready()) == (numbered(4), 6)
        await session.settle(done(*first[:3]))
        assert bodies(await received(session, 3)) == ["4", "5", "6"]


async def test_a_spout_without_credit_gets_one_at_a_time(rabbit: Rabbit) -> None:
    """A prefetch of 0 would be none at all."""
    await rabbit.declare()
    await rabbit.publish(*numbered(3))
    async with consuming(rabbit.url, rabbit.queue, credit=0) as session:
        assert bodies(await received(session, 1)) == ["0"]
        assert await session.receive(1, 0.3) == []


async def test_only_what_is_settled_is_gone(rabbit: Rabbit) -> None:
    """In any order; the others come again when the connection has ended."""
    await rabbit.declare()
    await rabbit.publish(*numbered(8))
    async with consuming(rabbit.url, rabbit.queue) as session:
        got = await received(session, 8)
        await session.settle(done(got[2], got[0], got[1]))
        await session.settle(done(got[7], got[4]))
    assert await rabbit.has("3", "5", "6")


async def test_a_settlement_has_returned_when_the_broker_knows_it(rabbit: Rabbit, proxy: Proxy) -> None:
    """A connection that is cut right afterwards brings nothing of it again."""
    await rabbit.declare()
    await rabbit.publish(*numbered(300))
    async with consuming(through(rabbit.url, proxy.port), rabbit.queue, credit=300) as session:
        got = await received(session, 300)
        await session.settle(done(*got[::2]))
        proxy.reset()
        with pytest.raises(ConnectionLost):
            await session.receive(1, 30)
    assert await rabbit.has(*numbered(300)[1::2])


async def test_a_receipt_settles_once(rabbit: Rabbit) -> None:
    """A second time the channel would be closed, and all that it has delivered again."""
    await rabbit.declare()
    await rabbit.publish(*numbered(3))
    async with consuming(rabbit.url, rabbit.queue) as session:
        first, second, _ = await received(session, 3)
        assert await session.settle(done(second)) == 0
        assert await session.settle(done(first, second, first)) == 2
    assert await rabbit.has("2")


async def test_what_is_rejected_goes_to_the_dead_letter_exchange(rabbit: Rabbit) -> None:
    """Among others that are done or given back."""
    dead = await rabbit.declare(f"{rabbit.queue} dead")
    await rabbit.declare(x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    await rabbit.publish(*numbered(4))
    async with consuming(rabbit.url, rabbit.queue, rejects=True) as session:
        got = await received(session, 4)
        rejections = [Rejection(got[1].receipt, "poison")]
        await session.settle(Settlement([got[0].receipt, got[3].receipt], [got[2].receipt], rejections))
        assert bodies(await received(session, 1)) == ["2"]
    assert await rabbit.has("1", queue=dead)
    assert await rabbit.has("2")


@pytest.mark.parametrize(("kind", "counts"), [("classic", [1, 2, 2]), ("quorum", [1, 2, 3])])
async def test_deliveries_are_counted(rabbit: Rabbit, kind: str, counts: list[int]) -> None:
    """A quorum queue counts them; a classic one says only whether it is the first."""
    await rabbit.declare(x_queue_type=kind)
    await rabbit.publish("lamp")
    for count in counts:
        async with consuming(rabbit.url, rabbit.queue) as session:
            (message,) = await received(session, 1)
            assert message.deliveries == count


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_first_delivery_is_one_whatever_its_headers_say(rabbit: Rabbit, kind: str) -> None:
    """They are a publisher's, or those of another queue that has dead-lettered the message."""
    await rabbit.declare(x_queue_type=kind)
    await rabbit.publish("lamp", headers={"x-delivery-count": 50})
    async with consuming(rabbit.url, rabbit.queue) as session:
        (message,) = await received(session, 1)
    assert (message.deliveries, message.headers["x-delivery-count"]) == (1, "50")


async def test_an_interrupted_source_is_pushed_no_more(rabbit: Rabbit) -> None:
    """A receive that waits returns, and so do later ones; what had come can be settled."""
    await rabbit.declare()
    await rabbit.publish("lamp")
    async with consuming(rabbit.url, rabbit.queue) as session:
        (lamp,) = await received(session, 1)
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0)
        session.interrupt()
        assert await waiting == []
        await session.settle(done(lamp))
        assert await rabbit.consumers() == 0
        await rabbit.publish("chair")
        assert await session.receive(1, 60) == []
    assert await rabbit.has("chair")


async def test_a_receive_returns_nothing_after_its_time(rabbit: Rabbit) -> None:
    """And has what comes later."""
    await rabbit.declare()
    async with consuming(rabbit.url, rabbit.queue) as session:
        assert await session.receive(1, 0.05) == []
        await rabbit.publish("lamp")
        assert bodies(await session.receive(1, 30)) == ["lamp"]


async def test_the_lag_is_what_is_not_settled(rabbit: Rabbit) -> None:
    """Ready, or here and open; nothing when all is done."""
    await rabbit.declare()
    await rabbit.publish(*numbered(10))
    async with consuming(rabbit.url, rabbit.queue, credit=4) as session:
        got = await received(session, 4)
        assert await session.lag() == {rabbit.queue: 10}
        await session.settle(done(got[0], got[2]))
        await received(session, 2)
        assert await session.lag() == {rabbit.queue: 8}
    async with consuming(rabbit.url, rabbit.queue) as session:
        await session.settle(done(*await received(session, 8)))
        assert await session.lag() == {rabbit.queue: 0}


async def test_unique_ids_are_names(rabbit: Rabbit) -> None:
    """The same in each delivery. Of two messages with one id that are here at a time only the first is so called, as a
    publisher that has got no confirm publishes once more."""
    await rabbit.declare()
    for id in ("a", "a", "b"):
        await rabbit.publish("lamp", message_id=id)
    async with consuming(rabbit.url, rabbit.queue, unique_ids=True) as session:
        got = await received(session, 3)
        assert [each.name for each in got] == ["a", "", "b"]
        await session.settle(Settlement(returned=[got[0].receipt]))
        assert [each.name for each in await received(session, 1)] == ["a"]


async def test_a_queue_that_is_deleted_is_a_lost_connection(rabbit: Rabbit) -> None:
    """The client alone would wait for ever; and to connect again is refused. RabbitMQ 4.3 says no more than this of a
    quorum queue's message that was open for too long."""
    await rabbit.declare()
    async with consuming(rabbit.url, rabbit.queue) as session:
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0)
        await rabbit.delete()
        with pytest.raises(
            ConnectionLost, match="was deleted, or has moved, or a message was open for longer"
        ):
            await waiting
    with pytest.raises(BrokerRefused, match="no queue"):
        async with consuming(rabbit.url, rabbit.queue):
            pass


async def test_what_was_given_back_too_often_is_no_more_delivered(rabbit: Rabbit) -> None:
    """A quorum queue counts each connection that ends with the message, also one that was asked to end."""
    dead = await rabbit.declare(f"{rabbit.queue} dead")
    to = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": dead}
    await rabbit.declare(x_queue_type="quorum", x_delivery_limit=2, **to)
    await rabbit.publish("lamp")
    seen = list[int]()
    for _ in range(3):
        async with consuming(rabbit.url, rabbit.queue) as session:
            seen += [each.deliveries for each in await received(session, 1)]
    assert (seen, await rabbit.has("lamp", queue=dead)) == ([1, 2, 3], True)


async def test_what_is_soon_no_more_delivered_is_logged(
    rabbit: Rabbit, caplog: pytest.LogCaptureFixture
) -> None:
    """A quorum queue of RabbitMQ 4 drops it after 21 deliveries without a word, and is half-way there. One warning is
    enough for a connection."""
    await rabbit.declare(x_queue_type="quorum")
    await rabbit.publish(*numbered(2))
    for count in range(1, 12):
        assert not caplog.messages
        async with consuming(rabbit.url, rabbit.queue) as session:
            assert [each.deliveries for each in await received(session, 2)] == [count, count]
    (said,) = caplog.messages
    assert f"{rabbit.queue!r} has delivered a message 11 times" in said


async def test_a_stream_is_refused(rabbit: Rabbit) -> None:
    """It keeps what is acknowledged, and would begin at its end each time."""
    await rabbit.declare(x_queue_type="stream")
    async with consuming(rabbit.url, rabbit.queue) as session:
        await rabbit.publish("lamp")
        with pytest.raises(BrokerRefused, match="is a stream"):
            await session.receive(1, 30)


async def test_a_position_that_a_publisher_has_made_up_is_a_header_like_any(rabbit: Rabbit) -> None:
    """Only a stream has it of its own; messages that once were in one bring it along. The broker is asked once."""
    for kind in ("classic", "quorum"):
        queue = await rabbit.declare(f"{rabbit.queue} {kind}", x_queue_type=kind)
        await rabbit.publish(*numbered(2), queue=queue, headers={"x-stream-offset": 7})
        await rabbit.publish("2", queue=queue)
        async with consuming(rabbit.url, queue) as session:
            got = await received(session, 3)
            await session.settle(done(*got))
            assert await session.lag() == {queue: 0}
        assert bodies(got) == numbered(3)
        assert [each.headers.get("x-stream-offset") for each in got] == ["7", "7", None]


async def test_a_message_that_cannot_be_taken_in_is_no_message_without_a_word(
    rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be made of it, and it is settled as any other: the client would only log the error, and the message
    would be open for ever."""
    await rabbit.declare()
    await rabbit.publish("lamp", headers={"shop": "north"})
    await rabbit.publish("chair")
    monkeypatch.setattr(queue, "_plain", lambda value: 1 // 0)
    source = Queue[bytes](rabbit.url, rabbit.queue, as_=bytes)
    async with begun(source) as session:
        lamp, chair = await received(session, 2)
        with pytest.raises(ZeroDivisionError):
            source.decode(lamp)
        assert (lamp.body, source.decode(chair)) == (b"lamp", b"chair")
        await session.settle(done(lamp, chair))
    assert await rabbit.ready() == 0


async def test_a_channel_that_the_broker_closes_is_a_lost_connection(rabbit: Rabbit) -> None:
    """For all who wait, with the broker's words."""
    await rabbit.declare()
    async with consuming(rabbit.url, rabbit.queue) as session:
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0)
        await session._channel.basic_ack(77, wait=False)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ConnectionLost, match="unknown delivery tag 77"):
            await session.settle(Settlement())
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLost, match="unknown delivery tag 77"):
                await waiting


async def test_a_reset_is_a_lost_connection(rabbit: Rabbit, proxy: Proxy) -> None:
    """For who receives and who settles; what had come and was not taken comes again."""
    await rabbit.declare()
    await rabbit.publish(*numbered(5))
    async with consuming(through(rabbit.url, proxy.port), rabbit.queue) as session:
        (first,) = await received(session, 1)
        proxy.reset()
        with pytest.raises(ConnectionLost):
            await session.settle(done(first))
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLost):
                await session.receive(5, 60)
    async with consuming(rabbit.url, rabbit.queue) as session:
        assert sorted(bodies(await received(session, 5))) == numbered(5)


async def test_a_black_hole_is_a_lost_connection(rabbit: Rabbit, proxy: Proxy) -> None:
    """Whoever waits for an answer hears of it when no heartbeat has come: none of them is cancelled."""
    await rabbit.declare()
    await rabbit.publish("lamp")
    async with consuming(through(rabbit.url, proxy.port), rabbit.queue) as session:
        (lamp,) = await received(session, 1)
        proxy.swallow()
        waiting = [session.receive(1, 60), session.settle(done(lamp)), session.lag()]
        async with asyncio.timeout(60):
            errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionLost] * 3
    assert "no heartbeat has come" in str(errors[1])


async def test_a_broker_that_is_killed_is_a_lost_connection(rabbit: Rabbit, broker: RabbitMQ) -> None:
    """When it is there again, so are all messages that were not settled, and perhaps some that were: it keeps on disk
    only after a while what it knows of them."""
    await rabbit.declare()
    await rabbit.publish(*numbered(20))
    async with consuming(rabbit.url, rabbit.queue) as session:
        got = await received(session, 20)
        await session.settle(done(*got[:10]))
        broker.kill()
        with pytest.raises(ConnectionLost):
            await session.receive(1, 60)
        with pytest.raises(ConnectionLost):
            async with consuming(rabbit.url, rabbit.queue):
                pass
    broker.start()
    async with consuming(rabbit.url, rabbit.queue) as session:
        again = set[str]()

        async def are_all_there() -> bool:
            again.update(bodies(await session.receive(20, 1)))
            return again >= set(numbered(20)[10:])

        await soon(are_all_there)
