"""What becomes of messages that fail, of order, connections, secrets and sinks (law R6 to R10)."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from stormlet import DeadLetter, FailureKind, InvalidTopology, Reject, StartFailed, Topology, TopologyCrashed
from stormlet.connect.address import Address, read_address
from stormlet.connect.secrets import Secret, scrubbed
from stormlet.connect.session import (
    DONE,
    ConnectContext,
    Delivery,
    Item,
    Session,
    Settles,
    SinkSession,
    SourceContext,
    Written,
)
from stormlet.errors import BrokerRefused
from stormlet.testing import Simulation
from stormlet.testing.brokers import PROFILES, Broker, TwinSink, TwinSource
from stormlet.testing.brokers.queues import QueueSession
from tests.connect.runs import ALL, KINDS, Consumer, balanced, connection, quick
from tests.helpers import now


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ALL)
async def test_R6_what_is_given_up_is_a_dead_letter_once(profile: str, sim: Simulation) -> None:
    """Of the broker where it has its own, else of the run; and the broker has nothing left."""

    async def work(body: bytes) -> None:
        if body == b"0001":
            raise ValueError(body)
        if body == b"0002":
            raise Reject("never")

    consumer = Consumer(Broker(profile), work)
    consumer.publish(4)
    async with consumer.run() as running:
        await consumer.until_empty()
        assert balanced(running)
    assert consumer.buried == [b"0001", b"0002"]
    own = consumer.broker.profile.capabilities.has_dead_letters
    assert len(consumer.letters) == (0 if own else 2)


class Order(msgspec.Struct):
    shop: str


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
@pytest.mark.parametrize("body", [b"{", b'{"shop": 1}', b'{"shop": "%s"}' % (b"x" * 100)])
async def test_R6_a_body_that_cannot_be_read_is_a_dead_letter_with_its_bytes(
    profile: str, body: bytes, sim: Simulation
) -> None:
    """Others go on."""
    broker = Broker(profile)
    source = TwinSource[Order](broker, "orders", as_=Order, max_message_bytes=50)
    consumer = Consumer(broker, quick, source=source)  # type: ignore[arg-type]
    consumer.place.publish(body)
    consumer.place.publish(b'{"shop": "a"}')
    async with consumer.run():
        await consumer.until_empty()
    assert consumer.buried == [body]
    assert list(consumer.processed) == [b"Order(shop='a')"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ALL)
async def test_R6_a_stop_doubles_nothing(profile: str, sim: Simulation) -> None:
    """What was begun is finished and settled, the rest is given back, and the next run has it once."""
    broker = Broker(profile)
    first = Consumer(broker, quick)
    bodies = first.publish(300)
    async with first.run():
        await sim.advance(seconds=0.05)
    assert 0 < first.processed.total() < 300
    second = Consumer(broker, quick)
    async with second.run():
        await second.until_empty()
    assert first.processed + second.processed == dict.fromkeys(bodies, 1)


RETURNING = [each for each in ALL if PROFILES[each].capabilities.can_return]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", RETURNING)
async def test_R6_what_nobody_has_begun_is_given_back_without_a_penalty(
    profile: str, sim: Simulation
) -> None:
    """One message is under way, and those behind it wait for their key: the next run sees their first delivery."""
    gate = asyncio.Event()
    consumer = Consumer(Broker(profile), lambda _: gate.wait(), settings={"ordered_by": len})
    bodies = consumer.publish(20)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        assert connection(running).buffered == 19
        asyncio.get_running_loop().call_later(1, gate.set)
    queue = consumer.broker.queue("orders")
    assert (queue.acked, queue.left, queue.lent) == (bodies[:1], bodies[1:], {})
    assert {each.deliveries for each in queue.ready} == {0}


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", RETURNING)
async def test_R6_what_has_no_outcome_at_the_end_is_given_back_without_a_penalty(
    profile: str, sim: Simulation
) -> None:
    """It is neither done nor given up, when the drain's time is over."""
    consumer = Consumer(Broker(profile), lambda _: asyncio.Event().wait(), drain_timeout=1.0)
    bodies = consumer.publish(30)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        assert running.statistics().components["orders"].pending == 20
    queue = consumer.broker.queue("orders")
    assert (queue.acked, queue.dead, queue.left, queue.lent) == ([], [], bodies, {})
    assert {each.deliveries for each in queue.ready} == {0}


