"""The contract of a source's session with Redis Streams, against a real Valkey; each test is a trap of the protocol."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from stormlet.connect.session import Settlement
from stormlet.errors import ConnectionLost
from tests.brokers.processes import Broker
from tests.brokers.proxy import Proxy
from tests.connect.redis.streams import LEASE, Task, all_of, bodies, done, place
from tests.connect.sessions import quickest, soon

pytestmark = pytest.mark.asyncio


async def test_entries_come_in_order_and_each_is_acked_once(valkey: Broker) -> None:
    """What is acked twice is refused the second time."""
    async with place(valkey) as at, at.session() as session:
        await at.add("a", "b", "c")
        got = await session.receive(10, 20)
        assert bodies(got) == ["a", "b", "c"]
        assert await session.settle(done(got)) == 0
        assert await session.settle(done(got)) == 3
        assert await at.pending() == {}


async def test_no_more_come_than_were_asked_for(valkey: Broker) -> None:
    """The rest stays in the stream."""
    async with place(valkey) as at, at.session() as session:
        await at.add("a", "b", "c")
        assert bodies(await session.receive(2, 20)) == ["a", "b"]
        assert len(await at.pending()) == 2


async def test_a_delivery_has_a_name_a_time_and_its_other_fields(valkey: Broker) -> None:
    """The name is the same whenever it is delivered."""
    async with place(valkey) as at, at.session() as session:
        id = (await at.client.xadd(at.stream, {"body": "a", "key": "k", "trace": "t"})).decode()
        (got,) = await session.receive(10, 20)
        assert (got.name, got.key, got.headers) == (f"{at.stream}@{id}", b"k", {"key": b"k", "trace": b"t"})
        assert got.published == int(id.partition("-")[0]) / 1000


async def test_an_entry_without_a_body_is_an_object_of_its_fields(valkey: Broker) -> None:
    """As those who write to streams without stormlet have them."""
    async with place(valkey) as at, at.session() as session:
        await at.client.xadd(at.stream, {"shop": "x", "price": "3"})
        assert bodies(await session.receive(10, 20)) == ['{"shop":"x","price":"3"}']


async def test_a_read_waits_no_longer_than_it_is_asked_to(valkey: Broker) -> None:
    """It returns nothing then."""
    async with place(valkey) as at, at.session(lease=60) as session:
        assert 0.3 <= await quickest(lambda: session.receive(10, 0.3)) < 1


async def test_an_interrupted_read_returns_at_once(valkey: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """So do all that come later."""
    for module in ("session", "client"):  # after which it would return by itself
        monkeypatch.setattr(f"stormlet.connect.redis.{module}.BEAT", 60.0)
    async with place(valkey) as at, at.session(lease=60) as session:
        reading = asyncio.create_task(session.receive(10, 30))
        await asyncio.sleep(0.1)
        session.interrupt()
        async with asyncio.timeout(20):
            assert await reading == []
            assert await session.receive(10, 30) == []


async def test_a_consumer_that_starts_again_gets_its_own_first(valkey: Broker) -> None:
    """What was not acked comes before what is new, with the count of its deliveries."""
    async with place(valkey) as at:
        await at.add("a", "b", "c")
        async with at.session() as session:
            await session.settle(done((await session.receive(2, 20))[:1]))
        async with at.session(lease=60) as session:
            got = await all_of(session, 2)
        assert [(each.body, each.deliveries) for each in got] == [(b"b", 2), (b"c", 1)]


async def test_its_own_come_in_portions(valkey: Broker) -> None:
    """Each of them once, though none is acked meanwhile."""
    async with place(valkey) as at:
        await at.add(*"abcde")
        async with at.session() as session:
            await session.receive(10, 20)
        async with at.session(lease=60) as session:
            assert [bodies(await session.receive(2, 20)) for _ in range(3)] == [["a", "b"], ["c", "d"], ["e"]]
            assert await session.receive(2, 0.1) == []


async def test_the_entries_of_a_dead_consumer_come_when_its_lease_has_run_out(valkey: Broker) -> None:
    """Not before, and counted as delivered again."""
    async with place(valkey) as at, at.session(Task("alive")) as session:
        await at.add("a")
        begun = monotonic()
        await at.client.xreadgroup("g", "dead", {at.stream: ">"})
        (got,) = await session.receive(10, 20)
        assert monotonic() - begun >= LEASE
        assert (got.body, got.deliveries) == (b"a", 2)


async def test_a_renewed_lease_is_kept_and_counts_as_no_delivery(valkey: Broker) -> None:
    """Nobody else gets the entry meanwhile."""
    lease = {"lease": 4.0}
    async with (
        place(valkey) as at,
        at.session(Task("a"), **lease) as holder,
        at.session(Task("b"), **lease) as other,
    ):
        await at.add("a")
        (got,) = await holder.receive(10, 20)
        for _ in range(6):
            await asyncio.sleep(1)
            assert await holder.renew([got.receipt]) == []
            assert await other.receive(10, 0.01) == []
        assert await at.pending() == {got.receipt: ("a", 1)}


async def test_a_lease_that_another_has_is_lost_and_stays_with_it(valkey: Broker) -> None:
    """A plain XCLAIM would take it away from its new owner."""
    async with place(valkey) as at, at.session(Task("slow")) as slow, at.session(Task("other")) as other:
        await at.add("a", "b")
        first, second = await slow.receive(10, 20)
        await slow.settle(done([second]))
        assert bodies(await other.receive(10, 20)) == ["a"]
        assert await slow.renew([first.receipt, second.receipt]) == [first.receipt, second.receipt]
        assert (await at.pending())[first.receipt][0] == "other"


async def test_what_is_given_back_comes_to_another_without_a_penalty(valkey: Broker) -> None:
    """At once, and the count of deliveries is as if it had not been here."""
    async with place(valkey) as at, at.session(Task("a"), lease=60) as giver:
        await at.add("a")
        (got,) = await giver.receive(10, 20)
        await giver.settle(Settlement(returned=[got.receipt]))
        async with at.session(Task("b"), lease=60) as other:
            (again,) = await other.receive(10, 20)
        assert (again.body, again.deliveries) == (b"a", 1)


async def test_two_runs_on_one_host_have_different_names(valkey: Broker) -> None:
    """So that the second does not take for its own what the first is at work on."""
    async with place(valkey) as at, at.session(Task()) as first:
        await at.add("a", "b")
        assert bodies(await first.receive(1, 20)) == ["a"]
        async with at.session(Task(), lease=60) as second, at.session(Task(), lease=60):
            assert bodies(await second.receive(10, 20)) == ["b"]
            names = {consumer for consumer, _ in (await at.pending()).values()}
            assert names == {"here-orders-0", "here-orders-0.2"}


async def test_a_connection_that_was_lost_unnoticed_gets_nothing_more(valkey: Broker) -> None:
    """The server would go on to give entries to a read whose client has gone, for as long as that waits."""
    with Proxy(valkey.port) as proxy:
        async with place(valkey) as at:
            task, url = Task(), f"redis://127.0.0.1:{proxy.port}/0"
            async with at.session(task, url=url, lease=60) as old:
                reading = asyncio.create_task(old.receive(10, 30))
                await asyncio.sleep(0.1)
                proxy.swallow()
                async with at.session(task, lease=60) as new:
                    await at.add("a")
                    assert bodies(await new.receive(10, 20)) == ["a"]
                proxy.pass_on()
                with pytest.raises(ConnectionLost):
                    await reading


async def test_a_cancelled_read_loses_nothing(valkey: Broker) -> None:
    """What was delivered to it comes to the next one, long before its lease runs out."""
    async with place(valkey) as at, at.session(lease=60) as session:
        for body in "abcde":
            reading = asyncio.create_task(session.receive(1, 30))
            await asyncio.sleep(0.02)
            adding = asyncio.create_task(at.add(body))
            await asyncio.sleep(0.0005)
            reading.cancel()
            await asyncio.wait([reading, adding])
        reading = asyncio.create_task(session.receive(1, 30))
        await asyncio.sleep(0.02)
        reading.cancel()  # this one in any case, the others perhaps when they had what they wanted
        await asyncio.wait([reading])
        with pytest.raises(ConnectionLost):
            await session.receive(10, 20)
        async with at.session(lease=60) as session:
            assert sorted(bodies(await all_of(session, 5))) == list("abcde")


async def test_entries_that_were_deleted_are_logged_and_forgotten(
    valkey: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Else they would be pending for ever."""
    async with place(valkey) as at:
        ids = await at.add("a", "b")
        async with at.session() as session:
            await session.receive(10, 20)
        await at.client.xdel(at.stream, ids[0])
        async with at.session(lease=60) as session:
            assert bodies(await all_of(session, 1)) == ["b"]
        assert list(await at.pending()) == [ids[1]]
        assert "1 entry was deleted from" in caplog.text


