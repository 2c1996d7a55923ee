"""The contract of a source's session, against the real Kafka, and librdkafka's mock as far as that does the same: a
member of a group gets nothing there for a minute after another has come or gone."""

from __future__ import annotations

import asyncio

import pytest

from stormlet.connect.session import Settlement
from stormlet.core.settlement.prefix import Front
from stormlet.errors import BrokerRefused, ConnectionLost, NotSettled
from tests.connect.kafka.cluster import Cluster, Owner, connected, done, read

pytestmark = pytest.mark.asyncio


async def test_messages_come_with_their_names(cluster: Cluster) -> None:
    """A message's name is the same whenever it is delivered."""
    topic = cluster.topic()
    cluster.fill(topic, range(4), partitions=2)
    async with connected(cluster, topic) as session:
        found = await read(session, 4)
    assert {(each.name, each.body) for each in found} == {
        (f"{topic}[0]@0", b"0"),
        (f"{topic}[1]@0", b"1"),
        (f"{topic}[0]@1", b"2"),
        (f"{topic}[1]@1", b"3"),
    }


async def test_a_group_goes_on_behind_what_it_has_committed(real: Cluster) -> None:
    """What was read and not settled comes again."""
    topic = real.topic()
    real.fill(topic, range(5))
    async with connected(real, topic) as session:
        found = await read(session, 5)
        await session.settle(done([*found[:3], found[4]]))
    async with connected(real, topic) as session:
        assert [each.body for each in await read(session, 2)] == [b"3", b"4"]


async def test_an_empty_topic_keeps_nobody_waiting(cluster: Cluster) -> None:
    """``receive`` returns after its time, and at once when it is interrupted."""
    async with connected(cluster, cluster.topic()) as session:
        assert await session.receive(10, 0.1) == []
        waiting = asyncio.create_task(session.receive(10, 60.0))
        await asyncio.sleep(0.1)
        session.interrupt()
        async with asyncio.timeout(30):
            assert await waiting == []
            assert await session.receive(10, 60.0) == []


async def test_a_reader_without_room_stays_in_its_group(cluster: Cluster) -> None:
    """It polls on although nobody wants messages, and has lost nothing by pausing."""
    topic = cluster.topic()
    cluster.fill(topic, range(1000))
    owner = Owner()
    quick = {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000}
    async with connected(cluster, topic, owner, client=quick) as session:
        first = await read(session, 10)
        await asyncio.sleep(7)
        rest = await read(session, 990)
        await session.settle(done([*first, *rest]))
    assert [int(each.body) for each in (*first, *rest)] == list(range(1000))
    assert owner.gone == owner.revoked == []


async def test_a_paused_partition_gives_nothing(cluster: Cluster) -> None:
    """The others go on, and when it is resumed nothing is missing."""
    topic = cluster.topic()
    cluster.fill(topic, range(20), partitions=2)
    owner = Owner()
    async with connected(cluster, topic, owner) as session:
        (first,) = await read(session, 1)
        stuck, other = owner.places[f"{topic}[0]"], owner.places[f"{topic}[1]"]
        await session.pause([stuck])
        await asyncio.sleep(0.5)  # while nobody reads, so that all are paused and resumed
        await read(session, 10 - (first.place is other))
        cluster.fill(topic, range(20, 24), partitions=2)
        assert {each.place for each in await read(session, 2)} == {other}
        await session.resume([stuck])
        assert {each.place for each in await read(session, 2)} == {stuck}


async def test_a_partition_is_drained_before_it_is_given_away(real: Cluster) -> None:
    """The other member gets it when its trees are done, and begins behind what was committed then."""
    topic = real.topic()
    real.fill(topic, range(40), partitions=4)
    owner, other = Owner(), Owner()
    async with connected(real, topic, owner) as session:
        found = await read(session, 40)
        owner.drained.clear()
        reading = asyncio.create_task(read(session, 1))
        async with connected(real, topic, other) as second:
            theirs = asyncio.create_task(read(second, 10))
            await owner.asked.wait()
            given = [each for each in found if each.place and each.place.name in owner.revoked]
            with pytest.raises(NotSettled):
                await session.settle(done(given[:3]))
            done(given[3:10])
            assert other.places == {}
            owner.drained.set()
            assert {each.name for each in await theirs} == {each.name for each in given[10:]}
            assert sorted(other.places) == sorted(owner.revoked)
            reading.cancel()


async def test_nothing_of_a_partition_that_was_given_away_is_committed(real: Cluster) -> None:
    """The broker would take it, and undo what its new owner has committed."""
    topic = real.topic()
    real.fill(topic, range(40), partitions=4)
    owner, other = Owner(), Owner()
    async with connected(real, topic, owner) as session:
        await read(session, 40)
        reading = asyncio.create_task(read(session, 1))
        async with connected(real, topic, other) as second:
            await second.settle(done(await read(second, 20)))
            before = real.committed(topic)
            late = [(each, Front(1, 0)) for each in owner.places.values() if each.is_revoked]
            await session.settle(Settlement(fronts=late))
            assert real.committed(topic) == before
            assert sorted(before) == [-1001, -1001, 10, 10]
            reading.cancel()


async def test_the_lag_is_what_is_not_committed(cluster: Cluster) -> None:
    """It is 0 when all is done."""
    topic = cluster.topic()
    cluster.fill(topic, range(10))
    async with connected(cluster, topic) as session:
        found = await read(session, 10)
        assert sum((await session.lag()).values()) == 10
        await session.settle(done(found[:4]))
        assert await session.lag() == {f"{topic}[{number}]": 0 for number in range(4)} | {f"{topic}[0]": 6}
        await session.settle(done(found))
        assert set((await session.lag()).values()) == {0}


async def test_a_group_may_begin_at_the_end(real: Cluster) -> None:
    """What comes between its first assignment and its first commit is not passed over by the next owner."""
    topic = real.topic()
    real.fill(topic, range(5))
    async with connected(real, topic, start="latest") as session:
        while real.committed(topic) != [5, 0, 0, 0]:
            await session.receive(1, 0.1)
    real.fill(topic, ["new"])
    async with connected(real, topic, start="latest") as session:
        assert [each.body for each in await read(session, 1)] == [b"new"]


async def test_a_missing_topic_is_named(cluster: Cluster) -> None:
    """A start that cannot succeed fails at once."""
    with pytest.raises(BrokerRefused, match="no topic 'orders'"):
        async with connected(cluster, "orders"):
            pass


async def test_settings_that_no_broker_takes_are_no_lost_connection(real: Cluster) -> None:
    """To try again would not help."""
    with pytest.raises(BrokerRefused, match="INVALID_SESSION_TIMEOUT"):
        async with connected(real, real.topic(), client={"session.timeout.ms": 1000}) as session:
            await read(session, 1)


async def test_a_broker_that_is_not_there_is_no_refusal() -> None:
    """It may be there soon."""
    with pytest.raises(ConnectionLost, match="Connection refused"):
        async with connected(Cluster("127.0.0.1:9"), "orders"):
            pass
