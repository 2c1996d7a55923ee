"""The session of a source at a real NATS; each test is a trap of the protocol."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from stormlet.connect.session import Rejection, Settlement
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.proxy import Proxy
from tests.brokers.servers import Nats
from tests.connect.nats.kit import CONSUMER, Server, through
from tests.connect.sessions import (
    bodies,
    done,
    numbered,
    quickest,
    received,
    rejected,
    returned,
    soon,
    until,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


async def test_a_message_comes_with_all_that_it_has(server: Server) -> None:
    """Body, subject, headers, its place in the stream, and when it was published."""
    await server.publish("lamp", headers={"shop": "north"})
    async with server.consuming() as session:
        (lamp,) = await received(session, 1)
    assert (lamp.body, lamp.key, lamp.headers) == (b"lamp", server.subject, {"shop": "north"})
    assert (lamp.name, lamp.deliveries) == (f"{server.stream}@1", 1)
    assert abs((lamp.published or 0) - time.time()) < 60


async def test_a_message_that_looks_like_a_status_is_a_message(server: Server) -> None:
    """Anybody may write the header, and nobody shall end a pull by that."""
    await server.publish("", "x", headers={"Status": "409", "Nats-Pending-Messages": "99"})
    async with server.consuming() as session:
        assert bodies(await received(session, 2)) == ["", "x"]


async def test_no_more_come_than_there_is_credit(server: Server) -> None:
    """What is here and not taken counts, too."""
    await server.publish(*numbered(10))
    async with server.consuming() as session:
        first = await received(session, 4)
        assert bodies(first) == numbered(4)
        assert await session.receive(0, 0.3) == []
        assert (await server.info()).num_ack_pending == 4
        await session.settle(done(*first[:3]))
        assert bodies(await received(session, 3)) == ["4", "5", "6"]
        assert (await server.info()).num_ack_pending == 4


async def are_given(server: Server, count: int) -> bool:
    """True if so many messages are given to somebody, and not settled."""
    given: int = (await server.info()).num_ack_pending
    return given == count


async def test_what_is_on_its_way_or_here_counts_as_asked_for(server: Server) -> None:
    """However often it is asked."""
    await server.publish(*numbered(10))
    async with server.consuming() as session:
        for _ in range(5):
            await session._pulls.ask(4)  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.05)
        await soon(lambda: are_given(server, 4))
        await asyncio.sleep(0.2)
        assert await are_given(server, 4)


async def test_only_what_is_settled_is_gone(server: Server) -> None:
    """In any order; the others come again when their lease is over."""
    await server.publish(*numbered(8))
    async with server.consuming(lease=3) as session:
        got = await received(session, 8)
        assert await session.settle(done(got[2], got[0], got[7])) == 0
        again = await received(session, 5)
        assert sorted(bodies(again)) == ["1", "3", "4", "5", "6"]
        assert {each.deliveries for each in again} == {2}
        assert sorted(each.name for each in again)[0] == f"{server.stream}@2"


async def test_a_settlement_has_returned_when_the_server_knows_it(server: Server) -> None:
    """All of it, and not only the last word."""
    await server.publish(*numbered(1500))
    async with server.consuming(credit=2000) as session:
        got = await received(session, 1500)
        await session.settle(done(*got))
        info = await server.info()
        assert (info.num_ack_pending, info.ack_floor.stream_seq) == (0, 1500)


async def test_a_receipt_may_be_settled_twice(server: Server) -> None:
    """As after a lost connection nobody knows what has come; nothing else is settled by that."""
    await server.publish(*numbered(3))
    async with server.consuming() as session:
        got = await received(session, 3)
        await session.settle(done(got[0]))
        assert await session.settle(done(got[0], got[1], got[0])) == 0
        assert await server.undone() == 1


async def test_what_is_given_back_comes_at_once(server: Server) -> None:
    """And not when its lease is over."""
    await server.publish(*numbered(2))
    async with server.consuming(lease=60) as session:
        got = await received(session, 2)
        await session.settle(returned(got[1]))
        (again,) = await received(session, 1)
        assert (again.body, again.deliveries) == (b"1", 2)


async def test_what_is_rejected_is_terminated(server: Server) -> None:
    """It does not come again, and the server tells the reason to whoever listens."""
    await server.publish(*numbered(2))
    async with server.advisories() as told, server.consuming(lease=2, rejects=True) as session:
        bad, good = await received(session, 2)
        await session.settle(Settlement([good.receipt], [], [Rejection(bad.receipt, "no\r\nsuch lamp")]))
        assert await session.receive(1, 3) == []
        await until(lambda: told)
        assert [(each["stream_seq"], each["reason"]) for each in told] == [(1, "no such lamp")]
    assert await server.bodies() == ["0", "1"]


async def test_a_renewed_lease_does_not_end(server: Server) -> None:
    """The others of that time do."""
    await server.publish(*numbered(3))
    async with server.consuming(lease=4) as session:
        got = await received(session, 3)
        for _ in range(5):
            await asyncio.sleep(1)
            assert await session.renew([got[0].receipt, got[2].receipt]) == ()
        assert bodies(await received(session, 1)) == ["1"]
        assert (await server.info()).num_redelivered == 1


async def test_an_interrupted_source_leaves_nothing_behind(server: Server) -> None:
    """What was asked for is asked for no more: what comes later waits for nobody's lease."""
    async with server.consuming(lease=60) as session:
        waiting = asyncio.ensure_future(session.receive(10, 60))
        await asyncio.sleep(0.2)
        session.interrupt()
        async with asyncio.timeout(20):
            assert await waiting == []
        await server.publish("lamp")
        assert await session.receive(10, 60) == []
        async with server.consuming() as other:
            (lamp,) = await received(other, 1)
            assert lamp.deliveries == 1


