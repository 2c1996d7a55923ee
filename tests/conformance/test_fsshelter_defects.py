"""None of FsShelter's defects: D1 to D17, each with the test that would show it, here or in ``tests/law``."""

from __future__ import annotations

import ast
import asyncio
import itertools
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from stormlet import (
    Collector,
    DirectStream,
    FailureKind,
    InvalidEmit,
    InvalidTopology,
    Spout,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Ack, Feeder, Forward, Hold, Join, given, take_a_second
from tests.conformance.kit import Numbers, TaskIndex, collect, of_tasks, one_bolt, settle, until
from tests.engines import Engine
from tests.helpers import now, run_to_end


@pytest.mark.simulated_time
async def test_D2_untracked_emits_are_not_pending() -> None:
    """An unreliable spout emits far past max_spout_pending and never stalls."""
    spout = Numbers(last=999, tracked=False)
    running = await run_to_end(one_bolt(spout, Ack, max_spout_pending=2))
    counts = running.statistics().components
    assert (counts["b1"].executed, counts["s1"].pending, spout.outcomes) == (1000, 0, [])


@pytest.mark.simulated_time
async def test_D3_a_tracked_emit_that_reaches_nobody_is_acked() -> None:
    """On a stream without subscribers every message is acked at once, so that the spout does not stall."""
    topology, spout = Topology("D3", max_spout_pending=2), Numbers(last=99)
    topology.spout("s1", given(spout))
    await run_to_end(topology)
    assert (spout.acked, now()) == (list(range(100)), 0)


class EmitsThenHolds(Hold):
    """Emits an anchored child for each input, and holds the input."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value, anchors=tup)
        super().execute(tup, out)


@pytest.mark.simulated_time
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
async def test_D4_every_replica_of_an_all_grouping_counts(replicas: int, backwards: bool) -> None:
    """The ack comes with the last replica, in whatever order they are acked."""
    topology, feeder, bolts = Topology("D4"), Feeder(), [Hold() for _ in range(replicas)]
    left = iter(bolts)
    topology.bolt("b1", lambda: next(left), topology.spout("s1", given(feeder)).all(), parallelism=replicas)
    async with topology.run():
        feeder.feed("a", 1)
        for moment, bolt in enumerate(reversed(bolts) if backwards else bolts, 1):
            await until(moment)
            assert feeder.outcomes == []
            bolt.ack()
        await settle()
        assert feeder.settled_at == {1: replicas}


@pytest.mark.simulated_time
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("early", [False, True], ids=["interleaved", "sequential"])
async def test_D4_every_child_of_every_replica_counts(replicas: int, early: bool) -> None:
    """Whether each child is acked before the next replica is, or after all of them, the last ack is the
    tree's."""
    topology, feeder, children = Topology("D4"), Feeder(), Hold()
    bolts = [EmitsThenHolds() for _ in range(replicas)]
    left, numbers = iter(bolts), topology.spout("s1", given(feeder))
    copies = topology.bolt("b1", lambda: next(left), numbers.all(), parallelism=replicas)
    topology.bolt("b2", given(children), copies.shuffle())
    async with topology.run():
        feeder.feed("a", 1)
        await settle()
        replica_acks = [bolt.ack for bolt in bolts]
        child_acks = [children.ack_first] * replicas
        acks = (
            itertools.chain(*zip(replica_acks, child_acks, strict=True))
            if early
            else replica_acks + child_acks
        )
        for moment, ack in enumerate(acks, 1):
            await until(moment)
            assert feeder.outcomes == []
            ack()
        await settle()
        assert feeder.settled_at == {1: 2 * replicas}


@pytest.mark.simulated_time
async def test_D4_a_failing_replica_fails_the_tree() -> None:
    """Acked by the first replica, the tree is still failed by the second."""
    topology, feeder, bolts = Topology("D4"), Feeder(), [Hold(), Hold()]
    left = iter(bolts)
    topology.bolt("b1", lambda: next(left), topology.spout("s1", given(feeder)).all(), parallelism=2)
    async with topology.run():
        feeder.feed("a", 1)
        await settle()
        bolts[0].ack()
        await settle()
        bolts[1].fail("a")
    assert feeder.outcomes == [("fail", 1)]


@pytest.mark.simulated_time
@pytest.mark.parametrize("inputs", [1, 2, 3, 7])
async def test_D5_a_joined_output_is_delivered_once(inputs: int) -> None:
    """Anchored to several inputs, one tuple is delivered once, and all their trees wait for it."""
    topology, feeder, last = Topology("D5"), Feeder(), Hold()
    joined = topology.bolt("b1", given(Join(inputs)), topology.spout("s1", given(feeder)).shuffle())
    topology.bolt("b2", given(last), joined.shuffle())
    async with topology.run() as running:
        for number in range(inputs):
            feeder.feed(number, number)
        await until(1)
        assert ([tup.value for tup in last.held], feeder.outcomes) == ([list(range(inputs))], [])
        last.ack()
        await settle()
        assert feeder.settled_at == dict.fromkeys(range(inputs), 1)
        assert running.statistics().components["b1"].transferred == 1


@pytest.mark.simulated_time
async def test_D6_a_direct_emit_needs_a_receiver() -> None:
    """Without one it raises in the emit, and the input fails at once instead of timing out."""
    topology, feeder = Topology("D6"), Feeder()
    direct = topology.bolt(
        "b1", Forward, topology.spout("s1", given(feeder)).shuffle(), outputs=DirectStream()
    )
    topology.bolt("b2", Ack, direct.direct())
    async with topology.run():
        feeder.feed("a", 1)
        await settle()
    assert feeder.settled_at == {1: 0}
    assert isinstance(feeder.failures[1].exception, InvalidEmit)


class NotesTheEnd(Feeder):
    """Notes its close among the outcomes."""

    def close(self) -> None:
        self.outcomes.append(("close", None))


@pytest.mark.simulated_time
async def test_D7_outcomes_of_the_drain_reach_the_spout() -> None:
    """What is acked or failed while the topology drains is told to the spout, before it is closed."""
    spout, bolt = NotesTheEnd(), Hold()
    async with one_bolt(spout, given(bolt)).run():
        spout.feed("a", 1)
        spout.feed("b", 2)
        await until(1)
        asyncio.get_running_loop().call_at(2, bolt.ack, "a")
        asyncio.get_running_loop().call_at(3, bolt.fail, "b")
    assert spout.outcomes == [("ack", 1), ("fail", 2), ("close", None)]
    assert spout.settled_at == {1: 2, 2: 3}


@pytest.mark.simulated_time
async def test_D8_a_drain_lasts_as_long_as_it_must() -> None:
    """An idle topology stops at once; a busy one at the very moment of its last ack."""
    feeder, bolt = Feeder(), Hold()
    async with one_bolt(feeder, given(bolt)).run():
        await until(1)
    assert now() == 1
    feeder, bolt = Feeder(), Hold()
    async with one_bolt(feeder, given(bolt)).run():
        feeder.feed("a", 1)
        await until(2)
        asyncio.get_running_loop().call_at(7, bolt.ack)
    assert now() == 7


@pytest.mark.simulated_time
async def test_D11_a_failure_says_why() -> None:
    """Failed, timed out, overflowed, shut down and lost are told apart, with the component where there is one."""
    feeder, bolt = Feeder(), Hold()
    topology = one_bolt(feeder, given(bolt), message_timeout=10, acker_high_water=2, drain_timeout=1)
    async with topology.run() as running:
        feeder.feed("lost", "lost")
        await settle()
        running.kill("b1")
        await until(1)
        for name in ("failed", "late", "late, too", "left"):
            feeder.feed(name, name)
        feeder.feed("over", "over")
        await until(12)
        bolt.fail("failed")
        assert bolt.out is not None
        bolt.out.reset_timeout(bolt.held[-1])
        await until(15.5)
    assert {name: str(failure) for name, failure in feeder.failures.items()} == {
        "lost": "task lost in b1[0]: TaskKilled('somebody has killed it')",
        "over": "overflow",
        "failed": "failed in b1[0]",
        "late": "timeout, held by 'b1'",
        "late, too": "timeout, held by 'b1'",
        "left": "shutdown",
    }


@pytest.mark.simulated_time
async def test_D12_a_crash_is_told_to_the_host() -> None:
    """What dies right after each start, though each was a success, uses up its restarts; then the host's block is
    cancelled and raises it."""
    made: list[Spout[Any]] = []

    class Broken(Feeder):
        def next_tuple(self, out: SpoutCollector[Any]) -> None:
            made.append(self)
            raise OSError("the source is gone")

    topology = Topology("D12")
    topology.bolt("b1", Ack, topology.spout("s1", Broken).shuffle())
    with pytest.raises(TopologyCrashed, match=r"next_tuple of s1\[0\] raised OSError") as caught:
        async with topology.run():
            await asyncio.sleep(3600)
    assert (len(made), type(caught.value.__cause__)) == (4, OSError)
    assert now() == pytest.approx(0.1 + 0.2 + 0.4)


class DiesOfItsTicks(Hold):
    """Holds its inputs, and dies of every tick."""

    def tick(self, out: Collector[Any]) -> None:
        raise OSError("the connection is gone")


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize(("every", "crashes"), [(100.0, False), (50.0, True)])
async def test_D12_restarts_are_limited_in_a_sliding_window(every: float, crashes: bool) -> None:
    """With one restart in 60 s, who dies every 100 s lives on for ever, and who dies every 50 s does not."""
    topology = Topology("D12", max_restarts=1, restart_window=60)
    topology.bolt("b1", DiesOfItsTicks, topology.spout("s1").shuffle(), tick=every)
    with pytest.raises(TopologyCrashed) if crashes else nullcontext():
        async with topology.run():
            await until(1050)
    assert now() == (pytest.approx(100.0, abs=1) if crashes else 1050)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_D12_what_was_in_flight_fails_with_its_task() -> None:
    """The moment the task dies, and not at a timeout, the spout is told that it is lost, and where."""
    feeder, topology = Feeder(), Topology("D12", message_timeout=1000)
    topology.bolt("b1", DiesOfItsTicks, topology.spout("s1", given(feeder)).shuffle(), tick=5.0)
    async with topology.run():
        feeder.feed("a", 1)
        await until(5.05)
        assert (feeder.settled_at, feeder.causes()) == ({1: 5}, {1: FailureKind.TASK_LOST})
        assert feeder.failures[1].component == "b1"


@pytest.mark.simulated_time
async def test_D12_a_pause_before_a_restart_holds_nobody_up() -> None:
    """While one bolt waits a minute for its next instance, spout and other bolts go on at once."""
    feeder, topology = Feeder(), Topology("D12", restart_delay=60, restart_delay_max=60)
    lines, other = topology.spout("s1"), topology.spout("s2", given(feeder))
    topology.bolt("b1", Ack, lines.shuffle())
    topology.bolt("b2", Ack, other.shuffle())
    async with topology.run() as running:
        running.kill("b1")
        for moment in (1, 2, 3):
            await until(moment)
            feeder.feed("a", moment)
        await settle()
        assert feeder.settled_at == {1: 1, 2: 2, 3: 3}


@pytest.mark.simulated_time
@pytest.mark.parametrize("ackers", [0, 1, 3, 17])
@pytest.mark.parametrize("capacity", [1, 3, 768])
async def test_D13_any_number_of_ackers_and_any_capacity(ackers: int, capacity: int) -> None:
    """Nothing must divide anything else or be a power of two; without ackers every message counts as acked."""
    spout = Numbers(last=99)
    topology = Topology("D13", ackers=ackers, queue_capacity=capacity)
    first = topology.bolt("b1", Forward, topology.spout("s1", given(spout)).shuffle(), parallelism=3)
    topology.bolt("b2", Ack, first.shuffle(), parallelism=2)
    running = await run_to_end(topology)
    assert sorted(spout.acked) == list(range(100))
    assert sum(each.executed for each in of_tasks(running, "b2")) == 100


@pytest.mark.simulated_time
async def test_D14_any_key_has_a_home(engine: Engine) -> None:
    """None, lists and what is inside them are keys; they go to the tasks they always went to."""
    topology = Topology("D14")
    keys = [None, "word", ["a", ["b"]], (1, 2.5), b"bytes", True]
    tasks = topology.bolt("b1", TaskIndex, topology.spout("s1", keys).fields(), parallelism=1000)
    seen = collect(topology, tasks)
    await engine.run_to_end(topology)
    assert sorted(seen) == [41, 249, 265, 598, 735, 858]


def test_D15_duplicate_ids_are_refused() -> None:
    """A second component of one id is an error, whatever their kinds."""
    topology = Topology("D15")
    lines = topology.spout("a")
    topology.bolt("b", Ack, lines.shuffle())
    for id in "ab":
        with pytest.raises(InvalidTopology, match=f"spout '{id}': topology 'D15' has a component of this id"):
            topology.spout(id)
        with pytest.raises(InvalidTopology, match=f"bolt '{id}': topology 'D15' has a component of this id"):
            topology.bolt(id, Ack, lines.shuffle())


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("parallelism", "concurrency", "seconds"), [(1, 1, 12), (3, 1, 4), (1, 4, 3), (3, 4, 1)]
)
async def test_D16_asynchronous_bolts_run_side_by_side(
    parallelism: int, concurrency: int, seconds: float
) -> None:
    """Tasks of a bolt wait beside each other, and so do the calls of one task as far as concurrency allows."""
    topology = Topology("D16")
    numbers = topology.spout("s1", range(12))
    topology.bolt("b1", take_a_second, numbers.shuffle(), parallelism=parallelism, concurrency=concurrency)
    await run_to_end(topology)
    assert now() == seconds


class EmitsThenWaits(Feeder):
    """Emits, and then waits for a minute in the same call."""

    async def next_tuple(self, out: SpoutCollector[Any]) -> None:
        if not self.acked:
            out.emit("a", message_id=1)
        await asyncio.sleep(60)


@pytest.mark.simulated_time
async def test_D16_outcomes_do_not_wait_for_next_tuple() -> None:
    """A spout that is suspended in next_tuple has emitted what it emitted, and gets its outcome at once."""
    spout = EmitsThenWaits()
    async with one_bolt(spout, Ack).run():
        await until(1)
        assert spout.settled_at == {1: 0}


def test_D17_no_conformance_test_waits_for_the_wall_clock() -> None:
    """Every asynchronous test here runs on simulated time, and no module reads a clock or sleeps by it."""
    for file in Path(__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert not {"time", "datetime", "threading"} & {each.name for each in node.names}, file.name
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                marks = [ast.unparse(each) for each in node.decorator_list]
                assert any("simulated_time" in each for each in marks), f"{file.name}: {node.name}"
