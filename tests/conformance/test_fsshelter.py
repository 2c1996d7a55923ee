"""FsShelter's own tests of acker, spouts, groupings, hosting and configuration: FS-A, FS-S, FS-G, FS-H, FS-C.

FsShelter waits and asserts "at least one"; here time is simulated and every count and moment is exact. Where it
has a synchronous and an asynchronous twin of a test, so has this module. Its ``T1`` is a spout of numbers, two
tasks that split them into odd and even, and a bolt that both streams reach by fields.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    FailureKind,
    Running,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
    Topology,
    Tuple,
)
from tests.cast import Ack, Feeder, Forward, Hold, Slow, given, wait_for_ever
from tests.conformance.kit import Numbers, collect, one_bolt, settle, until
from tests.engines import IN_PROCESS, Engine
from tests.helpers import now, run_to_end


class AsyncNumbers(Numbers):
    """The asynchronous twin of a source of numbers."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        super().next_tuple(out)


class AsyncAck(Bolt[Any, Any]):
    """The asynchronous twin of a bolt that acks."""

    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        await asyncio.sleep(0)
        out.ack(tup)


twins = pytest.mark.parametrize("numbers", [Numbers, AsyncNumbers])
bolt_twins = pytest.mark.parametrize("ack", [Ack, AsyncAck])


def split(number: int) -> Iterator[To[int]]:
    yield To(number, "odd" if number % 2 else "even")


def t1(source: Callable[[], Spout[Any]], last: Callable[..., Any] = Ack, **configuration: Any) -> Topology:
    topology = Topology("T1", **configuration)
    streams = topology.bolt(
        "b1",
        split,
        topology.spout("s1", source).shuffle(),
        parallelism=2,
        outputs={"odd": None, "even": None},
    )
    topology.bolt("b2", last, streams.named("odd").fields(), streams.named("even").fields(), parallelism=2)
    return topology


# FS-A: the acker.


@pytest.mark.simulated_time
async def test_FS_A1_tracks_and_acks_a_single_tuple() -> None:
    """One message is acked, once."""
    feeder = Feeder()
    async with t1(given(feeder), max_spout_pending=1).run():
        feeder.feed(7, "m")
        await settle()
    assert feeder.outcomes == [("ack", "m")]


@pytest.mark.simulated_time
@twins
@bolt_twins
async def test_FS_A2_tracks_a_tree_of_several_hops(numbers: type[Numbers], ack: type[Bolt[Any, Any]]) -> None:
    """Of a hundred messages each is acked exactly once."""
    spout = numbers(last=99)
    await run_to_end(t1(given(spout), ack, max_spout_pending=10))
    assert sorted(spout.acked) == list(range(100))
    assert spout.failed == []


@pytest.mark.simulated_time
async def test_FS_A3_nacks_on_bolt_failure() -> None:
    """A bolt that raises fails the tree at the very moment, once, with its name and its exception."""
    feeder = Feeder()
    async with t1(given(feeder), lambda number: 1 / 0, message_timeout=2).run():
        await until(1)
        feeder.feed(7, "m")
        await until(60)
    assert (feeder.outcomes, feeder.settled_at) == ([("fail", "m")], {"m": 1})
    failure = feeder.failures["m"]
    assert (failure.kind, failure.component) == (FailureKind.FAILED, "b2")
    assert isinstance(failure.exception, ZeroDivisionError)


@pytest.mark.simulated_time
async def test_FS_A4_expires_timed_out_tuples() -> None:
    """Emitted just before a rotation, a tree outlives it and the two that follow: no fail before, one then."""
    feeder = Feeder()
    async with t1(given(feeder), wait_for_ever, message_timeout=1, drain_timeout=0).run():
        await until(0.375)
        feeder.feed(7, "m")
        await until(60)
        assert (feeder.outcomes, feeder.settled_at) == ([("fail", "m")], {"m": 1.5})
        assert (feeder.failures["m"].kind, feeder.failures["m"].holders) == (FailureKind.TIMEOUT, ("b2",))


# FS-S: spouts.


@pytest.mark.simulated_time
@twins
async def test_FS_S1_spout_respects_max_pending(numbers: type[Numbers]) -> None:
    """Two messages are pending at every moment, never three, so that in 3 s a bolt of 100 ms acks thirty."""
    spout, pending = numbers(), Counter[int]()
    async with one_bolt(spout, partial(Slow, 0.1), max_spout_pending=2).run() as running:
        for step in range(60):
            await until(0.025 + step / 20)
            pending[running.statistics().components["s1"].pending] += 1
        await until(3.05)
        assert (spout.emitted, spout.acked) == (32, list(range(30)))
    assert pending == {2: 60}


@pytest.mark.simulated_time
@twins
async def test_FS_S2_nack_callback_fires_on_failure(numbers: type[Numbers]) -> None:
    """Every emitted id comes back as a failed one, in order."""
    spout = numbers(last=9)
    await run_to_end(one_bolt(spout, lambda number: 1 / 0))
    assert (spout.failed, spout.acked) == (list(range(10)), [])