async def test_what_comes_while_it_is_interrupted_is_returned(server: Server) -> None:
    """A message on its way is in no other place."""
    async with server.consuming(lease=60) as session:
        waiting = asyncio.ensure_future(session.receive(10, 60))
        await asyncio.sleep(0.2)
        publishing = asyncio.ensure_future(server.publish(*numbered(5)))
        session.interrupt()
        got = await waiting
        await publishing
        await soon(lambda: are_given(server, len(got)))


async def test_what_was_not_taken_is_given_back_at_the_end(server: Server) -> None:
    """Its lease would hold it for a minute."""
    await server.publish(*numbered(10))
    async with server.consuming(lease=60) as session:
        await session._pulls.ask(10)  # pyright: ignore[reportPrivateUsage]
        await soon(lambda: are_given(server, 10))
    async with server.consuming(lease=60) as session:
        assert sorted(bodies(await received(session, 10))) == numbered(10)


async def test_what_waited_too_long_is_let_go(server: Server) -> None:
    """Nobody renews its lease, so the server gives it again: with a new receipt, and once."""
    await server.publish("lamp")
    async with server.consuming(lease=2) as session:
        pulls = session._pulls  # pyright: ignore[reportPrivateUsage]
        await pulls.ask(1)
        await soon(lambda: are_given(server, 1))
        await asyncio.sleep(1.5)  # more than half of its lease
        (lamp,) = await received(session, 1)
        assert lamp.deliveries >= 2


async def test_a_receive_returns_nothing_after_its_time(server: Server) -> None:
    """And has what comes later."""
    async with server.consuming() as session:
        assert 0.25 < await quickest(lambda: session.receive(10, 0.3)) < 2
        await asyncio.sleep(0.7)  # what was asked for is over
        await server.publish("lamp")
        assert bodies(await session.receive(10, 30)) == ["lamp"]


async def test_a_receive_does_not_ask_for_each_message_alone(server: Server) -> None:
    """A slow trickle makes few pulls: a consumer takes 512 at a time."""
    async with server.consuming(credit=64) as session:
        for most in range(1, 65):
            await session.receive(most, 0.02 if most % 8 else 0.05)
            assert (await server.info()).num_waiting < 10


async def test_large_messages_come_a_few_at_a_time(server: Server) -> None:
    """A pull ends at 8 MiB, whatever it has asked for, and the next one begins."""
    await server.make("large", max_msgs=100)
    large = Server(server.url, "large")
    async with large:
        await large.publish(*("x" * 900_000 for _ in range(30)))
        async with large.consuming(credit=1000) as session:
            first = await session.receive(1000, 30)
            await asyncio.sleep(1)
            assert (await large.info()).num_ack_pending < 15
            assert len(first) + len(await received(session, 30 - len(first))) == 30


async def test_the_lag_is_what_is_not_settled(server: Server) -> None:
    """Here, or in the stream; nothing when all is done."""
    await server.publish(*numbered(10))
    async with server.consuming() as session:
        got = await received(session, 4)
        assert await session.lag() == {server.stream: 10}
        await session.settle(done(*got, *await received(session, 6)))
        assert await session.lag() == {server.stream: 0}


