"""The rules C1 to C6 of the law, on the running engine."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    FailureKind,
    InvalidTopology,
    Running,
    Spout,
    SpoutCollector,
    StartFailed,
    TaskContext,
    To,
    Topology,
    TopologyCrashed,
    TopologyStopping,
    Tree,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from stormlet.errors import EndOfStream
from stormlet.testing.loop import pending_tasks
from tests.cast import AckLater, Counting, Endless, Forget, Note, NotesOutcomes, Slow, given, ignore, refuse
from tests.helpers import RefusingKey, leave_by, now, run_to_end

Log = list[str]


# C1: the start.


def logged_spout(log: Log, failing: str = "") -> type[Spout[int]]:
    """A spout that notes its calls and fails in one of them."""

    class Logged(Endless):
        def note(self, call: str) -> None:
            log.append(f"spout {call}")
            if call == failing:
                raise ZeroDivisionError(call)

        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.note("open")

        def activate(self) -> None:
            self.note("activate")

        def deactivate(self) -> None:
            self.note("deactivate")

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            self.note("next_tuple")
            super().next_tuple(out)

        def close(self) -> None:
            self.note("close")

    return Logged


def logged_bolt(log: Log, name: str = "bolt", failing: str = "", seconds: float = 0) -> type[Bolt[int, int]]:
    """A bolt that takes its time to prepare, notes its calls and fails in one of them."""

    class Logged(Bolt[int, int]):
        async def prepare(self, context: TaskContext) -> None:
            await asyncio.sleep(seconds)
            log.append(f"{name} prepare")
            if failing == "prepare":
                raise ZeroDivisionError(failing)

        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            await asyncio.sleep(0.1)
            out.ack(tup)

        def cleanup(self) -> None:
            log.append(f"{name} cleanup")
            if failing == "cleanup":
                raise ZeroDivisionError(failing)

    return Logged


@pytest.mark.simulated_time
async def test_C1_all_bolts_are_prepared_before_a_spout_is_opened() -> None:
    """However long a bolt takes; and the block is entered when the spouts are open."""
    log: Log = []
    topology = Topology("order")
    source = topology.spout("spout", logged_spout(log), max_spout_pending=1)
    topology.bolt("slow", logged_bolt(log, "slow", seconds=5), source.shuffle())
    topology.bolt("fast", logged_bolt(log, "fast"), source.shuffle(), parallelism=2)
    async with topology.run():
        assert log[:4] == ["fast prepare"] * 2 + ["slow prepare", "spout open"]
        assert now() == 5


@pytest.mark.simulated_time
async def test_C1_ackers_are_started_first() -> None:
    """When a bolt is prepared, the tasks of the ackers are there, and no task of a spout."""
    seen: list[list[str]] = []

    class Look(BasicBolt[int, int]):
        def prepare(self, context: TaskContext) -> None:
            seen.append([task.get_name() for task in pending_tasks(asyncio.get_running_loop())])

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None: ...

    topology = Topology("first", ackers=2)
    topology.bolt("look", Look, topology.spout("numbers", [1]).shuffle())
    await run_to_end(topology)
    assert seen[0][1:] == ["first/__acker[0]", "first/__acker[1]", "first/look[0]"]


@pytest.mark.simulated_time
async def test_C1_an_exception_in_prepare_fails_the_start() -> None:
    """The error names the task and has the exception as its cause; no spout is opened, no body run."""
    log: Log = []
    topology = Topology("prepare")
    source = topology.spout("spout", logged_spout(log))
    topology.bolt("good", logged_bolt(log, "good"), source.shuffle())
    topology.bolt("bad", logged_bolt(log, "bad", failing="prepare", seconds=1), source.shuffle())
    with pytest.raises(StartFailed, match=r"prepare of bad\[0\]") as failed:
        async with topology.run():
            pytest.fail("the body must not run")
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert "good cleanup" in log
    assert not [call for call in log if call.startswith("spout")]


@pytest.mark.simulated_time
async def test_C1_an_exception_in_open_fails_the_start() -> None:
    """The bolts, which were prepared, are cleaned up."""
    log: Log = []
    topology = Topology("open")
    topology.bolt("bolt", logged_bolt(log), topology.spout("spout", logged_spout(log, "open")).shuffle())
    with pytest.raises(StartFailed, match=r"open of spout\[0\]") as failed:
        await run_to_end(topology)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert log[:2] == ["bolt prepare", "spout open"]
    assert "bolt cleanup" in log
    assert "spout next_tuple" not in log


@pytest.mark.simulated_time
async def test_C1_an_inactive_run_asks_no_spout_before_activate() -> None:
    """With ``active=False`` spouts are opened, but neither activated nor asked."""
    log: Log = []
    topology = Topology("inactive", max_spout_pending=1)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("spout", logged_spout(log)).shuffle())
    async with topology.run(active=False) as running:
        await asyncio.sleep(10)
        assert log == ["spout open"]
        running.activate()
        await asyncio.sleep(1)
        assert log == ["spout open", "spout activate", "spout next_tuple"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_C1_an_inactive_run_advances_no_generator(asynchronous: bool) -> None:
    """A generator is not begun before ``activate``."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        taken.append(1)
        yield 1

    async def numbers_async() -> AsyncIterator[int]:
        for number in numbers():
            yield number

    topology = Topology("inactive")
    source = topology.spout("numbers", numbers_async if asynchronous else numbers)
    topology.bolt("ignore", ignore, source.shuffle())
    async with topology.run(active=False) as running:
        await asyncio.sleep(10)
        assert taken == []
        running.activate()
        await running.finished()
    assert taken == [1]