@pytest.mark.simulated_time
async def test_R6_a_broker_that_cannot_be_told_at_the_end_says_how_many_come_again(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """The end waits for ``closing_timeout`` and no longer."""
    consumer = Consumer(Broker("redis-7"), quick, settings={"closing_timeout": 3.0})
    consumer.publish(5)
    async with consumer.run():
        await asyncio.sleep(0.004)
        consumer.broker.restart(1000)
        before = sim.now
    assert sim.now - before < 5
    assert any("settlements could not be brought" in each.getMessage() for each in caplog.records)


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("drain_timeout", "trees_take", "ends_after"), [(6.0, 2.0, 6.0), (6.0, 60.0, 7.0), (None, 2.0, 12.0)]
)
async def test_R6_the_last_settlement_has_what_the_drain_leaves(
    drain_timeout: float | None, trees_take: float, ends_after: float, sim: Simulation
) -> None:
    """And a second, when its trees have taken all of that; ten if it has no deadline."""

    async def work(body: bytes) -> None:
        await asyncio.sleep(trees_take)

    consumer = Consumer(Broker("redis-7"), work, drain_timeout=drain_timeout, message_timeout=None)
    consumer.publish(5)
    async with consumer.run():
        await sim.advance(seconds=0.5)
        consumer.broker.go_away()
        before = sim.now
    assert sim.now - before == pytest.approx(ends_after, abs=0.6)


@pytest.mark.simulated_time
async def test_R6_a_fault_of_reading_leaves_nothing_untold(sim: Simulation) -> None:
    """The broker is told at once what is done, though the source dies."""
    receive, before = QueueSession.receive, 0.0

    async def once(self: QueueSession, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109
        nonlocal before
        if self.pushed_before:
            await asyncio.sleep(1)
            before = sim.now
            raise RuntimeError("a fault")
        self.pushed_before = True
        return await receive(self, most, timeout)

    consumer = Consumer(Broker("redis-7"), quick, max_restarts=0, settings={"settle_every": 30.0})
    consumer.publish(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueSession, "receive", once)
        patch.setattr(QueueSession, "pushed_before", False, raising=False)
        with pytest.raises(TopologyCrashed, match="a fault"):
            async with consumer.run() as running:
                await running.finished()
    assert sim.now - before < 1
    assert consumer.broker.queue("orders").left == []


@pytest.mark.simulated_time
async def test_R6_a_broker_that_does_not_let_go_is_left(sim: Simulation) -> None:
    """The end does not hang in a client."""

    async def never(self: object) -> None:
        await asyncio.Event().wait()

    consumer = Consumer(Broker("redis-7"), quick)
    consumer.publish(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueSession, "close", never)
        async with consumer.run():
            await consumer.until_empty()
            before = sim.now
    assert sim.now - before < 11


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
async def test_R7_replays_keep_the_order_of_a_key(profile: str, sim: Simulation) -> None:
    """The messages behind a failed one wait for it."""
    done, failed = defaultdict[int, list[bytes]](list), list[bytes]()

    async def work(body: bytes) -> None:
        if body[-1] % 5 == 0 and body not in failed:
            failed.append(body)
            raise ValueError(body)
        await asyncio.sleep(0.1 * (body[-1] % 3))
        done[body[-2] % 2].append(body)

    def key(body: bytes) -> int:
        return body[-2] % 2

    consumer = Consumer(Broker(profile), work, settings={"ordered_by": key})
    for number in range(40):
        consumer.place.publish(b"%04d" % number, key=b"\0")
    async with consumer.run():
        await consumer.until_empty()
    assert len(failed) > 3
    assert [len(each) for each in done.values()] == [20, 20]
    assert all(bodies == sorted(bodies) for bodies in done.values())


@pytest.mark.parametrize("profile", ALL)
def test_R7_several_tasks_are_refused_where_they_could_not_keep_the_order(profile: str) -> None:
    """A broker that is told of each message gives those of one key to all of them."""
    rules = PROFILES[profile].capabilities
    if rules.settles is Settles.PREFIX:  # a partition belongs to one task
        Consumer(Broker(profile), quick, settings={"ordered_by": len}, parallelism=2)
        return
    with pytest.raises(
        InvalidTopology, match=r"^spout 'orders': with parallelism=2 ordered_by= would .*; use parallelism=1$"
    ):
        Consumer(Broker(profile), quick, settings={"ordered_by": len}, parallelism=2)


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ["rabbitmq-4.0", "kafka"])
@pytest.mark.parametrize("loss", ["of the connection", "of the instance"])
async def test_R7_what_is_lost_is_under_way_no_more(profile: str, loss: str, sim: Simulation) -> None:
    """Its tree goes on beside its next delivery and what comes behind that."""
    begun, done = list[bytes](), list[bytes]()

    async def work(body: bytes) -> None:
        begun.append(body)
        await asyncio.sleep(60 if len(begun) == 1 else 0.1)
        done.append(body)

    consumer = Consumer(Broker(profile), work, settings={"ordered_by": len}, message_timeout=None)
    first, second = b"first", b"other"
    for body in (first, second):
        consumer.place.publish(body, key=b"0")
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        assert begun == [first]
        if loss == "of the connection":
            consumer.broker.cut()
        else:
            running.kill("orders")
        await sim.advance(minutes=2)
    assert (begun, done) == ([first, first, second], [first, second, first])


