"""What a source tells its broker, and when: fronts, receipts, leases, credit (law R1 to R5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker
from stormlet.testing.brokers.logs import Log
from tests.connect.runs import Consumer, balanced, connection, quick


def stuck_at(body: bytes, gate: asyncio.Event) -> Callable[[bytes], Awaitable[None]]:
    """Work that waits at one message."""

    async def work(given: bytes) -> None:
        if given == body:
            await gate.wait()

    return work


def log_of(consumer: Consumer) -> Log:
    assert isinstance(consumer.place, Log)
    return consumer.place


@pytest.mark.simulated_time
async def test_R1_no_commit_goes_past_an_open_message(sim: Simulation) -> None:
    """The others go on, and the front waits, over gaps too."""
    gate = asyncio.Event()
    consumer = Consumer(Broker("kafka"), stuck_at(b"1", gate), message_timeout=None)
    for body in (b"0", b"1", b"2"):
        log_of(consumer).publish(body, key=b"\0", gap=5)
    async with consumer.run():
        await sim.advance(seconds=5)
        assert (dict(log_of(consumer).committed), consumer.processed.total()) == ({"orders[0]": 5}, 2)
        gate.set()
        await sim.advance(seconds=5)
        assert log_of(consumer).committed == {"orders[0]": 17}


@pytest.mark.simulated_time
async def test_R1_one_open_message_pauses_its_partition_alone(sim: Simulation) -> None:
    """Behind it no more than the bound are delivered, and all of the other partitions."""
    gate = asyncio.Event()
    settings = {"max_uncommitted": 10}
    consumer = Consumer(Broker("kafka"), stuck_at(b"0", gate), settings=settings, message_timeout=None)
    for number in range(400):
        consumer.place.publish(b"%d" % number)
    async with consumer.run():
        await sim.advance(seconds=60)
        assert 300 < consumer.processed.total() <= 330
        gate.set()
        await consumer.until_empty()
    assert consumer.processed.total() == 400


@pytest.mark.simulated_time
async def test_R1_a_commit_that_failed_is_due_again(sim: Simulation) -> None:
    """As in a rebalance, which refuses it."""
    consumer = Consumer(Broker("kafka"), quick)
    bodies = consumer.publish(8)
    async with consumer.run():
        await sim.settled()
        log_of(consumer).rebalancing = True
        await sim.advance(seconds=5)
        assert (consumer.processed.total(), log_of(consumer).commits) == (8, [])
        log_of(consumer).rebalancing = False
        await sim.advance(seconds=5)
    assert log_of(consumer).acked == bodies


@pytest.mark.simulated_time
async def test_R2_a_partition_is_drained_before_it_is_given_away(sim: Simulation) -> None:
    """What was begun is finished and committed by its owner, and not done twice."""

    async def slow(body: bytes) -> None:
        await asyncio.sleep(3)

    consumer = Consumer(Broker("kafka"), slow, parallelism=2)
    bodies = consumer.publish(80)
    async with consumer.run() as running:
        for _ in range(5):
            await sim.advance(seconds=4)
            await consumer.broker.rebalance()
        await consumer.until_empty()
        assert balanced(running)
    consumer.check(bodies)
    assert set(consumer.processed.values()) == {1}


@pytest.mark.simulated_time
async def test_R2_what_does_not_end_in_time_is_withdrawn(sim: Simulation) -> None:
    """Its tree goes on, the next owner has the message again, and the late ack commits nothing."""
    gate = asyncio.Event()
    settings = {"revoke_timeout": 2.0}
    consumer = Consumer(
        Broker("kafka"), stuck_at(b"0000", gate), parallelism=2, settings=settings, message_timeout=None
    )
    bodies = consumer.publish(8)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        await consumer.broker.rebalance()
        await sim.advance(seconds=1)
        assert [each.withdrawn for each in running.health().connections.values()].count(1) == 1
        gate.set()
        await consumer.until_empty()
        assert balanced(running)
    consumer.check(bodies)
    assert consumer.processed[b"0000"] == 2


@pytest.mark.simulated_time
async def test_R2_a_partition_that_is_lost_is_fenced_at_once(sim: Simulation) -> None:
    """Nothing of it is waited for, and nothing committed."""
    gate = asyncio.Event()
    consumer = Consumer(Broker("kafka"), stuck_at(b"0000", gate), message_timeout=None)
    bodies = consumer.publish(4)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        consumer.broker.take_away()
        await sim.advance(seconds=1)
        assert connection(running).withdrawn == 1
        gate.set()
        await consumer.until_empty()
    consumer.check(bodies)


@pytest.mark.simulated_time
async def test_R2_a_commit_under_way_of_a_partition_that_is_lost_is_not_made(sim: Simulation) -> None:
    """It would undo what the next owner has committed."""
    consumer = Consumer(Broker("kafka", latency=1.0), quick, settings={"settle_every": 0.0})
    bodies = consumer.publish(4)
    async with consumer.run():
        await sim.advance(seconds=1.3)  # a second to read, and half a one until the broker has the commit
        assert (consumer.processed.total(), log_of(consumer).commits) == (4, [])
        consumer.broker.take_away()
        await sim.advance(seconds=0.8)
        assert log_of(consumer).commits == []
        await consumer.until_empty()
    consumer.check(bodies)


@pytest.mark.simulated_time
async def test_R2_what_is_on_its_way_of_a_partition_that_is_lost_is_not_begun(sim: Simulation) -> None:
    """The next owner alone has it."""
    consumer = Consumer(Broker("kafka", latency=1.0), quick)
    bodies = consumer.publish(4)
    async with consumer.run() as running:
        await sim.advance(seconds=0.5)
        assert (consumer.processed.total(), consumer.place.deliveries) == (0, 4)
        consumer.broker.take_away()
        await consumer.until_empty()
        assert connection(running).stale == 4
    assert consumer.processed == dict.fromkeys(bodies, 1)
    consumer.check(bodies)


@pytest.mark.simulated_time
async def test_R3_an_ack_of_an_earlier_connection_is_not_sent(sim: Simulation) -> None:
    """Tags begin anew, so that it would ack another message: here it is withdrawn, and comes again."""
    gate = asyncio.Event()
    consumer = Consumer(Broker("rabbitmq-4.0"), stuck_at(b"0000", gate), message_timeout=None)
    bodies = consumer.publish(5)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        consumer.broker.cut()
        await sim.advance(seconds=5)
        gate.set()
        await consumer.until_empty()
        assert running.statistics().components["orders"].withdrawn == 1
        assert balanced(running)
    consumer.check(bodies)
    assert (consumer.processed[b"0000"], sorted(consumer.place.acked)) == (2, bodies)


@pytest.mark.simulated_time
async def test_R3_a_message_under_way_adopts_its_redelivery(sim: Simulation) -> None:
    """It is processed once, and settled by the receipt that counts."""
    gate = asyncio.Event()
    consumer = Consumer(Broker("redis-7"), stuck_at(b"0000", gate), message_timeout=None)
    bodies = consumer.publish(3)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        consumer.broker.deliver_twice()
        await sim.advance(seconds=5)
        assert connection(running).redelivered == 1
        gate.set()
        await consumer.until_empty()
    assert (sorted(consumer.place.acked), set(consumer.processed.values())) == (bodies, {1})


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ["rabbitmq-4.0", "kestrel", "kafka", "jetstream", "sqs"])
async def test_R3_an_outcome_of_a_dead_instance_settles_no_other_message(
    profile: str, sim: Simulation
) -> None:
    """Although the next instance has as many under way, which have no names, or the same."""
    gate, begun = asyncio.Event(), list[bytes]()

    async def work(body: bytes) -> None:
        begun.append(body)
        await (gate.wait() if len(begun) <= 3 else asyncio.Event().wait())

    consumer = Consumer(Broker(profile), work, message_timeout=None, drain_timeout=1.0)
    bodies = consumer.publish(3)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        running.kill("orders")
        await sim.advance(seconds=60)
        assert len(begun) == 6
        gate.set()
        await sim.advance(seconds=5)
        assert consumer.processed == dict.fromkeys(bodies, 1)
        assert (connection(running).settled, consumer.place.left) == (0, bodies)


@pytest.mark.simulated_time
async def test_R4_a_tree_may_take_longer_than_its_lease(sim: Simulation) -> None:
    """It is renewed, and not delivered again."""

    async def slow(body: bytes) -> None:
        await asyncio.sleep(200)

    consumer = Consumer(Broker("jetstream"), slow, message_timeout=None)
    consumer.publish(3)
    async with consumer.run() as running:
        await consumer.until_empty()
        assert connection(running).renewals >= 3 * 200 // 10 - 3
    assert consumer.processed.total() == 3


@pytest.mark.simulated_time
async def test_R4_a_renewal_that_could_not_be_asked_for_is_made_up_for(sim: Simulation) -> None:
    """When the broker is there again: it is away each time that one is due."""
    consumer = Consumer(Broker("jetstream"), stuck_at(b"0000", gate := asyncio.Event()), message_timeout=None)
    consumer.publish(1)
    async with consumer.run() as running:
        await sim.advance(seconds=9)
        for _ in range(8):
            consumer.broker.restart(2)
            await sim.advance(seconds=10)
        gate.set()
        await consumer.until_empty()
        assert connection(running).withdrawn == 0
    assert consumer.place.deliveries == 1


@pytest.mark.simulated_time
async def test_R4_replays_stop_when_the_lease_is_lost(sim: Simulation) -> None:
    """Somebody else has the message, and would bury it a second time."""

    async def fail(body: bytes) -> None:
        raise ValueError(body)

    consumer = Consumer(Broker("sqs"), fail, replay_delay=30.0, max_attempts=4)
    consumer.publish(1)
    async with consumer.run() as running:
        await sim.advance(seconds=5)
        consumer.broker.end_leases()
        await sim.advance(seconds=15)
        counts = running.statistics().components["orders"]
        assert (counts.withdrawn, counts.replayed) == (
            0,
            0,
        )  # it came again while it was under way, and was adopted
        consumer.broker.restart(60)
        await sim.advance(seconds=50)
        counts = running.statistics().components["orders"]
        assert (counts.withdrawn, counts.dead_letters) == (1, 0)


@pytest.mark.simulated_time
async def test_R4_a_message_is_not_held_for_ever(sim: Simulation) -> None:
    """After ``max_hold`` its lease is not renewed, and it is withdrawn."""
    gate = asyncio.Event()
    settings = {"max_hold": 100.0}
    consumer = Consumer(Broker("jetstream"), stuck_at(b"0000", gate), settings=settings, message_timeout=None)
    consumer.publish(1)
    async with consumer.run() as running:
        await sim.advance(seconds=112)
        assert connection(running).withdrawn == 1
        gate.set()
        await sim.advance(seconds=60)
    assert consumer.place.left == []


@pytest.mark.simulated_time
async def test_R4_a_message_is_given_back_before_its_connection_is_closed(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """It alone, once; the tree of the first delivery goes on, and says nothing any more."""
    gate = asyncio.Event()
    consumer = Consumer(Broker("rabbitmq-4.0"), stuck_at(b"0001", gate), message_timeout=None)
    consumer.publish(4)
    async with consumer.run() as running:
        await sim.advance(minutes=23)
        assert consumer.place.deliveries == 4
        await sim.advance(minutes=2)
        assert (consumer.place.deliveries, connection(running).withdrawn) == (5, 1)
        assert connection(running).reconnects == 0
        gate.set()
        await consumer.until_empty()
        assert balanced(running)
    assert consumer.processed[b"0001"] == 2
    assert consumer.broker.violations == []
    assert "1 message has been under way for 1440 s; given back, to come again" in caplog.text


@pytest.mark.simulated_time
async def test_R4_what_nobody_has_begun_is_given_back_too(sim: Simulation) -> None:
    """A message that waits behind stuck ones is open for the broker as well."""
    gate = asyncio.Event()

    async def wait(body: bytes) -> None:
        await gate.wait()

    consumer = Consumer(Broker("rabbitmq-4.0"), wait, message_timeout=None, concurrency=1)
    bodies = consumer.publish(10)
    async with consumer.run() as running:
        await sim.advance(minutes=25)
        assert connection(running).withdrawn == 10
        gate.set()
        await consumer.until_empty()
    consumer.check(bodies)


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ["rabbitmq-4.0", "jetstream", "kafka"])
async def test_R5_no_more_is_held_than_may_be_pending(profile: str, sim: Simulation) -> None:
    """Of a hundred messages 20 are taken while nothing is done."""
    gate = asyncio.Event()

    async def wait(body: bytes) -> None:
        await gate.wait()

    consumer = Consumer(Broker(profile), wait, message_timeout=None)
    bodies = consumer.publish(100)
    async with consumer.run():
        await sim.advance(seconds=30)
        assert consumer.place.deliveries == 20
        gate.set()
        await consumer.until_empty()
    consumer.check(bodies)


@pytest.mark.simulated_time
async def test_R5_the_buffer_counts_bytes(sim: Simulation) -> None:
    """One message of the size of the buffer is enough while nothing is emitted."""
    settings = {"max_buffer_bytes": 100}
    consumer = Consumer(Broker("sqs"), quick, settings=settings)
    for _ in range(10):
        consumer.place.publish(b"x" * 100)
    async with consumer.run() as running:
        running.deactivate()
        await sim.advance(seconds=1)
        assert connection(running).buffered <= 10
        running.activate()
        await consumer.until_empty()
    assert consumer.processed.total() == 10


@pytest.mark.simulated_time
async def test_R5_outcomes_do_not_cancel_a_read(sim: Simulation) -> None:
    """Each of 200 messages comes while outcomes of others do, and none is lost on its way."""
    consumer = Consumer(Broker("redis-7", latency=0.5), quick)
    async with consumer.run():
        for number in range(200):
            consumer.place.publish(b"%d" % number)
            await asyncio.sleep(0.05)
        await sim.advance(seconds=20)
        assert (consumer.processed.total(), consumer.place.deliveries) == (200, 200)
