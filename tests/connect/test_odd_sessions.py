"""Sessions of connectors that are slow, or that return what is not quite what the driver asks for."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any
from weakref import ReferenceType, ref

import msgspec
import pytest

from stormlet import DeadLetter, Topology
from stormlet.connect.address import Address
from stormlet.connect.driver.traced import traceparent_of
from stormlet.connect.session import (
    DONE,
    Capabilities,
    Delivery,
    Item,
    Session,
    Settlement,
    Settles,
    SinkContext,
    SinkSession,
    SourceContext,
    Written,
)
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.report.connections import ConnectionState
from stormlet.testing import Simulation
from tests.connect.price import ListSession
from tests.connect.runs import connection

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]

PREFIX = Capabilities(settles=Settles.PREFIX)


class Odd(Source[bytes]):
    """A source whose sessions are of this class."""

    reads = ("odd",)  # type: ignore[assignment]

    def __init__(self, session: type[OddSession], rules: Capabilities, **options: Any) -> None:
        super().__init__("odd://here", as_=bytes, **options)
        self.begun = list[OddSession]()
        self._session = session
        self._rules = rules

    @property
    def capabilities(self) -> Capabilities:
        return self._rules

    async def begin(self, address: Address, context: SourceContext) -> Session:
        self.begun.append(self._session(self._rules.settles.value, 50, context))
        return self.begun[-1]


class OddSession(ListSession):
    """Gives the bodies b"0", b"1" and so on, and waits for ever when there are no more."""

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        self.context = context
        self.settled = list[Any]()
        self._ends = asyncio.Event()

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        numbers = list(islice(self._numbers, most))
        if not numbers and not self._ends.is_set():
            await asyncio.wait([asyncio.ensure_future(self._ends.wait())], timeout=within)
        return [self.delivery(each) for each in numbers]

    def delivery(self, number: int) -> Delivery:
        return Delivery(body=b"%d" % number, receipt=f"receipt {number}", place=self._place, position=number)

    def interrupt(self) -> None:
        self._ends.set()

    async def settle(self, settlement: Settlement) -> int:
        self.settled += settlement.done
        return 0


def topology(source: Odd, work: Callable[[bytes], object], **options: Any) -> Topology:
    """One bolt behind the source."""
    topology = Topology("odd", **{"max_spout_pending": 20, **options})
    topology.bolt("work", work, topology.spout("orders", source).shuffle(), concurrency=50)
    return topology


class Decoding:
    """Something that is there while a value is made."""


class SlowToPause(OddSession):
    """A session whose client takes longer to pause a partition than to resume it."""

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        self._goes = asyncio.Event()
        self._goes.set()

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        if not self._goes.is_set():
            await asyncio.sleep(0.1)
            return []
        return await super().receive(most, within)

    async def pause(self, places: Collection[Prefix]) -> None:
        await asyncio.sleep(1.0)
        self._goes.clear()

    async def resume(self, places: Collection[Prefix]) -> None:
        self._goes.set()


async def test_a_partition_is_not_resumed_before_its_pause_has_come_to_its_end(sim: Simulation) -> None:
    """Else it would be paused for ever, where the broker hears of the pause last."""
    done = list[bytes]()

    async def work(body: bytes) -> None:
        await asyncio.sleep(0.2)
        done.append(body)

    source = Odd(SlowToPause, PREFIX, max_uncommitted=10, settle_every=0.1)
    async with topology(source, work).run():
        await sim.advance(seconds=60)
        assert len(done) == 50


@pytest.mark.parametrize(
    "more",
    [{"has_dead_letters": True}, {"lease": 10.0}, {"most_held": 10.0}],
    ids=lambda more: next(iter(more)),
)
async def test_what_a_position_cannot_say_is_refused_at_the_start(
    more: dict[str, Any], sim: Simulation
) -> None:
    """A message that was rejected would be in no dead letters, and one that is given back would hold the front."""
    source = Odd(OddSession, msgspec.structs.replace(PREFIX, **more))
    with pytest.raises(StartFailed, match=rf"orders.*{next(iter(more))}= needs settles=Settles.EACH"):
        async with topology(source, len).run():
            await sim.advance(seconds=1)


class Assigned(OddSession):
    """A session that has a partition whatever its broker is told."""

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        context.assigned("odd[0]")


async def test_partitions_are_refused_where_each_message_is_settled(sim: Simulation) -> None:
    """The broker would hear of no receipt, and deliver all again."""
    with pytest.raises(
        StartFailed, match=r"orders.*partition 'odd\[0\]' is assigned, and capabilities say settles="
    ):
        async with topology(Odd(Assigned, Capabilities()), len).run():
            await sim.advance(seconds=1)


async def test_what_cannot_be_read_is_let_go_of(sim: Simulation) -> None:
    """Although the traceback of its error leads back to it."""
    frames = list[ReferenceType[Decoding]]()

    def key(body: bytes) -> str:
        decoding = Decoding()
        frames.append(ref(decoding))
        raise ValueError(body)

    source = Odd(OddSession, Capabilities(), ordered_by=key)
    async with topology(source, len).run(dead_letters=lambda letter: None):
        await sim.advance(seconds=1)
    gc.collect()
    assert len(frames) == 50
    assert sum(frame() is not None for frame in frames) < 20


class Changing(OddSession):
    """A session that delivers a message twice, the second time with another body."""

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        self._numbers = iter([])
        self._comes = deque(
            [("one", b"a first"), ("one", b"b changed"), ("two", b"a second"), ("three", b"b third")]
        )

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        if not self._comes:
            return await super().receive(most, within)
        await asyncio.sleep(1.0)
        name, body = self._comes.popleft()
        return [Delivery(body=body, receipt=body, name=name)]


async def test_a_message_that_comes_with_another_key_holds_up_neither(sim: Simulation) -> None:
    """While it is under way it has the key with which it came first (law R7)."""
    done = list[bytes]()

    async def work(body: bytes) -> None:
        await asyncio.sleep(10.0)
        done.append(body)

    source = Odd(Changing, Capabilities(receipts_survive=True), ordered_by=lambda body: body[:1])
    async with topology(source, work).run():
        await sim.advance(seconds=60)
        assert done == [b"a first", b"b third", b"a second"]
        assert source.begun[0].settled == [b"b changed", b"b third", b"a second"]


class Queued(OddSession):
    """A session that returns its own queue of what has come."""

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        return deque(await super().receive(most, within))


async def test_a_session_may_return_a_deque(sim: Simulation) -> None:
    """It is a sequence, although it cannot be sliced."""
    done = list[bytes]()
    async with topology(Odd(Queued, Capabilities()), done.append).run():
        await sim.advance(seconds=1)
        assert len(done) == 50


class Silent(OddSession):
    """A session one of whose methods forgets to return."""

    method: str

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        super().__init__(kind, count, context)
        setattr(self, self.method, self._nothing)

    async def _nothing(self, *arguments: object) -> None:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "due"),
    [
        ("receive", "a list of deliveries"),
        ("settle", "the number of receipts"),
        ("renew", "a list of the receipts"),
    ],
)
async def test_a_session_that_returns_nothing_is_told_what_to_return(
    method: str, due: str, sim: Simulation
) -> None:
    """Leases would end without a word, or an error of the driver would say nothing of the connector."""
    silent = type("Silent", (Silent,), {"method": method})
    source = Odd(silent, Capabilities(lease=3.0, receipts_survive=True))
    with pytest.raises(
        TopologyCrashed, match=rf"orders.*Silent\.{method} returned None; let it return {due}"
    ):
        async with topology(source, lambda _: asyncio.sleep(2.0), max_restarts=0).run():
            await sim.advance(seconds=60)


class Naming(OddSession):
    """A session that is told by its broker which lease is lost, in words of the broker's."""

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        return ["".join(["receipt", " 7"])]