SURVIVING = [each for each in ALL if PROFILES[each].capabilities.receipts_survive]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", SURVIVING)
async def test_R7_a_key_goes_on_when_its_message_has_come_again(profile: str, sim: Simulation) -> None:
    """The one under way has adopted the receipt that counts, and is of the same key."""
    gate, done = asyncio.Event(), list[bytes]()

    async def work(body: bytes) -> None:
        await gate.wait()
        done.append(body)

    consumer = Consumer(Broker(profile), work, settings={"ordered_by": len}, message_timeout=None)
    bodies = consumer.publish(3)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        consumer.broker.deliver_twice()
        await sim.advance(seconds=5)
        assert connection(running).redelivered == 3
        gate.set()
        await consumer.until_empty(60)
    assert done == bodies


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ALL)
async def test_R8_a_lost_connection_is_no_crash(
    profile: str, sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten minutes without the broker: health says so, the log once, no task dies, and all is done afterwards."""
    caplog.set_level(logging.INFO, "stormlet.connect")
    consumer = Consumer(Broker(profile), quick)
    bodies = consumer.publish(100)
    async with consumer.run() as running:
        await asyncio.sleep(0.03)
        consumer.broker.restart(600)
        await sim.advance(minutes=9)
        there = connection(running)
        assert (there.state.value, running.health().ready, there.attempt > 10) == (
            "reconnecting",
            False,
            True,
        )
        await consumer.until_empty()
        assert (running.health().ready, connection(running).reconnects) == (True, 1)
        assert running.statistics().components["orders"].restarts == 0
    consumer.check(bodies)
    assert [each.levelname for each in caplog.records if each.name == "stormlet.connect"] == [
        "WARNING",
        "INFO",
    ]


@pytest.mark.simulated_time
async def test_R8_a_start_without_the_broker_fails(sim: Simulation) -> None:
    """And names it."""
    consumer = Consumer(Broker("rabbitmq-4.0"), quick)
    consumer.broker.missing.append("orders")
    with pytest.raises(StartFailed, match="NOT_FOUND - no queue 'orders'"):
        async with consumer.run():
            pass
    consumer.broker.missing.clear()
    consumer.broker.restart(60)
    with pytest.raises(StartFailed, match=r"twin://broker cannot be reached|connection refused"):
        async with consumer.run():
            pass


@pytest.mark.simulated_time
async def test_R8_a_broker_that_refuses_for_long_crashes_the_topology(sim: Simulation) -> None:
    """A queue that was removed does not come back by itself."""
    consumer = Consumer(Broker("sqs"), quick, settings={"give_up": 60.0})
    with pytest.raises(TopologyCrashed, match="NOT_FOUND"):  # noqa: PT012 - the block is the run
        async with consumer.run() as running:
            consumer.broker.missing.append("orders")
            consumer.broker.cut()
            await sim.advance(seconds=50)
            assert running.health().crash is None
            await sim.advance(seconds=30)


@pytest.mark.simulated_time
async def test_R8_a_sink_that_is_refused_for_long_crashes_the_topology(sim: Simulation) -> None:
    """None of its inputs is to blame: they have no outcome, and come again in the next run."""
    broker, letters = Broker("rabbitmq-4.0"), list[DeadLetter]()
    topology = Topology("sending", max_spout_pending=50)
    numbers = topology.spout("numbers", range(200))
    topology.bolt("send", TwinSink[int](broker, "done", size=20, give_up=60.0), numbers.shuffle())
    with pytest.raises(TopologyCrashed, match="NOT_FOUND"):  # noqa: PT012 - the block is the run
        async with topology.run(dead_letters=letters.append) as running:
            broker.missing.append("done")
            broker.cut()
            await sim.advance(seconds=50)
            assert (running.health().crash, running.statistics().components["numbers"].failed) == (None, 0)
            await sim.advance(seconds=30)
    assert {each.failure.kind for each in letters} <= {FailureKind.SHUTDOWN}


async def refuse(*_: object) -> Any:
    raise BrokerRefused("NOPERM this user may not do that")


class Refusing(TwinSource[bytes]):
    """A broker that takes connections, and refuses one thing by all but the first."""

    connects = 0
    refuses: str

    async def begin(self, address: Address, context: SourceContext) -> Session:
        self.connects += 1
        session = await super().begin(address, context)
        if self.connects > 1:
            setattr(session, self.refuses, refuse)
        return session


class Moody(TwinSource[bytes]):
    """A broker that refuses to be read after each three seconds."""

    connects = 0

    async def begin(self, address: Address, context: SourceContext) -> Session:
        self.connects += 1
        session = await super().begin(address, context)
        until, receive = now() + 3, session.receive

        async def receive_for_a_time(most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - as others
            return await receive(most, min(timeout, 1.0)) if now() < until else await refuse()

        setattr(session, "receive", receive_for_a_time)  # noqa: B010 - of one session alone
        return session


def refusing(broker: Broker, what: str, give_up: float) -> Refusing:
    source = Refusing(broker, "orders", as_=bytes, give_up=give_up)
    source.refuses = what
    return source


@pytest.mark.simulated_time
async def test_R8_a_broker_that_connects_and_then_refuses_is_given_up_too(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked ever more seldom, and the log has it once for each loss."""
    broker = Broker("redis-7")
    source = refusing(broker, "receive", 60.0)
    consumer = Consumer(broker, quick, source=source)
    with pytest.raises(TopologyCrashed, match="NOPERM"):  # noqa: PT012 - the block is the run
        async with consumer.run() as running:
            await sim.advance(seconds=20)
            broker.cut()
            await sim.advance(seconds=50)
            assert running.health().crash is None
            assert running.statistics().components["orders"].restarts == 0
            await sim.advance(seconds=30)
    assert source.connects < 18


@pytest.mark.simulated_time
async def test_R8_a_broker_that_refuses_late_is_given_up_too(sim: Simulation) -> None:
    """A settlement comes when a tree is done, and nothing else has come of the connection."""
    broker = Broker("rabbitmq-4.0")
    consumer = Consumer(broker, lambda _: asyncio.sleep(15), source=refusing(broker, "settle", 60.0))
    consumer.publish(3)
    with pytest.raises(TopologyCrashed, match="NOPERM"):  # noqa: PT012 - the block is the run
        async with consumer.run():
            broker.cut()
            await sim.advance(seconds=200)


@pytest.mark.simulated_time
async def test_R8_a_broker_that_refuses_now_and_then_is_not_given_up(sim: Simulation) -> None:
    """It does something else in between."""
    broker = Broker("rabbitmq-4.0")
    source = Moody(broker, "orders", as_=bytes, give_up=5.0)
    consumer = Consumer(broker, quick, source=source)
    async with consumer.run() as running:
        for _ in range(100):
            consumer.publish(1)
            await sim.advance(seconds=1)
        assert running.health().crash is None
        assert source.connects > 15
    assert consumer.processed.total() > 90


@pytest.mark.simulated_time
async def test_R8_connections_that_are_lost_at_once_are_made_ever_more_seldom(sim: Simulation) -> None:
    """Whatever it is that ends them: no broker is asked ten times a second for hours."""

    class Fragile(TwinSource[bytes]):
        connects = 0

        async def begin(self, address: Address, context: SourceContext) -> Session:
            self.connects += 1
            session = await super().begin(address, context)
            if self.connects > 1:
                asyncio.get_running_loop().call_later(0.5, broker.cut)
            return session

    broker = Broker("redis-7")
    source = Fragile(broker, "orders", as_=bytes)
    async with Consumer(broker, quick, source=source).run():
        broker.cut()
        await sim.advance(seconds=600)
        assert 60 < source.connects < 90


@pytest.mark.simulated_time
async def test_R10_what_a_broker_has_no_room_for_waits(sim: Simulation) -> None:
    """However long that takes: it does not time out, is not replayed, and health says why."""
    broker, letters = Broker("rabbitmq-4.0"), list[DeadLetter]()
    broker.full.append("done")
    topology = Topology("sending", max_spout_pending=50)
    numbers = topology.spout("numbers", range(200))
    topology.bolt("send", TwinSink[int](broker, "done", size=20), numbers.shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await sim.advance(seconds=3600)
        assert (running.health().ready, connection(running, "send[0]").error) == (False, "'done' is full")
        assert running.statistics().components["numbers"].replayed == 0
        broker.full.clear()
        await sim.advance(seconds=30)
        assert running.health().ready
        assert running.statistics().components["numbers"].acked == 200
    assert (letters, len(broker.place("done").left)) == ([], 200)


@pytest.mark.simulated_time
async def test_R10_several_batches_that_wait_are_one_trouble(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """Health is not ready before the last of them is through, and the log says it once."""
    caplog.set_level(logging.INFO, "stormlet.connect")
    broker = Broker("rabbitmq-4.0")

    class Dripping(TwinSink[int]):
        room = 0

        async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
            session = await super().begin(address, context)
            setattr(session, "write", self.write)  # noqa: B010 - of one session alone
            return session

        async def write(self, items: Sequence[Item]) -> Sequence[Written]:
            taken = min(self.room, len(items))
            self.room -= taken
            return [DONE] * taken + [Written("no room", later=True)] * (len(items) - taken)

    topology, sink = Topology("sending"), Dripping(broker, "done", size=5, at_once=4)
    numbers = topology.spout("numbers", range(100))
    topology.bolt("send", sink, numbers.shuffle())
    async with topology.run() as running:
        while running.statistics().components["numbers"].acked < 100:
            sink.room = 5
            await sim.advance(seconds=1)
        await sim.advance(seconds=20)
        assert running.health().ready
    said = [each.getMessage() for each in caplog.records]
    assert [text.split(" twin:")[0] for text in said] == ["send finds no room at", "send has"]


@pytest.mark.simulated_time
async def test_R10_the_others_of_a_batch_are_written_once(sim: Simulation) -> None:
    """Of a batch with some that there is no room for."""
    broker, sent = Broker("rabbitmq-4.0"), list[int]()

    class Narrow(TwinSink[int]):
        async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
            session = await super().begin(address, context)
            setattr(session, "write", self.write)  # noqa: B010 - of one session alone
            return session

        async def write(self, items: Sequence[Item]) -> Sequence[Written]:
            taken = [number % 3 == 0 for number in range(len(items))]
            sent.extend(item.value for item, is_taken in zip(items, taken, strict=True) if is_taken)
            return [Written() if each else Written("no room", later=True) for each in taken]

    topology = Topology("sending", max_spout_pending=50)
    numbers = topology.spout("numbers", range(100))
    topology.bolt("send", Narrow(broker, "done", size=20), numbers.shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=60)
        assert running.statistics().components["numbers"].acked == 100
        assert running.health().ready
    assert sorted(sent) == list(range(100))


PASSWORD = "p@ss w/rd"


class Leaky(TwinSource[bytes]):
    """A client that puts the password into its exceptions, as many do."""

    async def begin(self, address: Address, context: SourceContext) -> Session:
        assert address.password is not None
        text = address.password.reveal()
        if context.connection > 1:
            raise ConnectionError(f"amqp://shop:{text}@mq: reset")
        if self.capabilities.is_finite:
            try:
                raise ValueError(f"amqp://shop:{text}@mq")
            except ValueError as error:
                raise BrokerRefused(f"ACCESS_REFUSED for shop:{text}") from error
        return await super().begin(address, context)


@pytest.mark.simulated_time
async def test_R9_a_password_is_nowhere_to_be_seen(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """In logs, health, statistics, ``repr``, nor the error of a start with all its causes."""
    caplog.set_level(logging.DEBUG)
    for refused in (True, False):
        broker = Broker("rabbitmq-4.0")
        source = Leaky(broker, "orders", finite=refused, password=Secret(PASSWORD))
        consumer = Consumer(broker, quick, source=source)
        seen = [repr(source), repr(source.settings), repr(consumer.topology)]
        try:
            async with consumer.run() as running:
                broker.cut()
                await sim.advance(seconds=5)
                seen += [repr(running.health()), repr(running.statistics())]
                seen.append(msgspec.json.encode(running.health()).decode())
        except StartFailed as error:
            seen += traceback.format_exception(error)
        text = "\n".join([*seen, caplog.text])
        assert "p@ss" not in text
        assert ("ACCESS_REFUSED for shop:***" if refused else "shop:***@mq") in text


def test_R9_a_url_shows_no_password_in_any_form() -> None:
    """Nor does the address that comes of it, nor a text that has it quoted."""
    address = read_address("amqps://shop:p%40ss%20w%2Frd@mq:5671/shop", where="test")
    assert (address.password, str(address)) == (Secret(PASSWORD), "amqps://shop:***@mq:5671/shop")
    assert "p@ss" not in repr(address)
    texts = [PASSWORD, "p%40ss%20w%2Frd", "p%40ss+w%2Frd", "p%40ss%20w/rd"]
    assert scrubbed(" ".join(texts), address.secrets) == "*** *** *** ***"


def sending(broker: Broker) -> Topology:
    topology = Topology("sending", max_spout_pending=50)
    numbers = topology.spout("numbers", range(200))
    sink = TwinSink[int](broker, "done", size=20)
    topology.bolt("send", sink, numbers.shuffle())
    return topology


@pytest.mark.simulated_time
async def test_R10_an_input_is_acked_when_the_broker_has_it(sim: Simulation) -> None:
    """Connections are lost meanwhile, for longer than a message may take; nothing is lost or given up."""
    broker = Broker("rabbitmq-4.0", latency=0.5)
    topology = sending(broker)
    async with topology.run() as running:
        await sim.advance(seconds=0.7)
        broker.restart(500)
        await sim.advance(seconds=200)
        assert running.health().connections["send[0]"].state.value == "reconnecting"
        before = running.statistics().components["numbers"].acked
        await sim.advance(seconds=100)
        assert running.statistics().components["numbers"].acked == before
        await running.finished()
        counts = running.statistics().components["numbers"]
        assert (counts.acked, counts.failed) == (200, 0)
    bodies = [int(each) for each in broker.queue("done").left]
    assert set(bodies) == set(range(200))
    assert len(bodies) <= 220  # what was on its way when the connection was lost comes twice


class Picky(TwinSink[int]):
    """A broker that takes no threes, and fives at their second attempt only."""

    async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
        return PickyWriter()


class PickyWriter:
    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        return [self.verdict(item) for item in items]

    def verdict(self, item: Item) -> Written:
        if item.value == 3:
            return Written("unroutable", permanent=True)
        return Written("busy") if item.value == 5 and item.attempt == 1 else DONE

    async def close(self) -> None: ...


@pytest.mark.simulated_time
async def test_R10_each_value_of_a_batch_has_its_own_outcome(sim: Simulation) -> None:
    """One is a dead letter, one is replayed, the others are acked."""
    letters = list[DeadLetter]()
    topology = Topology("sending")
    numbers = topology.spout("numbers", range(8))
    topology.bolt("send", Picky(Broker(), "done"), numbers.shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await running.finished()
        counts = running.statistics().components["numbers"]
        assert (counts.acked, counts.replayed, counts.dead_letters) == (7, 1, 1)
        assert running.health().connections["send[0]"].rejected == 1
    assert [(letter.value, letter.failure.reason) for letter in letters] == [(3, "unroutable")]