async def test_two_sessions_share_a_consumer(server: Server) -> None:
    """And another consumer has all of them again."""
    await server.publish(*numbered(20))
    async with server.consuming() as one, server.consuming() as two:
        first, second = await received(one, 10), await received(two, 10)
        assert sorted(bodies(first) + bodies(second)) == sorted(numbered(20))
    async with server.consuming(consumer="another") as session:
        assert bodies(await received(session, 20)) == numbered(20)


async def test_a_new_consumer_begins_where_it_is_told(server: Server) -> None:
    """With what is there, or with what comes; and one that is there goes on."""
    await server.publish("old")
    async with server.consuming(start="new") as session:
        await server.publish("new", "newer")
        assert bodies(await session.receive(1, 30)) == ["new"]
    async with server.consuming(start="new", lease=30) as session:
        assert bodies(await received(session, 1)) == ["newer"]


@pytest.mark.parametrize("subjects", [["{}.a"], ["{}.a", "{}.b"]])
async def test_some_subjects_of_a_stream(server: Server, subjects: list[str]) -> None:
    """One, or more."""
    for name in "abc":
        await server.publish(name, subject=f"{server.stream}.{name}")
    wanted = [each.format(server.stream) for each in subjects]
    async with server.consuming(subjects=wanted) as session:
        assert bodies(await received(session, len(subjects))) == ["a", "b"][: len(subjects)]
        assert await session.receive(1, 0.3) == []
    async with server.consuming(subjects=wanted):
        pass
    with pytest.raises(BrokerRefused, match="gives the subjects"):
        async with server.consuming():
            pass


async def test_a_stream_is_made_if_that_is_wanted(server: Server) -> None:
    """And left as it is if it is there."""
    made = Server(server.url, "made")
    for _ in range(2):
        async with made.consuming(create=["made.*"]):
            pass
    assert (await server.js.stream_info("made")).config.subjects == ["made.*"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"deliver_subject": "to.me"}, "pushes"),
        ({"ack_policy": "all"}, "ack policy 'all'"),
        ({"ack_wait": 5.0}, "gives a message away after 5 s"),
        ({"max_deliver": 5, "backoff": [1.0, 60.0]}, "gives a message away after 1 s"),
    ],
)
async def test_a_consumer_that_would_lose_or_double_is_refused(
    server: Server, options: dict[str, object], why: str
) -> None:
    """With the reason."""
    await server.consumer(**options)
    with pytest.raises(BrokerRefused, match=why):
        async with server.consuming():
            pass


async def test_a_consumer_with_limits_is_warned_of(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """The server forgets a message that was delivered too often, and holds back too many."""
    await server.consumer(ack_wait=60.0, max_deliver=3, max_ack_pending=10)
    async with server.consuming():
        pass
    assert "delivers a message 3 times at most" in caplog.text
    assert "max_ack_pending 10" in caplog.text


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
async def test_a_stream_that_deletes_what_is_terminated_keeps_no_dead_letters(
    server: Server, retention: str
) -> None:
    """They would be lost."""
    await server.js.delete_stream(server.stream)
    await server.make(retention=retention)
    async with server.consuming():
        pass
    with pytest.raises(BrokerRefused, match="would be lost"):
        async with server.consuming(rejects=True):
            pass


@pytest.mark.parametrize("name", ["", "a.b", "a*", "a b"])
async def test_a_name_that_cannot_be_is_refused(server: Server, name: str) -> None:
    """It would ask for something else."""
    with pytest.raises(BrokerRefused, match="cannot be the name of a consumer"):
        async with server.consuming(consumer=name):
            pass


async def test_a_consumer_that_is_deleted_is_a_lost_connection(server: Server) -> None:
    """For who receives and who settles; the next connection makes it anew."""
    await server.publish("lamp")
    async with server.consuming() as session:
        (lamp,) = await received(session, 1)
        waiting = asyncio.ensure_future(session.receive(1, 60))
        await asyncio.sleep(0.2)
        await server.js.delete_consumer(server.stream, CONSUMER)
        async with asyncio.timeout(30):
            # The second one where this process stood still while the pull ended, and then asked again.
            with pytest.raises(ConnectionLost, match=r"409 Consumer Deleted|503 no such consumer"):
                await waiting
        with pytest.raises(ConnectionLost, match="nobody takes acks"):
            await session.settle(done(lamp))
    async with server.consuming() as session:
        assert bodies(await received(session, 1)) == ["lamp"]


async def test_a_stream_that_is_deleted_is_refused_the_next_time(server: Server) -> None:
    """By its name."""
    async with server.consuming() as session:
        await server.js.delete_stream(server.stream)
        with pytest.raises(ConnectionLost, match=r"^nats://\S+: 503 no such consumer$"):
            await session.receive(1, 30)
    with pytest.raises(BrokerRefused, match=f"there is no stream '{server.stream}'"):
        async with server.consuming():
            pass
    await server.make()


async def test_a_reset_is_a_lost_connection(server: Server, proxy: Proxy) -> None:
    """For all who wait. A receipt is good at the next connection, too."""
    await server.publish(*numbered(3))
    url = through(server.url, proxy.port)
    async with server.consuming(url=url, lease=60) as session:
        got = await received(session, 3)
        waiting = [asyncio.ensure_future(session.receive(1, 60)) for _ in range(1)]
        await asyncio.sleep(0.1)
        proxy.reset()
        async with asyncio.timeout(30):
            errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in errors] == [ConnectionLost]
        with pytest.raises(ConnectionLost):
            await session.settle(done(got[0]))
    async with server.consuming(url=url, lease=60) as session:
        await session.settle(done(*got))
        assert await server.undone() == 0