@pytest.mark.simulated_time
@twins
async def test_FS_S3_stop_and_run_again(numbers: type[Numbers]) -> None:
    """A second run of one definition has spouts of its own, and starts afresh; no task of the first is left."""
    spouts: list[Numbers] = []
    topology = Topology("again")

    def another() -> Numbers:
        spouts.append(numbers(last=4))
        return spouts[-1]

    topology.bolt("b1", Ack, topology.spout("s1", another).shuffle())
    for _ in range(2):
        await run_to_end(topology)
        assert len(asyncio.all_tasks()) == 1
    assert [spout.acked for spout in spouts] == [list(range(5))] * 2


@pytest.mark.simulated_time
async def test_FS_S4_an_idle_spout_is_asked_seldom() -> None:
    """Polled after 1 ms, 2 ms, 4 ms … and then every 100 ms, an idle spout is asked 56 times in 5 s."""
    spout = Feeder()
    async with one_bolt(spout, Ack).run():
        await until(5)
        gaps = [later - earlier for earlier, later in zip(spout.asked, spout.asked[1:], strict=False)]
    assert gaps[:7] == pytest.approx([0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064])
    assert gaps[7:] == pytest.approx([0.1] * 48)


class AcksSlowly(Numbers):
    """Takes 50 ms to note an ack, and counts how many of its calls run at a time."""

    def __init__(self) -> None:
        super().__init__(last=19)
        self.running = 0
        self.most = 0

    async def ack(self, message_id: object) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.05)
        self.running -= 1
        super().ack(message_id)

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        assert not self.running, "next_tuple while an ack runs"
        super().next_tuple(out)


@pytest.mark.simulated_time
async def test_FS_S5_asynchronous_ack_handlers_do_not_overlap() -> None:
    """Twenty acks of 50 ms take exactly a second: one runs at a time, and next_tuple beside none."""
    spout = AcksSlowly()
    await run_to_end(one_bolt(spout, Ack, max_spout_pending=10))
    assert (spout.acked, spout.most) == (list(range(20)), 1)
    assert now() == pytest.approx(1)


# FS-G: bolts and groupings.


KEYS: list[Any] = [0, 1, 2, 3, 4, None, "a", b"a", (1, None), ["a", ("b", 2.5)]]


class NotesKeys(BasicBolt[Any, tuple[str, int]]):
    """Emits each key's text with the index of its task."""

    def prepare(self, context: TaskContext) -> None:
        self._index = context.task_index

    def execute(self, tup: Tuple[Any], out: Collector[tuple[str, int]]) -> None:
        out.emit((repr(tup.value), self._index))


async def homes(engine: Engine, seed: int) -> dict[str, int]:
    """The task of each key, if there is only one."""
    topology = Topology("G2")
    inputs = [topology.spout(id, KEYS * 5).fields() for id in ("s1", "s2")]
    seen = collect(topology, topology.bolt("b2", NotesKeys, *inputs, parallelism=4))
    await engine.run_to_end(topology, seed=seed)
    assert Counter(seen) == dict.fromkeys(seen, 10)
    return dict(seen)


@pytest.mark.simulated_time
async def test_FS_G2_fields_routes_same_key_to_same_instance(engine: Engine) -> None:
    """A key goes to one task from two streams, in two runs and on every engine, None, tuples and lists too; all tasks
    are used."""
    first, second = await homes(engine, 1), await homes(engine, 2)
    assert first == second == await homes(IN_PROCESS, 3)
    assert (len(first), sorted(set(first.values()))) == (len(KEYS), [0, 1, 2, 3])


# FS-H: hosting.


class Activated(AsyncAck):
    """Notes its life."""

    def __init__(self) -> None:
        self.life: list[str] = []

    async def prepare(self, context: TaskContext) -> None:
        self.life.append("prepared")

    async def cleanup(self) -> None:
        self.life.append("cleaned up")


@pytest.mark.simulated_time
async def test_FS_H1_async_spout_and_bolt_host_and_process() -> None:
    """With two ackers everything is acked, and a bolt is prepared before and cleaned up after, once."""
    spout, bolt = AsyncNumbers(last=99), Activated()
    await run_to_end(one_bolt(spout, given(bolt), max_spout_pending=10, ackers=2))
    assert (sorted(spout.acked), spout.failed) == (list(range(100)), [])
    assert bolt.life == ["prepared", "cleaned up"]


async def hosts(topologies: int) -> list[Numbers]:
    """Run so many topologies beside one another in one process."""
    spouts = [Numbers(last=49) for _ in range(topologies)]
    async with AsyncExitStack() as stack:
        runs = [await stack.enter_async_context(t1(given(spout)).run()) for spout in spouts]
        for running in runs:
            await running.finished()
    return spouts


