"""The reader of a source, which asks for more while what has come is taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, cast

import msgspec
import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.connect.address import Address
from stormlet.connect.driver.held import Held
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.settling import Settling
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Capabilities, Delivery, Settlement, SourceContext
from stormlet.errors import NotSettled
from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker, TwinSource
from tests.connect.price import Listed, ListSession
from tests.connect.runs import Consumer, connection
from tests.epochs.stores import Kept
from tests.helpers import now

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]


class Noted(Listed):
    """A source that notes what happens: a number for so many messages that are asked for, a body for one decoded."""

    def __init__(self, count: int) -> None:
        super().__init__("each", count)
        self.notes = list[int | bytes]()
        self.decode = self._decode

    def _decode(self, delivery: Delivery) -> bytes:
        self.notes.append(delivery.body)
        return delivery.body

    async def begin(self, address: Address, context: SourceContext) -> NotedSession:
        return NotedSession(self.notes, self._count, context)


class NotedSession(ListSession):
    def __init__(self, notes: list[int | bytes], count: int, context: SourceContext) -> None:
        super().__init__("each", count, context)
        self._notes = notes

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        self._notes.append(most)
        return await super().receive(min(most, 250), within)


async def test_more_is_asked_for_while_what_has_come_is_taken_in(sim: Simulation) -> None:
    """The broker finds the next messages meanwhile, and no more than there is room for beside those that have come."""
    source = Noted(500)
    topology: Any = Topology("reading", max_spout_pending=1000)
    topology.bolt("see", len, topology.spout("read", source, outputs=bytes).shuffle())
    async with topology.run() as running:
        await running.finished()
    first, second, *_ = [place for place, note in enumerate(source.notes) if isinstance(note, int)]
    assert (source.notes[first], source.notes[second]) == (1000, 750)
    assert second - first < 250


class Deaf(Listed):
    """A source whose client swallows a cancellation while it is asked for the lag, as redis-py may (Python 3.11)."""

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities, has_lag=True)

    async def begin(self, address: Address, context: SourceContext) -> DeafSession:
        return DeafSession("each", self._count, context)


class DeafSession(ListSession):
    async def lag(self) -> Mapping[str, int]:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        return {}


class Parted(Listed):
    """A source of two partitions, of which it has lost the second before it reads what is on its way of both."""

    def __init__(self) -> None:
        super().__init__("prefix", 10)

    async def begin(self, address: Address, context: SourceContext) -> PartedSession:
        return PartedSession("prefix", 10, context)


class PartedSession(ListSession):
    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        self._places = [context.assigned("first"), context.assigned("second")]
        context.lost(self._places[1:])

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        for number, delivery in enumerate(deliveries := await super().receive(most, within)):
            delivery.place = self._places[number % 2]
            delivery.body = b"%d" % number
        return deliveries


async def test_what_comes_of_several_partitions_at_once_is_begun_of_those_that_it_has(
    sim: Simulation,
) -> None:
    """In whatever order they come."""
    topology, seen = Topology("parted"), list[bytes]()
    read: Any = topology.spout("read", Parted(), outputs=bytes)
    topology.bolt("see", seen.append, read.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert connection(running, "read[0]").stale == 5
    assert seen == [b"0", b"2", b"4", b"6", b"8"]


async def test_a_client_that_swallows_a_cancellation_does_not_hold_up_the_end(sim: Simulation) -> None:
    """It is cancelled again: a cancellation comes once, and the next question would have to be asked for ever."""
    topology: Any = Topology("deaf")
    topology.bolt("see", len, topology.spout("read", Deaf("each", 10), outputs=bytes).shuffle())
    async with topology.run() as running:
        async with asyncio.timeout(60):
            await running.finished()


@pytest.mark.parametrize("latency", [0.001, 0.05])
async def test_nothing_is_done_twice_as_connections_are_lost_that_receipts_survive(
    latency: float, sim: Simulation
) -> None:
    """Although each connection begins with what is not settled, and some of it is while that is on its way (law R3)."""

    async def work(body: bytes) -> None:
        await asyncio.sleep(0.003 * (int(body) % 100))

    consumer = Consumer(Broker("redis-7", latency=latency), work)
    bodies = consumer.publish(1000)
    async with consumer.run() as running:
        while consumer.place.left:
            await sim.advance(seconds=0.7)
            consumer.broker.cut()
        assert connection(running).reconnects > 4
        assert connection(running).redelivered
    assert consumer.processed == dict.fromkeys(bodies, 1)


@pytest.mark.parametrize("profile", ["redis-7", "jetstream"])
async def test_a_connection_is_read_as_soon_as_it_has_caught_up(profile: str, sim: Simulation) -> None:
    """Whatever is gathered, and however many outcomes come meanwhile."""
    consumer = Consumer(Broker(profile), lambda _: asyncio.sleep(3.0), settings={"settle_every": 20.0})
    consumer.publish(2)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        consumer.broker.cut()
        consumer.place.publish(b"behind")
        await sim.advance(seconds=1)
        assert connection(running).received > 2
        await consumer.until_empty()


async def test_an_outage_of_almost_a_lease_doubles_no_more_than_what_is_withdrawn(sim: Simulation) -> None:
    """Those that are under way keep their leases, as a connection begins with them, and are known though others were
    withdrawn (law R4)."""
    consumer = Consumer(Broker("redis-7"), lambda _: asyncio.sleep(200.0), message_timeout=None)
    first = consumer.publish(1)
    async with consumer.run() as running:
        await sim.advance(seconds=31)
        others = [b"other %d" % number for number in range(10)]
        for each in others:
            consumer.place.publish(each)
        await sim.advance(seconds=1)
        consumer.broker.restart(51.0)
        await consumer.until_empty()
        assert connection(running).withdrawn == 1
    assert consumer.processed == {first[0]: 2, **dict.fromkeys(others, 1)}


async def test_what_was_settled_meanwhile_has_no_lease_and_what_was_given_back_has() -> None:
    """When they come once more by the next connection: nobody would end the lease of the first one."""
    status = Status("t", "orders", "redis://here", lambda: 0.0)
    rules = Capabilities(lease=60.0, receipts_survive=True, can_return=True)
    settling = Settling(status, 0.0, survive=True)
    holding = Holding(rules, SourceSettings(), settling, status, cast("Any", None), count())
    done, returned = (Held(id, f"receipt {id}", None, -1, 0.0, b"", id, 1, 1, None, "") for id in "ab")
    assert holding.add(done)
    assert holding.add(returned)
    holding.receipts.lost()
    holding.done("a")
    holding.give_back("b")
    assert (holding.add(done), holding.add(returned)) == (False, True)
    assert holding.leases is not None
    assert [each in holding.leases for each in "ab"] == [False, True]
    assert holding.add(done)  # the broker has forgotten its ack


async def test_what_was_refused_is_told_again_soon(sim: Simulation) -> None:
    """Without gathering once more: meanwhile the source may have to wait for it."""
    settling = Settling(Status("t", "orders", "redis://here", lambda: 0.0), 3.0, survive=True)
    at = list[float]()

    class Refuses:
        async def settle(self, settlement: Settlement) -> int:
            at.append(now())
            if len(at) < 3:
                raise NotSettled("not now")
            return 0

    async def balance(session: object) -> None: ...

    telling = asyncio.create_task(settling.tell(cast("Any", Refuses()), balance))
    settling.done("receipt")
    await settling.told.wait()
    telling.cancel()
    assert at == pytest.approx([3.0, 3.1, 3.2])


class Resumed(TwinSource[bytes]):
    resumable = True


async def test_a_source_with_state_reads_on_as_soon_as_there_is_room(sim: Simulation) -> None:
    """Within epochs it hears of nothing until they are durable; half a second for each ten messages made 25 seconds."""
    broker = Broker("kafka", latency=0.001)
    for number in range(500):
        broker.place("orders").publish(b"%d" % number)
    seen = list[bytes]()
    topology: Any = Topology("room", max_spout_pending=10)
    source = topology.spout("orders", Resumed(broker, "orders", as_=bytes))
    topology.bolt("see", lambda body: seen.append(body), source.shuffle())
    async with topology.run(state=Kept()):
        await sim.advance(seconds=5)
        assert len(seen) == 500


async def test_messages_have_their_names_as_origins(sim: Simulation) -> None:
    """Those that have one; others of the same batch have none."""
    source = Named(6)
    origins = list[object]()

    class Sees(BasicBolt[bytes, None]):
        def execute(self, tup: Tuple[bytes], out: Collector[None]) -> None:
            origins.append(tup.origin)

    topology: Any = Topology("named")
    topology.bolt("see", Sees, topology.spout("read", source, outputs=bytes).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert origins == ["list@0", None, "list@2", None, "list@4", None]


class Named(Listed):
    """A source of which each other message has a name."""

    def __init__(self, count: int) -> None:
        super().__init__("each", count)

    async def begin(self, address: Address, context: SourceContext) -> NamedSession:
        return NamedSession("lease", self._count, context)


class NamedSession(ListSession):
    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        deliveries = await super().receive(most, within)
        for delivery in deliveries[1::2]:
            delivery.name = ""
        return deliveries


class Late(Listed):
    """A source whose messages come when the topology stops."""

    def __init__(self, count: int) -> None:
        super().__init__("each", count)
        self.sessions = list[LateSession]()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(can_return=True)

    async def begin(self, address: Address, context: SourceContext) -> LateSession:
        self.sessions.append(LateSession("each", self._count, context))
        return self.sessions[0]


class LateSession(ListSession):
    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        self.done, self.returned = list[Any](), list[Any]()
        self._stops = asyncio.Event()

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        await self._stops.wait()
        return await super().receive(most, within)

    def interrupt(self) -> None:
        self._stops.set()

    async def settle(self, settlement: Settlement) -> int:
        self.done += settlement.done
        self.returned += settlement.returned
        return 0


async def test_what_the_last_read_brings_is_given_back(sim: Simulation) -> None:
    """Nobody begins it, and its broker knows that at once (law R6)."""
    source = Late(250)
    topology: Any = Topology("late", max_spout_pending=1000)
    topology.bolt("see", len, topology.spout("read", source, outputs=bytes).shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=1)
    (session,) = source.sessions
    assert (session.done, session.returned) == ([], list(range(250)))
    assert running.statistics().components["see"].executed == 0