async def test_a_black_hole_is_a_lost_connection(server: Server, proxy: Proxy) -> None:
    """By the pings that nobody answers; and it can be closed."""
    await server.publish("lamp")
    async with asyncio.timeout(60), server.consuming(url=through(server.url, proxy.port)) as session:
        (lamp,) = await received(session, 1)
        proxy.swallow()
        waiting = [session.receive(1, 60), session.settle(done(lamp)), session.lag(), session.renew(["x"])]
        errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionLost] * 4


async def test_a_pull_that_nobody_answers_is_a_lost_connection(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even while pings are answered: a server that has forgotten it says nothing for ever."""
    monkeypatch.setattr("stormlet.connect.nats.pulling.LATE", 0.3)
    await server.client.subscribe("silence")
    await server.client.flush()
    async with server.consuming() as session:
        pulls = session._pulls  # pyright: ignore[reportPrivateUsage]
        pulls._subject = "silence"  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ConnectionLost, match="does not answer a pull"):
            await session.receive(1, 30)


async def test_a_server_that_is_killed_is_a_lost_connection(server: Server, broker: Nats) -> None:
    """When it is there again, so are all messages that were not settled, and old receipts are good."""
    await server.publish(*numbered(20))
    async with server.consuming(lease=2) as session:
        got = await received(session, 20)
        await session.settle(done(*got[:10]))
        await asyncio.to_thread(broker.kill)
        with pytest.raises(ConnectionLost):
            await session.receive(1, 60)
        with pytest.raises(ConnectionLost):
            async with server.consuming():
                pass
    await asyncio.to_thread(broker.start)
    async with server.consuming(lease=2) as session:
        await session.settle(done(*got[10:15]))
        again = set[str]()

        async def are_all_there() -> bool:
            again.update(bodies(await session.receive(20, 1)))
            return again >= set(numbered(20)[15:])

        await soon(are_all_there)


async def test_deliveries_that_a_killed_server_has_forgotten_are_given_again(
    server: Server, broker: Nats
) -> None:
    """It does not answer their acks, which would look like a connection that is lost again and again."""
    await server.publish(*numbered(500))
    async with server.consuming(lease=2) as session:
        for _ in range(45):  # while it is at work it writes what it has delivered only now and then
            got = await received(session, 10)
            await session.settle(done(*got))
        got = await received(session, 50)
        await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)
    async with server.consuming(lease=2) as session:
        await session.settle(done(*got))
        await session.renew([got[-1].receipt])
        async with Server(server.url, server.stream) as meanwhile:

            async def are_all_done() -> bool:
                await session.settle(done(*await session.receive(100, 0.5)))
                return not await meanwhile.undone()

            await soon(are_all_done)


async def test_a_reason_is_one_line(server: Server) -> None:
    """However long it is, and whatever is in it."""
    await server.publish("lamp")
    async with server.advisories() as told, server.consuming(rejects=True) as session:
        (lamp,) = await received(session, 1)
        await session.settle(rejected(lamp, "né\n" * 10_000))
        await until(lambda: told)
    assert json.dumps(told[0]["reason"]).count("n\\u00e9") > 100