@pytest.mark.simulated_time
async def test_C1_deactivate_stops_the_asking_and_lets_the_rest_be_processed() -> None:
    """What is under way is acked; nothing new comes until the run is activated again."""
    log: Log = []
    topology = Topology("switch", max_spout_pending=1)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("spout", logged_spout(log)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.deactivate()
        await asyncio.sleep(20)
        assert log == ["spout open", "spout activate", "spout next_tuple", "spout deactivate"]
        assert running.statistics().components["spout"].acked == 1
        running.activate()
        await asyncio.sleep(1)
        assert log[4:] == ["spout activate", "spout next_tuple"]


@pytest.mark.simulated_time
async def test_C1_deactivate_interrupts_an_asynchronous_next_tuple() -> None:
    """It is cancelled at its await and not called again before ``activate``."""
    asked: list[float] = []

    class Sleeping(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            asked.append(now())
            await asyncio.get_running_loop().create_future()

        async def deactivate(self) -> None:
            await asyncio.sleep(1)
            asked.append(-now())

    topology = Topology("sleeping")
    topology.spout("sleeping", Sleeping)
    async with topology.run() as running:
        await asyncio.sleep(5)
        running.deactivate()
        await asyncio.sleep(5)
        running.activate()
        await asyncio.sleep(5)
    assert asked == [0, -6, 10]


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["next_tuple", "ack"])
async def test_C1_a_spout_that_deactivates_is_not_asked_again(method: str) -> None:
    """Neither later in the same turn, nor after the outcome that it was told between two calls."""
    asked: list[float] = []

    class Switching(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if len(asked) == 102:
                raise EndOfStream
            asked.append(now())
            out.emit(1, message_id=len(asked))
            self.heard("next_tuple", len(asked))

        def ack(self, message_id: object) -> None:
            self.heard("ack", message_id)

        def heard(self, what: str, message_id: object) -> None:
            if (what, message_id) == (method, 100):
                running.deactivate()

    topology = Topology("switching", ackers=0)
    topology.bolt("ignore", ignore, topology.spout("switching", Switching).shuffle())
    async with topology.run(active=False) as running:
        running.activate()
        await asyncio.sleep(10)
        assert asked == [0] * 100
        running.activate()
        await running.finished()
    assert asked == [0] * 100 + [10] * 2


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_C1_a_generator_that_deactivates_is_not_advanced_again(asynchronous: bool) -> None:
    """What it yields then is the last."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(300):
            taken.append(number)
            if number % 100 == 99:
                running.deactivate()
            yield number

    async def numbers_async() -> AsyncIterator[int]:
        for number in numbers():
            yield number

    topology = Topology("switching")
    source = topology.spout("numbers", numbers_async if asynchronous else numbers)
    topology.bolt("ignore", ignore, source.shuffle())
    async with topology.run(active=False) as running:
        for asked in (100, 200, 300):
            running.activate()
            await asyncio.sleep(10)
            assert len(taken) == asked


@pytest.mark.simulated_time
async def test_C1_an_asynchronous_next_tuple_may_deactivate() -> None:
    """Nothing of it is cancelled but an await that it begins after that; what it emitted stands, and nobody dies."""
    done: list[str] = []

    class Switching(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            await asyncio.sleep(1)
            out.emit(1, message_id=len(done))
            running.deactivate()
            if len(done) > 10:
                await asyncio.sleep(1)
            done.append("next_tuple")

        async def ack(self, message_id: object) -> None:
            await asyncio.sleep(0.1)
            done.append("ack")

        async def deactivate(self) -> None:
            await asyncio.sleep(0.1)
            done.append("deactivate")

    topology = Topology("switching")
    topology.bolt("ignore", ignore, topology.spout("switching", Switching).shuffle())
    async with topology.run(active=False) as running:
        for _ in range(5):
            running.activate()
            await asyncio.sleep(10)
        statistics = running.statistics().components["switching"]
    assert (statistics.acked, statistics.restarts) == (5, 0)
    assert sorted(done) == ["ack"] * 5 + ["deactivate"] * 5 + ["next_tuple"] * 4


@pytest.mark.simulated_time
async def test_C1_activate_and_deactivate_are_told_in_turn() -> None:
    """Who is switched there and back before it could be told hears nothing."""
    told: list[str] = []

    class Hearing(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            """Nothing comes."""

        def activate(self) -> None:
            told.append("activate")

        def deactivate(self) -> None:
            told.append("deactivate")

    topology = Topology("hearing")
    topology.bolt("ignore", ignore, topology.spout("hearing", Hearing).shuffle())
    async with topology.run(active=False) as running:
        running.activate()
        running.deactivate()
        await asyncio.sleep(1)
        assert told == []
        running.activate()
        running.deactivate()
        running.activate()
        await asyncio.sleep(1)
        assert told == ["activate"]
        running.deactivate()
        await asyncio.sleep(1)
    assert told == ["activate", "deactivate"]


# C2: finish.


class Finishing(BasicBolt[object, object]):
    """Forwards what it gets; its ``finish`` takes a second, is noted and emits one value more."""

    log: list[tuple[str, float]]

    def prepare(self, context: TaskContext) -> None:
        self.name = context.component

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.log.append((f"{self.name} gets {tup.value}", now()))
        out.emit(tup.value)

    async def finish(self, out: Collector[object]) -> None:
        await asyncio.sleep(1)
        self.log.append((f"{self.name} finishes", now()))
        out.emit(f"end of {self.name}")


def finishing(log: list[tuple[str, float]]) -> type[Finishing]:
    """A class of its own, with its own log."""
    return type("Finishing", (Finishing,), {"log": log})


@pytest.mark.simulated_time
async def test_C2_finish_goes_downstream_and_what_it_emits_is_processed_first() -> None:
    """Each bolt finishes when it has executed what the finish of the one before has emitted."""
    log: list[tuple[str, float]] = []
    logic = finishing(log)
    topology = Topology("chain")
    second = topology.bolt("first", logic, topology.spout("one", ["x"]).shuffle())
    topology.bolt("second", logic, second.shuffle())
    await run_to_end(topology)
    assert [event for event, _ in log] == [
        "first gets x",
        "second gets x",
        "first finishes",
        "second gets end of first",
        "second finishes",
    ]


@pytest.mark.simulated_time
async def test_C2_a_component_finishes_after_all_its_upstreams() -> None:
    """The end of a diamond waits for the longer of its two sides."""
    log: list[tuple[str, float]] = []
    logic = finishing(log)
    topology = Topology("diamond")
    source = topology.spout("one", ["x"])
    short = topology.bolt("short", logic, source.shuffle())
    long = topology.bolt("long 2", logic, topology.bolt("long 1", logic, source.shuffle()).shuffle())
    topology.bolt("last", logic, short.shuffle(), long.shuffle())
    await run_to_end(topology)
    finished = [event.removesuffix(" finishes") for event, _ in log if "finishes" in event]
    assert sorted(finished) == ["last", "long 1", "long 2", "short"]
    assert finished[-1] == "last"
    assert finished.index("long 1") < finished.index("long 2")


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_source_may_yield() -> None:
    """It waits for the end of a generator that sleeps."""
    log: list[tuple[str, float]] = []

    async def late() -> AsyncIterator[str]:
        yield "x"
        await asyncio.sleep(30)

    topology = Topology("late")
    topology.bolt("bolt", finishing(log), topology.spout("late", late).shuffle())
    await run_to_end(topology)
    assert log == [("bolt gets x", 0), ("bolt finishes", 31)]


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_source_is_only_paused() -> None:
    """A spout that may have no more messages pending goes on when they are acked."""
    log: list[tuple[str, float]] = []

    class Finishes(AckLater):
        def finish(self, out: Collector[int]) -> None:
            log.append(("finish", now()))

    topology = Topology("paused", max_spout_pending=2)
    topology.bolt("later", partial(Finishes, 10), topology.spout("numbers", range(6)).shuffle())
    await run_to_end(topology)
    assert log == [("finish", 30)]


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_replay_waits() -> None:
    """It is called when the message that failed has been executed again."""
    log: list[tuple[str, float]] = []

    class FailFirst(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            if tup.attempt == 1:
                raise ValueError(tup.value)
            log.append(("executed", now()))

        def finish(self, out: Collector[int]) -> None:
            log.append(("finish", now()))

    topology = Topology("waits", replay_delay=10.0)
    topology.bolt("fail", FailFirst, topology.spout("numbers", [1]).shuffle())
    await run_to_end(topology)
    assert [event for event, _ in log] == ["executed", "finish"]


@pytest.mark.simulated_time
async def test_C2_finish_is_called_on_all_tasks_once() -> None:
    """Also on those that never got a tuple; and not again where nothing came since."""
    log: list[tuple[str, float]] = []
    topology = Topology("tasks")
    topology.bolt("bolt", finishing(log), topology.spout("one", ["x"]).shuffle(), parallelism=3)
    await run_to_end(topology)
    assert [event for event, _ in log].count("bolt finishes") == 3


@pytest.mark.simulated_time
async def test_C2_finish_is_called_where_no_tuple_ever_came() -> None:
    """Behind an empty source a bolt can still emit its end."""
    log: list[tuple[str, float]] = []
    topology = Topology("empty")
    first = topology.bolt("first", finishing(log), topology.spout("none", []).shuffle())
    topology.bolt("second", finishing(log), first.shuffle())
    await run_to_end(topology)
    assert [event for event, _ in log] == ["first finishes", "second gets end of first", "second finishes"]


@pytest.mark.simulated_time
async def test_C2_a_cycle_finishes_as_one_component() -> None:
    """Its bolts finish together, and what they emit then goes round before the next component finishes."""
    log: list[tuple[str, float]] = []

    class Once(finishing(log)):  # type: ignore[misc]
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.log.append((f"{self.name} gets {tup.value}", now()))
            if len(tup.value) < 9:
                out.emit(f"{tup.value}!")

        def finish(self, out: Collector[str]) -> None:
            self.log.append((f"{self.name} finishes", now()))
            if [event for event, _ in self.log].count(f"{self.name} finishes") == 1:
                out.emit("finish")

    topology = Topology("cycle")
    there = topology.bolt("there", Once, topology.spout("one", ["start"]).shuffle())
    back = topology.bolt("back", Once, there.shuffle())
    topology.connect(there, back.shuffle())
    topology.bolt("after", finishing(log), back.shuffle())
    await run_to_end(topology)
    events = [event for event, _ in log]
    first = events.index("there finishes")
    assert events[first + 1] == "back finishes"
    assert "back gets finish!!" in events[: events.index("after finishes")]
    assert events[-1] == "after finishes"


class HoldAll(Bolt[int, int]):
    """Holds every input, and emits their sum at the end."""

    anchored = True

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.held.append(tup)

    def finish(self, out: Collector[int]) -> None:
        if self.held:
            out.emit(sum(each.value for each in self.held), anchors=self.held if self.anchored else ())
        for tup in self.held:
            out.ack(tup)
        self.held = []


@pytest.mark.simulated_time
async def test_C2_what_finish_emits_joins_the_trees_of_held_inputs() -> None:
    """When the sum is refused downstream, all the messages that it was made of fail."""
    topology = Topology("joined")
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("refuse", refuse, total.shuffle())
    running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2, 3]


@pytest.mark.simulated_time
async def test_C2_what_finish_emits_unanchored_is_processed_and_untracked() -> None:
    """The sum is executed, and its failure fails nobody."""

    class Unanchored(HoldAll):
        anchored = False

    topology = Topology("unanchored")
    total = topology.bolt("sum", Unanchored, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("refuse", refuse, total.shuffle())
    running = await run_to_end(topology)
    statistics = running.statistics().components
    assert (statistics["refuse"].failed, statistics["numbers"].failed) == (1, 0)
    assert statistics["numbers"].acked == 3


@pytest.mark.simulated_time
async def test_C2_a_later_replay_is_executed_and_finish_called_again() -> None:
    """The sum fails downstream at first; its inputs return, and the second sum is acked."""
    sums: list[int] = []

    def fail_first(value: int) -> None:
        sums.append(value)
        if len(sums) == 1:
            raise ValueError(value)

    topology = Topology("again")
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("fail", fail_first, total.shuffle())
    running = await run_to_end(topology)
    assert sums[0] == 6
    assert sum(sums[1:]) == 6
    assert running.statistics().components["numbers"].acked == 3


# C3: drain.


@pytest.mark.simulated_time
async def test_C3_leaving_the_block_drains() -> None:
    """The spout is not asked again; what it has emitted is processed, and its outcomes reach it."""
    log: list[tuple[str, float]] = []

    class Logged(Endless):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            log.append(("next_tuple", now()))
            super().next_tuple(out)

        def ack(self, message_id: object) -> None:
            log.append((f"ack {message_id}", now()))

    topology = Topology("drain", max_spout_pending=2)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("numbers", Logged).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert log == [("next_tuple", 0)] * 2 + [("ack 0", 3), ("ack 1", 6)]


@pytest.mark.simulated_time
async def test_C3_stop_drains_while_the_block_goes_on() -> None:
    """``finished()`` returns when everything is settled; leaving the block then takes no time."""
    topology = Topology("stop", max_spout_pending=2)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("numbers", Endless).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await running.finished()
        assert now() == 6
        await asyncio.sleep(50)
        assert running.statistics().components["numbers"].acked == 2
    assert now() == 56


@pytest.mark.simulated_time
async def test_C3_a_drain_calls_finish() -> None:
    """The sum of what an endless source has yielded so far is written."""
    seen: list[int] = []
    topology = Topology("finish", max_spout_pending=3)
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", itertools.count(1)).shuffle())
    topology.bolt("note", partial(Note, seen), total.shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert seen == [1 + 2 + 3]


@pytest.mark.simulated_time
async def test_C3_a_drain_processes_what_finish_emits() -> None:
    """Also where every message was acked before, so that no tree is open."""
    log: list[tuple[str, float]] = []

    async def waiting() -> AsyncIterator[str]:
        yield "x"
        await asyncio.get_running_loop().create_future()

    topology = Topology("finish")
    first = topology.bolt("first", finishing(log), topology.spout("waiting", waiting).shuffle())
    topology.bolt("second", finishing(log), first.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        assert running.statistics().components["waiting"].acked == 1
    assert log[2:] == [("first finishes", 2), ("second gets end of first", 2), ("second finishes", 3)]


@pytest.mark.simulated_time
@pytest.mark.parametrize("catching", [False, True])
async def test_C3_emits_from_ack_and_fail_are_refused_while_draining(catching: bool) -> None:
    """They raise TopologyStopping, which does no harm if the spout lets it pass."""
    refused: list[object] = []

    class Again(Endless):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.out = out

        def ack(self, message_id: object) -> None:
            try:
                self.out.emit(0, message_id=message_id)
            except TopologyStopping:
                refused.append(message_id)
                if not catching:
                    raise

        def fail(self, message_id: object, failure: Failure) -> None:
            self.ack(message_id)

    async def odd(value: int) -> None:
        await asyncio.sleep(3)
        if value % 2:
            raise ValueError(value)

    topology = Topology("again", max_spout_pending=2)
    topology.bolt("odd", odd, topology.spout("numbers", Again).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert refused == [0, 1]
    assert running.statistics().components["odd"].executed == 2


@pytest.mark.simulated_time
async def test_C3_a_cancelled_next_tuple_that_emits_does_not_crash_the_drain() -> None:
    """Its emit is refused as well, and the messages under way are settled."""

    class Last(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            out.emit(1, message_id=1)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                out.emit(2, message_id=2)

    topology = Topology("last")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("last", Last).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["last"].acked == 1


def fail_until(moment: float, log: list[float]) -> Callable[[object], None]:
    """A bolt that fails everything until some time."""

    def bolt(value: object) -> None:
        log.append(now())
        if now() < moment:
            raise ValueError(value)

    return bolt


@pytest.mark.simulated_time
async def test_C3_waiting_replays_are_replayed_if_the_deadline_allows() -> None:
    """A message that failed before the stop is acked after its pause."""
    executed: list[float] = []
    topology = Topology("replay", replay_delay=5.0, drain_timeout=20.0)
    topology.bolt("fail", fail_until(5, executed), topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["one"].acked == 1
    assert now() == executed[-1] >= 5


class Outcomes(Counting):
    """Notes what it is told."""

    log: list[tuple[object, object, float]]

    def ack(self, message_id: object) -> None:
        self.log.append((message_id, None, now()))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.log.append((message_id, failure.kind, now()))


@pytest.mark.simulated_time
async def test_C3_at_the_deadline_all_leftovers_fail_with_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    """Held, queued and running ones; the spout is told, and they are counted and logged."""

    class Told(Outcomes):
        log: list[tuple[object, object, float]] = []  # noqa: RUF012

    topology = Topology("deadline", drain_timeout=7.0)
    source = topology.spout("numbers", Told)
    topology.bolt("hold", Forget, source.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert Told.log == [(number, FailureKind.SHUTDOWN, 8) for number in range(3)]
    assert now() == 8
    assert running.statistics().left_over == 3
    assert "3 messages of 'numbers'" in caplog.text


@pytest.mark.simulated_time
async def test_C3_a_replay_that_the_deadline_does_not_allow_fails_with_shutdown() -> None:
    """A value that waits for its replay is handed to the dead letters' callable with that cause."""
    letters: list[DeadLetter] = []
    topology = Topology("late", replay_delay=20.0, drain_timeout=3.0)
    topology.bolt("fail", fail_until(99, []), topology.spout("one", ["x"]).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
    assert [each.failure.kind for each in letters] == [FailureKind.SHUTDOWN]
    assert running.statistics().left_over == 1
    assert now() == 4


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_C3_a_replay_whose_emit_raises_is_drained() -> None:
    """The task that died of it is restarted, and emits it before the deadline."""
    executed: list[float] = []
    topology = Topology("refused", replay_delay=5.0, drain_timeout=20.0)
    spout = topology.spout("one", ["x"])
    topology.bolt("fail", fail_until(5, executed), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["one"].acked == 1
    assert now() == executed[-1]


@pytest.mark.simulated_time(allow_leaks=["trees", "errors"])
async def test_C3_a_replay_whose_emit_raises_is_left_over_at_the_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its task is dead for longer than the drain may last: the message is counted and reported."""
    topology = Topology("refused", restart_delay=50.0, restart_delay_max=50.0, drain_timeout=3.0)
    spout = topology.spout("one", ["x"])
    topology.bolt("fail", fail_until(99, []), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        await asyncio.sleep(1)
    statistics = running.statistics()
    assert (statistics.left_over, statistics.components["one"].pending) == (1, 0)
    assert "1 messages of 'one'" in caplog.text


@pytest.mark.simulated_time
async def test_C3_without_deadline_a_drain_takes_what_it_takes() -> None:
    """With ``drain_timeout=None`` a call of an hour is waited for."""
    topology = Topology("patient", drain_timeout=None, message_timeout=None)
    topology.bolt("hour", lambda _: asyncio.sleep(3600), topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert now() == 3600
    assert running.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
async def test_C3_the_default_deadline_is_thirty_seconds() -> None:
    """A message that nobody acks holds a drain up for so long, and no longer."""
    topology = Topology("default", message_timeout=None)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert now() == 31


@pytest.mark.simulated_time
async def test_C3_a_second_stop_cancels() -> None:
    """The drain is over at once, the call that runs is cancelled, and leaving takes no time."""
    cancelled: list[float] = []

    async def stuck(value: object) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            cancelled.append(now())
            raise

    topology = Topology("second", message_timeout=None)
    topology.bolt("stuck", stuck, topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await asyncio.sleep(1)
        running.stop()
        await running.finished()
        assert now() == 2
    assert now() == 2
    assert cancelled == [2]
    assert running.statistics().left_over == 1


@pytest.mark.simulated_time
async def test_C3_a_second_stop_settles_the_trees_that_the_body_waits_for() -> None:
    """A body that awaits a tree gets its failure, SHUTDOWN, instead of waiting for ever."""
    topology = Topology("tree", message_timeout=None, drain_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("hold", Forget, fed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        running.stop()
        await asyncio.sleep(1)
        running.stop()
        with pytest.raises(TupleFailed) as failed:
            await asyncio.wait_for(tree_of(tree), 100)
        assert failed.value.failure.kind is FailureKind.SHUTDOWN


async def tree_of(tree: Tree[Any]) -> object:
    """Await a tree in a coroutine of its own."""
    return await tree


async def leave_normally(topology: Topology) -> None:
    async with topology.run():
        await asyncio.sleep(1)


async def leave_at_deadline(topology: Topology) -> None:
    async with topology.run(drain_timeout=0.0):
        await asyncio.sleep(1)


async def leave_by_exception(topology: Topology) -> None:
    with suppress(ZeroDivisionError):
        await leave_by(ZeroDivisionError(), topology)


async def leave_by_second_stop(topology: Topology) -> None:
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await asyncio.sleep(0)
        running.stop()


async def leave_by_cancellation(topology: Topology) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(leave_by(AssertionError(), topology, after=100), 1)


async def leave_by_crash(topology: Topology) -> None:
    topology.spout("crash", lambda: crashing_spout("next_tuple", 1)())
    with suppress(TopologyCrashed):
        await leave_by(AssertionError(), topology, after=100)


async def leave_before_the_start(topology: Topology) -> None:
    topology.bolt("bad", logged_bolt([], failing="prepare", seconds=1), topology.spout("no").shuffle())
    with suppress(StartFailed):
        await run_to_end(topology)


async def leave_during_the_start(topology: Topology) -> None:
    topology.bolt("late", logged_bolt([], seconds=100), topology.spout("no").shuffle())
    with suppress(TimeoutError):
        await asyncio.wait_for(run_to_end(topology), 1)


WAYS = [
    leave_during_the_start,
    leave_normally,
    leave_at_deadline,
    leave_by_exception,
    leave_by_second_stop,
    leave_by_cancellation,
    leave_by_crash,
    leave_before_the_start,
]


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("leave", WAYS)
async def test_C3_cleanup_and_close_are_always_called(leave: Callable[[Topology], Awaitable[None]]) -> None:
    """Once for each task that was prepared or opened, however the run ends; a failing one stops no other."""
    log: Log = []
    topology = Topology("always", max_spout_pending=3)
    source = topology.spout("spout", logged_spout(log, failing="close"))
    topology.bolt("failing", logged_bolt(log, failing="cleanup"), source.shuffle())
    topology.bolt("bolt", logged_bolt(log), source.shuffle(), parallelism=2)
    await leave(topology)
    assert log.count("bolt cleanup") == log.count("bolt prepare") == 3
    opened = leave not in (leave_during_the_start, leave_before_the_start)
    assert log.count("spout close") == log.count("spout open") == opened


@pytest.mark.simulated_time
async def test_C3_asynchronous_cleanup_and_close_are_awaited() -> None:
    """The block is left when they have returned, spouts first."""
    log: list[tuple[str, float]] = []

    class Closing(Counting):
        async def close(self) -> None:
            await asyncio.sleep(2)
            log.append(("close", now()))

    class Cleaning(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            pass

        async def cleanup(self) -> None:
            await asyncio.sleep(3)
            log.append(("cleanup", now()))

    topology = Topology("async")
    topology.bolt("bolt", Cleaning, topology.spout("spout", Closing).shuffle())
    await run_to_end(topology)
    assert log == [("close", 2), ("cleanup", 5)]


# C4: messages of the host.


def host_topology(logic: Any, **options: Any) -> tuple[Topology, Any]:
    """A topology that the host feeds, and its spout's stream."""
    topology = Topology("host", **options)
    fed = topology.spout("fed")
    topology.bolt("logic", logic, fed.shuffle())
    return topology, fed


@pytest.mark.simulated_time
async def test_C4_the_users_ack_and_fail_are_not_called_for_it() -> None:
    """On the stream of a Spout class, the host's messages concern its tree alone."""
    topology, spout = Topology("told"), NotesOutcomes()
    spout.count = 0
    source = topology.spout("numbers", given(spout))
    topology.bolt("logic", lambda value: refuse(value) if value == "bad" else None, source.shuffle())
    async with topology.run() as running:
        await (await running.emit(source, "good"))
        with pytest.raises(TupleFailed, match="refused"):
            await (await running.emit(source, "bad"))
    assert spout.heard == []
    assert running.dead_letters == ()


@pytest.mark.simulated_time
async def test_C4_it_has_one_attempt() -> None:
    """The first failure is the outcome, with the bolt's exception as its cause."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(99, executed))
    async with topology.run() as running:
        with pytest.raises(TupleFailed) as failed:
            await (await running.emit(fed, "x"))
        await asyncio.sleep(100)
    assert len(executed) == 1
    assert failed.value.failure.component == "logic"
    assert isinstance(failed.value.__cause__, ValueError)


@pytest.mark.simulated_time
async def test_C4_attempts_are_made_as_often_as_the_host_says() -> None:
    """With ``attempts=3`` the third failure is the outcome, after pauses as for other replays."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(99, executed), max_attempts=2)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        with pytest.raises(TupleFailed):
            await tree
    assert len(executed) == 3
    assert 0.1 <= executed[1] - executed[0] <= 0.2 <= executed[2] - executed[1]


@pytest.mark.simulated_time
async def test_C4_a_later_attempt_can_succeed() -> None:
    """The tree is open between the attempts, and acked by the second one."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(0.05, executed))
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        await asyncio.sleep(0.01)
        assert not tree.done
        assert await tree == []
    assert len(executed) == 2


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_C4_an_attempt_whose_emit_raises_is_made_by_the_restarted_task() -> None:
    """An exception of a key function is no outcome: the tree stays open until the attempt is made."""
    executed: list[float] = []
    topology = Topology("host")
    fed = topology.spout("fed")
    topology.bolt("bolt", fail_until(0.05, executed), fed.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        await asyncio.wait_for(tree, 60)
    assert len(executed) == 2


@pytest.mark.simulated_time
async def test_C4_a_crash_of_an_attempt_that_cannot_be_emitted_is_an_outcome() -> None:
    """Whoever waits for the tree hears of it, as of any other that the end leaves over."""
    topology = Topology("host", max_restarts=1)
    fed = topology.spout("fed")
    topology.bolt("bolt", fail_until(99, []), fed.fields(RefusingKey(times=9)), parallelism=2)
    trees: list[Tree[object]] = []

    async def body(running: Running) -> None:
        trees.append(await running.emit(fed, "x", attempts=3))
        await trees[0]

    await crash_in(topology, body)
    with pytest.raises(TupleFailed):
        await trees[0]
    assert [each.kind for each in trees[0].history] == [FailureKind.FAILED, FailureKind.SHUTDOWN]
    assert now() < 60


@pytest.mark.simulated_time
async def test_C4_a_permanent_failure_ends_the_attempts() -> None:
    """``Reject`` is the outcome whatever ``attempts`` says."""
    topology, fed = host_topology(refuse)
    async with topology.run() as running:
        with pytest.raises(TupleFailed, match="refused"):
            await (await running.emit(fed, "x", attempts=10))
    assert running.statistics().components["logic"].failed == 1


@pytest.mark.simulated_time
async def test_C4_the_death_of_an_acker_is_no_attempt() -> None:
    """What was open there is emitted again, as often as ackers die, and as the same attempt."""
    attempts: list[int] = []

    class Slow(Bolt[object, None]):
        async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            attempts.append(tup.attempt)
            await asyncio.sleep(1.0)
            out.ack(tup)

    topology, fed = host_topology(Slow, message_timeout=None)
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        for _ in range(3):
            await asyncio.sleep(0.9)
            running.kill("__acker")
        assert await tree == []
    assert attempts == [1, 1, 1, 1]
    assert [failure.kind for failure in tree.history] == [FailureKind.TASK_LOST] * 3


@pytest.mark.simulated_time
async def test_C4_the_death_of_a_bolt_is_an_attempt() -> None:
    """It held a tuple of the tree, which may be why it died."""
    topology, fed = host_topology(lambda value: asyncio.sleep(10))
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        await asyncio.sleep(1)
        running.kill("logic")
        with pytest.raises(TupleFailed, match="task lost in 'logic'"):
            await tree
        running.stop()


@pytest.mark.simulated_time
async def test_C4_to_find_no_room_is_an_attempt() -> None:
    """Awaiting a message that was refused ends, however long there is no room."""
    topology, fed = host_topology(Forget, message_timeout=None, acker_high_water=1, drain_timeout=0)
    async with topology.run() as running:
        *_, tree = [await running.emit(fed, "x", attempts=2) for _ in range(3)]
        with pytest.raises(TupleFailed, match="overflow"):
            await tree
        assert [failure.kind for failure in tree.history] == [FailureKind.OVERFLOW] * 2
        assert now() < 1


@pytest.mark.simulated_time
async def test_C4_a_timeout_is_an_outcome_of_its_own_kind() -> None:
    """It says which component still holds a tuple of the tree."""
    topology, fed = host_topology(Forget, message_timeout=4.0)
    async with topology.run() as running:
        with pytest.raises(TupleTimedOut, match="held by 'logic'"):
            await (await running.emit(fed, "x"))
        assert now() >= 4


@pytest.mark.simulated_time
@pytest.mark.parametrize("failing", [False, True])
async def test_C4_a_tree_may_be_awaited_any_number_of_times(failing: bool) -> None:
    """By several tasks while it is open, and again afterwards: always the same outcome."""

    async def logic(value: object) -> None:
        await asyncio.sleep(3)
        if failing:
            refuse(value)

    topology, fed = host_topology(logic)
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        waiting = asyncio.gather(*(tree_of(tree) for _ in range(3)), return_exceptions=True)
        outcomes = [*await waiting, *(await asyncio.gather(tree_of(tree), return_exceptions=True))]
        assert now() == 3
    assert [type(each) for each in outcomes] == [TupleFailed if failing else list] * 4


@pytest.mark.simulated_time
async def test_C4_a_tree_need_not_be_awaited(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody complains of a failure that nobody asked for, beyond the log line of the exception."""
    topology, fed = host_topology(refuse)
    with caplog.at_level(logging.WARNING, "asyncio"):
        async with topology.run() as running:
            await running.emit(fed, "x")
    assert running.statistics().components["logic"].failed == 1
    assert not [each for each in caplog.records if each.name == "asyncio"]


@pytest.mark.simulated_time
async def test_C4_cancelling_an_await_does_not_touch_the_tree() -> None:
    """It is processed on, and another await gets its outcome."""
    topology, fed = host_topology(partial(Slow, 3))
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        other = asyncio.ensure_future(tree_of(tree))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tree_of(tree), 1)
        assert not tree.done
        await other
        assert now() == 3
    assert running.statistics().components["fed"].acked == 1


def words_topology() -> tuple[Topology, Any, Any, Any]:
    """Lines are split, and every word reaches two tasks; short words go to a stream of their own."""

    def split(line: str) -> Iterator[object]:
        for word in line.split():
            yield word if len(word) > 1 else To(word, stream="short")

    topology = Topology("words")
    lines = topology.spout("lines")
    words = topology.bolt("split", split, lines.shuffle(), outputs={"default": None, "short": None})
    counts = topology.bolt("measure", len, words.all(), parallelism=2)
    topology.bolt("ignore", ignore, counts.shuffle())
    return topology, lines, words, counts


@pytest.mark.simulated_time
async def test_C4_collect_returns_what_this_tree_sent_there() -> None:
    """Every value once, however many tasks it reaches, and none of another tree."""
    topology, lines, words, _ = words_topology()
    async with topology.run() as running:
        first = await running.emit(lines, "one a two", collect=words)
        second = await running.emit(lines, "three b", collect=words.named("short"))
        without = await running.emit(lines, "four")
        assert [await first, await second, await without] == [["one", "two"], ["b"], []]
        assert await first == ["one", "two"]


@pytest.mark.simulated_time
async def test_C4_collect_reaches_any_depth() -> None:
    """The stream may be that of the last bolt, or that of the spout itself."""
    topology, lines, _, counts = words_topology()
    async with topology.run() as running:
        deep = await running.emit(lines, "one three", collect=counts)
        itself = await running.emit(lines, "one three", collect=lines)
        assert sorted(await deep) == [3, 3, 5, 5]
        assert await itself == ["one three"]


@pytest.mark.simulated_time
async def test_C4_collect_returns_the_values_of_the_last_attempt_alone() -> None:
    """What a failed attempt has sent is forgotten."""
    attempts: list[int] = []

    class FailFirst(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            attempts.append(tup.attempt)
            out.emit(f"attempt {tup.attempt}")
            if tup.attempt == 1:
                raise ValueError(tup.value)

    topology = Topology("attempts")
    fed = topology.spout("fed")
    sent = topology.bolt("logic", FailFirst, fed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=2, collect=sent)
        assert await tree == ["attempt 2"]
    assert attempts == [1, 2]


@pytest.mark.simulated_time
async def test_C4_emit_waits_for_room() -> None:
    """With one message pending at most, the second emit returns when the first tree is acked; in order."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    emitted: list[tuple[int, float]] = []

    async def emit(running: Running, number: int) -> None:
        await running.emit(fed, number)
        emitted.append((number, now()))

    async with topology.run() as running:
        await asyncio.gather(*(emit(running, number) for number in range(3)))
    assert emitted == [(0, 0), (1, 3), (2, 6)]


@pytest.mark.simulated_time
async def test_C4_a_waiting_emit_can_be_cancelled() -> None:
    """Its message is never sent, and the next one in line gets the room."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    async with topology.run() as running:
        await running.emit(fed, "first")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.emit(fed, "second"), 1)
        await running.emit(fed, "third")
        assert now() == 3
    assert running.statistics().components["logic"].executed == 2


@pytest.mark.simulated_time
async def test_C4_emit_waits_for_room_in_the_queues() -> None:
    """It returns when every queue that the spout has filled has room."""
    topology, fed = host_topology(partial(Slow, 3), queue_capacity=2)
    async with topology.run() as running:
        times: list[float] = []
        for number in range(8):
            await running.emit(fed, number)
            times.append(now())
            assert running.statistics().components["logic"].pending <= 5
    assert times[-1] > 3


@pytest.mark.simulated_time
async def test_C4_waiting_emits_raise_when_the_topology_drains() -> None:
    """Those that wait for room, and those that come later; the message under way is settled."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    async with topology.run() as running:
        tree = await running.emit(fed, "first")
        waiting = [asyncio.ensure_future(running.emit(fed, number)) for number in range(3)]
        await asyncio.sleep(1)
        running.stop()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert now() == 1
        assert [type(each) for each in outcomes] == [TopologyStopping] * 3
        with pytest.raises(TopologyStopping):
            await running.emit(fed, "later")
        await tree
    assert running.statistics().components["logic"].executed == 1


@pytest.mark.simulated_time
async def test_C4_a_tree_that_the_deadline_cuts_off_fails_with_shutdown() -> None:
    """Whoever awaits it beyond the block gets its outcome too."""
    topology, fed = host_topology(Forget, drain_timeout=1.0)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=5)
        waiting = asyncio.ensure_future(tree_of(tree))
    for outcome in (waiting, tree_of(tree)):
        with pytest.raises(TupleFailed) as failed:
            await outcome
        assert failed.value.failure.kind is FailureKind.SHUTDOWN


@pytest.mark.simulated_time
async def test_C4_only_a_spouts_stream_takes_messages() -> None:
    """A bolt's stream, or one of another topology, is refused by name."""
    topology, fed = host_topology(ignore)
    bolt = topology.bolt("more", ignore, fed.shuffle())
    _, stranger = host_topology(ignore)
    async with topology.run() as running:
        for stream in (bolt, stranger):
            with pytest.raises(InvalidTopology, match="no spout's stream"):
                await running.emit(stream, "x")


# C5: staying up, and crashes.


@pytest.mark.simulated_time
async def test_C5_a_finished_topology_stays_up_until_its_block_is_left() -> None:
    """An hour after its finite source has ended it still processes what the host emits."""
    log: Log = []
    seen: list[object] = []

    class Note(logged_bolt(log)):  # type: ignore[misc]
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append(tup.value)
            out.ack(tup)

    topology = Topology("up")
    source = topology.spout("numbers", [1, 2])
    topology.bolt("note", Note, source.shuffle())
    async with topology.run() as running:
        await running.finished()
        await asyncio.sleep(3600)
        await (await running.emit(source, 3))
        await running.finished()
        assert log == ["bolt prepare"]
    assert seen == [1, 2, 3]
    assert log == ["bolt prepare", "bolt cleanup"]


def crashing_spout(method: str, after: float = 1.0) -> type[Spout[int]]:
    """A spout that emits one message, and raises in one of its methods a little later."""

    class Crashing(Spout[int]):
        emitted = False

        def raise_in(self, name: str) -> None:
            if name == method:
                raise ZeroDivisionError(name)

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.emitted:
                self.emitted = True
                out.emit(1, message_id=1)
                return
            await asyncio.sleep(after)
            self.raise_in("next_tuple")

        def ack(self, message_id: object) -> None:
            self.raise_in("ack")

        def fail(self, message_id: object, failure: Failure) -> None:
            self.raise_in("fail")

        def activate(self) -> None:
            self.raise_in("activate")

    return Crashing


class CrashingBolt(Bolt[int, int]):
    """A bolt that takes a second, and raises in one of its methods but ``execute``."""

    method: str
    asynchronous: bool

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await asyncio.sleep(1)
        if self.method == "fail":
            out.fail(tup)
        elif self.method != "flush":
            out.ack(tup)

    def raise_in(self, name: str) -> Awaitable[None] | None:
        if name != self.method:
            return None
        if self.asynchronous:
            return self.raise_later(name)
        raise ZeroDivisionError(name)

    async def raise_later(self, name: str) -> None:
        await asyncio.sleep(1)
        raise ZeroDivisionError(name)

    def tick(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("tick")

    def flush(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("flush")

    def finish(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("finish")


def crashing_bolt(method: str, asynchronous: bool = False) -> type[CrashingBolt]:
    """A class that raises in this method."""
    return type("Crashing", (CrashingBolt,), {"method": method, "asynchronous": asynchronous})


async def crash_in(topology: Topology, body: Callable[[Running], Awaitable[None]]) -> TopologyCrashed:
    """Run with this body; give the crash that the block raises."""

    async def run() -> None:
        async with topology.run() as running:
            await body(running)

    with pytest.raises(TopologyCrashed) as crash:
        await run()
    return crash.value


async def sleep_on(running: Running) -> None:
    """A body that sleeps for a thousand seconds and swallows its cancellation."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1000)


async def crash_of(topology: Topology) -> TopologyCrashed:
    """Run with a body that sleeps; give the crash, of which the body must know at once."""
    told: list[float] = []

    async def body(running: Running) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            told.append(now())
            raise

    crash = await crash_in(topology, body)
    assert told == [pytest.approx(now(), abs=1e-9)]
    assert now() < 1000
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)
    return crash


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["next_tuple", "ack", "fail", "activate"])
async def test_C5_an_exception_of_a_spout_is_a_crash(method: str) -> None:
    """The body is cancelled, as by a task group; the block raises the crash with its cause and place."""
    topology = Topology("crash")
    source = topology.spout("spout", crashing_spout(method))
    topology.bolt("bolt", crashing_bolt(method), source.shuffle())
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert f"{method} of spout[0]" in str(crash)


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("method", ["tick", "flush", "finish"])
async def test_C5_an_exception_of_a_bolt_without_a_tuple_is_a_crash(method: str, asynchronous: bool) -> None:
    """In ``tick``, ``flush`` and ``finish`` there is no input to fail."""
    topology = Topology("crash")
    bolt = crashing_bolt(method, asynchronous)
    topology.bolt("bolt", bolt, topology.spout("numbers", [1]).shuffle(), tick=2.0)
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert f"{method} of bolt[0]" in str(crash)


def raising() -> Iterator[int]:
    """A generator that yields once, then raises."""
    yield 1
    raise ZeroDivisionError


async def raising_async() -> AsyncIterator[int]:
    """The same, asynchronously and later."""
    yield 1
    await asyncio.sleep(1)
    raise ZeroDivisionError


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [raising, raising_async])
async def test_C5_an_exception_of_a_generator_is_a_crash(source: Any) -> None:
    """It is the ``next_tuple`` of its spout."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", source).shuffle())
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert "next_tuple of spout[0]" in str(crash)


def bad_key(value: object) -> object:
    """A key function that raises."""
    raise ZeroDivisionError(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("of_a_bolt", [False, True])
async def test_C5_an_exception_of_a_key_function_is_a_crash(of_a_bolt: bool) -> None:
    """Also where the value is emitted by a bolt, whose input is not to blame."""
    topology = Topology("crash")
    stream = topology.spout("numbers", [1])
    if of_a_bolt:
        stream = topology.bolt("forward", lambda value: value, stream.shuffle())
    topology.bolt("ignore", ignore, stream.fields(bad_key), parallelism=2)
    crash = await crash_of(topology)
    causes = [crash.__cause__, crash.__cause__ and crash.__cause__.__cause__]
    assert any(isinstance(each, ZeroDivisionError) for each in causes)


@pytest.mark.simulated_time
async def test_C5_a_body_that_swallows_the_cancellation_gets_the_crash_all_the_same() -> None:
    """The block raises it when the body ends."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", raising).shuffle())
    await crash_in(topology, sleep_on)
    assert now() < 1000


@pytest.mark.simulated_time
async def test_C5_a_crash_while_draining_is_raised_from_the_block() -> None:
    """A ``finish`` that raises after the body is over is not lost."""
    topology = Topology("crash")
    topology.bolt("bolt", crashing_bolt("finish"), topology.spout("fed").shuffle())
    with pytest.raises(TopologyCrashed, match=r"finish of bolt\[0\]"):
        async with topology.run():
            pass


@pytest.mark.simulated_time
async def test_C5_finished_raises_the_crash() -> None:
    """Whoever waits in another task gets it at once, and whoever asks later; even if the body goes on."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", raising_async).shuffle())
    waiting: list[asyncio.Task[float]] = []

    async def wait(running: Running, seconds: float) -> float:
        await asyncio.sleep(seconds)
        with pytest.raises(TopologyCrashed):
            await running.finished()
        return now()

    async def body(running: Running) -> None:
        waiting.extend(asyncio.ensure_future(wait(running, seconds)) for seconds in (0, 20, 100))
        await sleep_on(running)
        await asyncio.sleep(50)

    await crash_in(topology, body)
    assert await asyncio.gather(*waiting) == [1, 20, 100]


@pytest.mark.simulated_time
async def test_C5_a_crash_settles_the_trees() -> None:
    """A tree that was open when the topology crashed fails; nobody waits for it in vain."""

    class HoldAndCrash(Forget):
        def tick(self, out: Collector[object]) -> None:
            raise ZeroDivisionError

    topology = Topology("crash", max_restarts=0)
    fed = topology.spout("fed")
    topology.bolt("bolt", HoldAndCrash, fed.shuffle(), tick=0.5)
    trees: list[Tree[object]] = []

    async def body(running: Running) -> None:
        trees.append(await running.emit(fed, 1))
        await trees[0]

    await crash_in(topology, body)
    with pytest.raises(TupleFailed):
        await trees[0]


@pytest.mark.simulated_time
async def test_C5_an_exception_of_the_body_cancels_and_passes_through() -> None:
    """No drain: the call that runs is cancelled at once, and the exception is not wrapped."""
    topology = Topology("body")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("one", ["x"]).shuffle())
    with pytest.raises(ZeroDivisionError) as raised:
        await leave_by(ZeroDivisionError("mine"), topology)
    assert raised.value.args == ("mine",)
    assert now() == 1


@pytest.mark.simulated_time
async def test_C5_a_cancellation_of_the_host_passes_through() -> None:
    """A timeout around the block works as it does around any other code."""
    topology = Topology("timeout")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("one", ["x"]).shuffle())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await leave_by(AssertionError(), topology, after=100)
    assert now() == 2


# C6: what is promised.


def test_C6_the_readme_says_so_on_its_first_screen() -> None:
    """That state is lost with the process, and that delivery is at least once."""
    screen = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8").splitlines()[:24]
    text = " ".join(screen).lower()
    assert "in memory" in text
    assert "lost with the process" in text
    assert "at least once" in text


@pytest.mark.simulated_time
async def test_C6_delivery_is_at_least_once() -> None:
    """What was processed by one bolt is processed again when another one fails."""
    seen: list[object] = []
    topology = Topology("twice")
    source = topology.spout("one", ["x"])
    topology.bolt("note", partial(Note, seen), source.shuffle())
    topology.bolt("fail", fail_until(0.05, []), source.shuffle())
    running = await run_to_end(topology)
    assert seen == ["x", "x"]
    assert running.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
async def test_C6_a_run_begins_with_nothing() -> None:
    """Instances, counts and dead letters of an earlier run are gone."""
    topology = Topology("fresh")
    topology.bolt("refuse", refuse, topology.spout("numbers", Counting).shuffle())
    await run_to_end(topology)
    async with topology.run(active=False) as running:
        statistics = running.statistics().components
        assert (statistics["numbers"].emitted, statistics["refuse"].executed) == (0, 0)
        assert running.dead_letters == ()