@pytest.mark.simulated_time
async def test_FS_H2_several() -> None:
    """Ten topologies in one process finish and stop cleanly: no task is left."""
    assert [sorted(spout.acked) for spout in await hosts(10)] == [list(range(50))] * 10
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.simulated_time
async def test_FS_H3_steady_state_memory_does_not_grow() -> None:
    """After 2,000 more messages nothing is pending anywhere, and memory is where it was after 1,000."""
    topology = Topology("H3")
    numbers = topology.spout("s1")
    topology.bolt("b2", Ack, topology.bolt("b1", Forward, numbers.shuffle()).shuffle())

    async def memory_after(running: Running, messages: int) -> int:
        for number in range(messages):
            await (await running.emit(numbers, number))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        async with topology.run() as running:
            before = await memory_after(running, 1000)
            after = await memory_after(running, 2000)
            assert [each.pending for each in running.statistics().components.values()] == [0] * 4
    finally:
        tracemalloc.stop()
    assert after - before < 20_000


@pytest.mark.simulated_time
async def test_FS_H4_multi_topology_isolation() -> None:
    """Two topologies under one name know nothing of each other: each acks its own, and nothing fails."""
    first, second = await hosts(2)
    assert sorted(first.acked) == sorted(second.acked) == list(range(50))
    assert first.failed == second.failed == []


@pytest.mark.simulated_time
async def test_FS_H5_graceful_shutdown() -> None:
    """The end of the block waits for what is in flight, and for nothing else."""
    feeder, bolt = Feeder(), Hold()
    async with one_bolt(feeder, given(bolt)).run():
        feeder.feed("a", "m")
        await until(1)
        asyncio.get_running_loop().call_at(3, bolt.ack)
    assert (now(), feeder.settled_at) == (3, {"m": 3})


@pytest.mark.simulated_time
async def test_FS_H7_minimal_topology_runs_end_to_end() -> None:
    """A spout and a bolt, without any option: five messages, five acks."""
    spout = Numbers(last=4)
    await run_to_end(one_bolt(spout, Ack))
    assert spout.acked == [0, 1, 2, 3, 4]


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [list[int], lambda: (number for number in range(0))])
async def test_FS_H8_an_empty_spout_runs_without_errors(source: Callable[[], Any]) -> None:
    """What yields nothing is finished at once, and stops cleanly after 3 idle seconds."""
    topology = Topology("H8")
    topology.bolt("b1", Ack, topology.spout("s1", source()).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert now() == 0
        await until(3)
    assert now() == 3


@pytest.mark.simulated_time
async def test_FS_H9_pending_stays_consistent_over_acks_and_nacks() -> None:
    """Every third of 300 fails: 200 are acked, 100 fail, and in the end nothing is pending."""

    def third_fails(number: int) -> None:
        if number % 3 == 0:
            raise ValueError(number)

    spout = Numbers(last=299)
    running = await run_to_end(one_bolt(spout, third_fails, max_spout_pending=7))
    counts = running.statistics().components["s1"]
    assert (counts.emitted, counts.acked, counts.failed, counts.pending) == (300, 200, 100, 0)
    assert spout.failed == list(range(0, 300, 3))


class FiveMinutes(Bolt[Any, Any]):
    """Works for five minutes on each input; a patient one says every 20 s that it still does."""

    def __init__(self, patient: bool) -> None:
        self._patient = patient

    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        for _ in range(15):
            await asyncio.sleep(20)
            if self._patient:
                out.reset_timeout(tup)
        out.ack(tup)


@pytest.mark.simulated_time
@pytest.mark.parametrize(("patient", "outcome"), [(False, [("fail", "m")]), (True, [("ack", "m")])])
async def test_FS_H10_long_running_bolt(patient: bool, outcome: list[tuple[str, str]]) -> None:
    """While a bolt works for five minutes its input times out, unless the bolt resets the timeout; it is not
    disturbed, and its late ack harms nobody."""
    feeder = Feeder()
    topology = one_bolt(feeder, given(FiveMinutes(patient)), message_timeout=30, drain_timeout=None)
    async with topology.run() as running:
        await until(1)
        feeder.feed("a", "m")
        await until(400)
        assert running.statistics().components["b1"].acked == 1
    assert (feeder.outcomes, feeder.settled_at) == (outcome, {"m": 301 if patient else 45})


# FS-C: configuration.


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("topology_has", "spout_has", "effective"),
    [({}, {"max_spout_pending": 3}, 3), ({"max_spout_pending": 2}, {"max_spout_pending": 1}, 1),
     ({"max_spout_pending": 2}, {}, 2), ({}, {}, 1000)],
    ids=["FS_C1", "FS_C2", "FS_C3", "default"],
)  # fmt: skip
async def test_FS_C1_FS_C2_FS_C3_precedence(topology_has: Any, spout_has: Any, effective: int) -> None:
    """An option given beats the default, a component's the topology's, and the topology's the default."""
    topology, feeder = Topology("C", drain_timeout=0, **topology_has), Feeder()
    topology.bolt("b1", Hold, topology.spout("s1", given(feeder), **spout_has).shuffle())
    async with topology.run() as running:
        for number in range(effective + 1):
            feeder.feed(number, number)
        await settle()
        assert running.statistics().components["s1"].pending == effective