async def test_entries_of_the_dead_that_were_deleted_are_logged(
    valkey: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """XAUTOCLAIM takes them from the list of the dead consumer, and names them."""
    async with place(valkey) as at, at.session() as session:
        (id,) = await at.add("a")
        await at.client.xreadgroup("g", "dead", {at.stream: ">"})
        await at.client.xdel(at.stream, id)

        async def is_forgotten() -> bool:
            assert await session.receive(10, 0.2) == []
            return await at.pending() == {}

        await soon(is_forgotten)
        assert "1 entry was deleted from" in caplog.text


async def test_an_ack_leaves_the_entry_unless_acked_ones_are_trimmed(valkey: Broker) -> None:
    """What another group has not read stays; trimming is by blocks of a hundred."""
    async with place(valkey) as at, at.session(trim="acked") as session:
        await at.add(*map(str, range(500)))
        await at.client.xgroup_create(at.stream, "slow", "0")
        ((_, read),) = await at.client.xreadgroup("slow", "c", {at.stream: ">"}, count=300)
        await at.client.xack(at.stream, "slow", *(id for id, _ in read[:200]))
        await session.settle(done(await all_of(session, 500)))
        assert 300 <= await at.client.xlen(at.stream) <= 400


async def test_lag_counts_what_is_not_acked(valkey: Broker) -> None:
    """Pending ones too; and it is 0 when all is done."""
    async with place(valkey) as at, at.session() as session:
        await at.add("a", "b", "c")
        got = await session.receive(2, 20)
        assert await session.lag() == {at.stream: 3}
        await session.settle(done(got))
        assert await session.lag() == {at.stream: 1}


async def test_a_consumer_leaves_the_group_if_it_has_nothing(valkey: Broker) -> None:
    """With one that has entries these would be lost."""
    async with place(valkey) as at:
        await at.add("a")
        async with at.session(Task("idle"), lease=60), at.session(Task("busy"), lease=60) as busy:
            await busy.receive(10, 20)
        assert await at.consumers() == ["busy"]


async def test_a_reset_connection_is_lost_and_its_entries_come_again(valkey: Broker) -> None:
    """redis-py would repeat the read, and forget what the first one was given."""
    with Proxy(valkey.port) as proxy:
        async with place(valkey) as at:
            task, url = Task(), f"redis://127.0.0.1:{proxy.port}/0"
            async with at.session(task, url=url, lease=60) as session:
                await at.add("a")
                await session.receive(10, 20)
                proxy.reset()
                with pytest.raises(ConnectionLost):
                    await session.receive(10, 20)
            async with at.session(task, url=url, lease=60) as session:
                assert bodies(await session.receive(10, 20)) == ["a"]


async def test_a_black_hole_is_a_lost_connection(valkey: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the beat of reads and the time for an answer."""
    monkeypatch.setattr("stormlet.connect.redis.session.BEAT", 1.0)
    monkeypatch.setattr("stormlet.connect.redis.client.BEAT", 1.0)
    monkeypatch.setattr("stormlet.connect.redis.client.ANSWERS_WITHIN", 3.0)
    with Proxy(valkey.port) as proxy:
        async with (
            place(valkey) as at,
            at.session(url=f"redis://127.0.0.1:{proxy.port}/0", lease=60) as session,
        ):
            proxy.swallow()
            with pytest.raises(ConnectionLost):
                await asyncio.wait_for(session.receive(10, 60), 30)
            with pytest.raises(ConnectionLost):
                await asyncio.wait_for(session.settle(Settlement(done=["1-1"])), 30)
            proxy.pass_on()


async def test_a_group_that_is_gone_is_a_lost_connection(valkey: Broker) -> None:
    """Another connection makes it anew, and reads all that is in the stream."""
    async with place(valkey) as at:
        async with at.session() as session:
            await at.client.delete(at.stream)
            with pytest.raises(ConnectionLost, match="NOGROUP"):
                await session.receive(10, 20)
        await at.add("a")
        async with at.session() as session:
            assert bodies(await session.receive(10, 20)) == ["a"]