async def test_a_lease_that_is_lost_is_known_by_an_equal_receipt(sim: Simulation) -> None:
    """The one in the broker's answer is another object (law R4)."""
    source = Odd(Naming, Capabilities(lease=9.0))
    async with topology(source, lambda _: asyncio.sleep(5.0)).run() as running:
        await sim.advance(seconds=4)
        assert connection(running, "orders[0]").withdrawn == 1
        await sim.advance(seconds=10)
        assert "receipt 7" not in source.begun[0].settled


class Impatient(OddSession):
    """A session that waits a second for what is under way of a partition that it gives away, then commits no more."""

    async def give_away(self) -> bool:
        place = self._place
        assert place is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self.context.revoking([place])
        return place.is_revoked


async def test_a_partition_that_nobody_waits_for_any_more_is_given_away(sim: Simulation) -> None:
    """Else it would be this task's for ever, and whatever comes of it would be dropped without a word (law R2)."""
    source = Odd(Impatient, PREFIX)
    async with topology(source, lambda _: asyncio.sleep(10.0)).run() as running:
        await sim.advance(seconds=1)
        assert await source.begun[0].give_away()
        assert connection(running, "orders[0]").withdrawn == 20


class Stuck(OddSession):
    """A session that cannot be closed."""

    async def close(self) -> None:
        raise RuntimeError("it is stuck")


@pytest.mark.simulated_time(allow_leaks=["errors", "inputs", "trees"])
async def test_a_session_that_cannot_be_closed_is_let_go_of(sim: Simulation) -> None:
    """With all that came by it, into which the garbage collector does not look."""
    source = Odd(Stuck, Capabilities())
    async with topology(source, lambda _: asyncio.sleep(1e6), drain_timeout=1.0).run() as running:
        await sim.advance(seconds=1)
    assert connection(running, "orders[0]").state is ConnectionState.CLOSED


class Careless(Sink[str]):
    """A sink that is its own session, and returns this of what it is to write."""

    writes = "odd"  # type: ignore[assignment]

    def __init__(self, answer: Any) -> None:
        super().__init__("odd://here")
        self._answer = answer

    async def begin(self, address: Address, context: SinkContext) -> SinkSession:
        return self

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        answer: Sequence[Written] = self._answer
        return answer

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "Careless.write returned None; let it return what became of each value"),
        ([DONE], "the sink got 2 values, and says what became of 1"),
    ],
    ids=["nothing", "too little"],
)
@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_sink_that_does_not_say_what_became_of_each_value_is_told(
    answer: Any, says: str, sim: Simulation
) -> None:
    """The letters of its values say it."""
    letters = list[DeadLetter]()
    topology = Topology("careless", max_attempts=1)
    topology.bolt("tell", Careless(answer), topology.spout("words", ["a", "b"]).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await running.finished()
    assert [says in str(letter.failure) for letter in letters] == [True, True]


async def test_a_sink_may_return_what_it_makes_one_by_one(sim: Simulation) -> None:
    """As any other sequence of outcomes."""
    topology = Topology("careless", max_restarts=0)
    topology.bolt("tell", Careless(DONE for _ in range(2)), topology.spout("words", ["a", "b"]).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert running.statistics().components["tell"].acked == 2


@pytest.mark.parametrize("found", [7, None, ["00-"]])
async def test_a_header_of_another_type_is_no_trace(found: Any) -> None:
    """Whoever publishes may write anything, and some brokers have numbers there."""
    assert traceparent_of({"traceparent": found}) == ""
