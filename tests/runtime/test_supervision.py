"""Tasks that die are restarted alone (seed 003's failure cases; law C5, L14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    InvalidConfiguration,
    InvalidTopology,
    Reject,
    ReliableSpout,
    Running,
    Spout,
    SpoutCollector,
    StartFailed,
    TaskContext,
    TaskKilled,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Waiting, ignore
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])

LOST = FailureKind.TASK_LOST


class Journal:
    """What the instances of a component did, in order, each with its number."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, object]] = []
        self.instances = 0

    def enter(self) -> Callable[[object], None]:
        """A new instance: what it notes has its number."""
        self.instances += 1
        return partial(self._note, self.instances)

    def _note(self, instance: int, what: object) -> None:
        self.lines.append((instance, what))


class Noted(Bolt[Any, None]):
    """Acks what it gets, and notes all that happens; ``meet`` may raise."""

    def __init__(
        self, journal: Journal, meet: Callable[[Any, int], None] = lambda value, instance: None
    ) -> None:
        self.note = journal.enter()
        self.number = journal.instances
        self.meet = meet

    def prepare(self, context: TaskContext) -> None:
        self.note("prepare")

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        self.meet(tup.value, self.number)
        self.note(tup.value)
        out.ack(tup)

    def tick(self, out: Collector[None]) -> None:
        self.meet("tick", self.number)
        self.note("tick")

    def cleanup(self) -> None:
        self.note("cleanup")


def raise_at(value: object, *instances: int) -> Callable[[object, int], None]:
    """Raise when one of these instances meets the value; any instance, if none is named."""

    def meet(met: object, instance: int) -> None:
        if met == value and (not instances or instance in instances):
            raise LookupError(value)

    return meet


class Hold(Noted):
    """Keeps what it gets until it is flushed."""

    def __init__(
        self, journal: Journal, meet: Callable[[Any, int], None] = lambda value, instance: None
    ) -> None:
        super().__init__(journal, meet)
        self.held: list[Tuple[Any]] = []

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        self.note(tup.value)
        self.held.append(tup)

    def flush(self, out: Collector[None]) -> None:
        self.note("flush")
        for tup in self.held:
            out.ack(tup)
        self.held.clear()


async def test_a_bolt_that_dies_is_made_anew() -> None:
    """One more call of its factory, prepared after a pause; the dead instance cleans up first."""
    journal, topology = Journal(), Topology("bolt")
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Noted(journal, raise_at("tick", 1)), fed.shuffle(), tick=5.0)
    async with topology.run() as running:
        await (await running.emit(fed, "before"))
        await asyncio.sleep(5.01)
        assert journal.lines == [(1, "prepare"), (1, "before"), (1, "cleanup")]
        await asyncio.sleep(0.1)
        assert journal.lines[-1] == (2, "prepare")
        await (await running.emit(fed, "after"))
        assert running.statistics().components["bolt"].restarts == 1
    assert journal.lines[4:] == [(2, "after"), (2, "cleanup")]


async def test_exactly_what_it_held_is_lost() -> None:
    """What was handed to the dead instance fails at once, with the reason; queued inputs wait for the next."""
    journal, topology = Journal(), Topology("held", message_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Hold(journal, raise_at("tick", 1)), fed.shuffle(), tick=5.0)
    async with topology.run() as running:
        held = [await running.emit(fed, number) for number in range(3)]
        await asyncio.sleep(5.05)
        assert [tree.done for tree in held] == [True, True, True]
        for tree in held:
            assert tree.failure is not None
            assert (tree.failure.kind, tree.failure.component) == (LOST, "bolt")
            assert isinstance(tree.failure.exception, LookupError)
        waiting = await running.emit(fed, "waits")
        await asyncio.sleep(0.01)
        assert (2, "waits") not in journal.lines
        await asyncio.sleep(0.1)
        assert journal.lines[-1] == (2, "waits")
        counts = running.statistics().components["bolt"]
        assert (counts.executed, counts.acked, counts.failed, counts.pending) == (4, 0, 3, 1)
    assert waiting.failure is None


async def test_on_error_restart() -> None:
    """The input that raised has failed with the exception, those before it are acked, those behind it wait for the
    next instance, in order."""
    journal, topology = Journal(), Topology("restart", message_timeout=None, max_attempts=2)
    numbers = topology.spout("numbers", range(5))
    topology.bolt("bolt", lambda: Noted(journal, raise_at(2, 1)), numbers.shuffle(), on_error="restart")
    running = await run_to_end(topology)
    executed = [line for line in journal.lines if isinstance(line[1], int)]
    assert executed == [(1, 0), (1, 1), (2, 3), (2, 4), (2, 2)]
    counts = running.statistics().components
    assert (counts["bolt"].acked, counts["bolt"].failed, counts["bolt"].restarts) == (5, 1, 1)
    assert (counts["numbers"].acked, counts["numbers"].replayed) == (5, 1)


class OneByOne(BatchBolt[str, None]):
    """Each batch is complete with its first input."""

    size = 1
    within = 1.0

    def __init__(self, meet: Callable[[str], None]) -> None:
        self.meet = meet

    def execute_batch(self, batch: Sequence[Tuple[str]], out: Collector[None]) -> None:
        self.meet(batch[0].value)


class Due(OneByOne):
    """Each batch is executed when its time has come."""

    size = 9


class SlowOneByOne(OneByOne):
    """With an await, after which it raises."""

    async def execute_batch(self, batch: Sequence[Tuple[str]], out: Collector[None]) -> None:
        await asyncio.sleep(0.1)
        self.meet(batch[0].value)


@pytest.mark.parametrize(
    ("logic", "options"),
    [
        (OneByOne, {}),
        (OneByOne, {"executor": "thread"}),
        (Due, {}),
        (SlowOneByOne, {}),
    ],
)
async def test_an_exception_of_a_batch_counts_once(logic: type[OneByOne], options: dict[str, Any]) -> None:
    """With ``on_error="restart"`` it fails the members, and ends the call that has completed the batch."""
    topology, meet = Topology("once"), raising(1)
    topology.bolt(
        "bolt", lambda: logic(meet), topology.spout("one", ["x"]).shuffle(), on_error="restart", **options
    )
    running = await run_to_end(topology)
    bolt = running.statistics().components["bolt"]
    assert (bolt.failed, bolt.errors, bolt.restarts) == (1, 0, 1)
    assert [each.count for each in running.failures()] == [1]


async def test_exceptions_of_concurrent_calls_count_once_each(caplog: pytest.LogCaptureFixture) -> None:
    """Two calls that raise at one moment are two failures, of which the task dies once."""

    async def slow(value: str) -> None:
        await asyncio.sleep(0.1)
        meet(value)

    topology, meet = Topology("both"), raising(2)
    source = topology.spout("two", ["x", "x"])
    topology.bolt("bolt", slow, source.shuffle(), on_error="restart", concurrency=2)
    running = await run_to_end(topology)
    assert running.statistics().components["bolt"].restarts == 1
    assert [each.count for each in running.failures()] == [2]
    assert [each.getMessage() for each in caplog.records if "again" in each.getMessage()] == [
        "execute of bolt again, 1 more: LookupError('x'); value 'x'"
    ]


def raising(times: int) -> Callable[[str], None]:
    """User code that raises the first times it is called."""
    left = iter(range(times))

    def meet(value: str) -> None:
        if next(left, None) is not None:
            raise LookupError(value)

    return meet


@pytest.mark.parametrize("basic", [True, False])
async def test_unsent_acks_of_the_dead_go_out_first(basic: bool) -> None:
    """What it had acked in the slice in which it died is acked."""

    class Basic(BasicBolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if tup.value == 7:
                raise LookupError

    class Plain(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if tup.value == 7:
                raise LookupError
            out.ack(tup)

    topology = Topology("acks", message_timeout=None, max_attempts=1)
    numbers = topology.spout("numbers", range(8))
    topology.bolt("bolt", Basic if basic else Plain, numbers.shuffle(), on_error="restart")
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].acked == 7
    assert [letter.value for letter in running.dead_letters] == [7]


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_killed_bolt_loses_its_running_calls(concurrency: int) -> None:
    """A call that is awaited is cancelled; its input fails with TASK_LOST, and is replayed to the next instance."""
    started: list[tuple[int, float]] = []

    async def slow(value: int) -> None:
        started.append((value, now()))
        await asyncio.sleep(10.0)

    topology = Topology("kill", message_timeout=None)
    numbers = topology.spout("numbers", range(3))
    topology.bolt("slow", slow, numbers.shuffle(), concurrency=concurrency)
    async with topology.run() as running:
        await asyncio.sleep(4.0)
        running.kill("slow")
        await running.finished()
        counts = running.statistics().components
    lost = min(concurrency, 3)
    assert counts["slow"].failed == lost
    assert (counts["numbers"].acked, counts["numbers"].replayed) == (3, lost)
    assert len(started) == 3 + lost
    assert (counts["slow"].executed, counts["slow"].acked) == (3 + lost, 3)


async def test_what_the_dead_instance_does_later_changes_nothing() -> None:
    """A timer of an instance that died may still ack, fail or anchor: no error, no second outcome."""
    late: list[object] = []

    class Zombie(Bolt[int, str]):
        def execute(self, tup: Tuple[int], out: Collector[str]) -> None:
            async def later() -> None:
                await asyncio.sleep(1.0)
                out.emit("late", anchors=tup)
                out.ack(tup)
                out.fail(tup)
                late.append(tup.value)

            if tup.attempt == 1:
                late.append(asyncio.create_task(later()))
            else:
                out.ack(tup)

    topology = Topology("zombie", message_timeout=None)
    bolt = topology.bolt("bolt", Zombie, topology.spout("numbers", [1]).shuffle())
    topology.bolt("next", ignore, bolt.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        running.kill("bolt")
        await asyncio.sleep(2.0)
        await running.finished()
        counts = running.statistics().components
    assert late[1:] == [1]
    assert (counts["numbers"].acked, counts["numbers"].failed) == (1, 1)
    assert (counts["bolt"].acked, counts["bolt"].failed) == (1, 1)


async def test_batches_are_lost_whole() -> None:
    """The members of a batch that was being collected fail, and their timer is gone."""
    batches: list[list[int]] = []

    class Pairs(BatchBolt[int, None]):
        size = 10
        within = 3.0

        def execute_batch(self, tups: Any, out: Collector[None]) -> None:
            batches.append([tup.value for tup in tups])

    topology = Topology("batches", message_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("pairs", Pairs, fed.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(fed, number, attempts=2) for number in range(2)]
        await asyncio.sleep(1.0)
        running.kill("pairs")
        for tree in trees:
            await tree
    assert [sorted(batch) for batch in batches] == [[0, 1]]


async def test_ticks_go_on() -> None:
    """The next instance gets its ticks, and the one that raised is not called again."""
    journal, topology = Journal(), Topology("ticks")
    topology.bolt(
        "bolt", lambda: Noted(journal, raise_at("tick", 1)), topology.spout("fed").shuffle(), tick=1.0
    )
    async with topology.run():
        await asyncio.sleep(3.5)
    assert [line for line in journal.lines if line[1] == "tick"] == [(2, "tick"), (2, "tick")]


async def test_finish_is_called_on_the_next_instance() -> None:
    """An instance that dies in ``finish`` is replaced, and the next one finishes."""
    journal = Journal()

    class Finishes(Noted):
        def finish(self, out: Collector[None]) -> None:
            self.note("finish")
            self.meet("finish", self.number)

    topology = Topology("finish")
    topology.bolt(
        "bolt", lambda: Finishes(journal, raise_at("finish", 1)), topology.spout("one", ["x"]).shuffle()
    )
    await run_to_end(topology)
    assert [line for line in journal.lines if line[1] == "finish"] == [(1, "finish"), (2, "finish")]


# The policy.


async def test_too_many_deaths_crash_the_topology() -> None:
    """After the restarts that the policy allows, with doubled pauses, the block and ``finished`` raise what it died of,
    naming the task."""
    journal, topology = Journal(), Topology("crash", max_restarts=2, restart_delay=1.0)
    topology.bolt(
        "bolt",
        lambda: Noted(journal, raise_at("x")),
        topology.spout("s", ["x"]).shuffle(),
        on_error="restart",
    )
    expected = (
        r"execute of bolt\[0\] raised LookupError\('x'\), after 2 restarts, of at most 2 restarts within 60 s"
    )
    finished: list[asyncio.Task[None]] = []

    async def run() -> None:
        async with topology.run() as running:
            finished.append(asyncio.create_task(running.finished()))
            await asyncio.sleep(100.0)

    with pytest.raises(TopologyCrashed, match=expected) as crash:
        await run()
    assert isinstance(crash.value.__cause__, LookupError)
    assert [str(each.exception()) for each in finished] == [str(crash.value)]
    assert journal.instances == 3
    assert 3.0 <= now() < 3.6


async def test_the_window_slides() -> None:
    """A task that dies once in a while is restarted for ever."""
    journal, topology = Journal(), Topology("rare", max_restarts=1, restart_window=60.0)
    topology.bolt("bolt", lambda: Noted(journal, raise_at("tick")), topology.spout("s").shuffle(), tick=100.0)
    async with topology.run():
        await asyncio.sleep(1050.0)
    assert journal.instances == 11


async def test_a_task_may_be_restarted_for_as_long_as_it_is_allowed_to() -> None:
    """Beyond the 1024th restart, too, each comes after the longest pause."""
    topology = Topology("patient", max_restarts=1_000_000, restart_window=7 * 86400.0)
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Noted(Journal(), raise_at("tick")), fed.shuffle(), tick=1.0)
    async with topology.run() as running:
        await asyncio.sleep(4 * 3600.0)
        assert running.statistics().components["bolt"].restarts > 1200


async def test_a_crash_loop_does_not_spin() -> None:
    """However many restarts are allowed, the pauses bound how many there are in ten minutes."""
    journal, topology = Journal(), Topology("loop", max_restarts=10_000, restart_window=1e6)

    class Broken(Spout[int]):
        def __init__(self) -> None:
            journal.enter()

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            raise LookupError

    topology.spout("broken", Broken)
    async with topology.run():
        await asyncio.sleep(600.0)
    assert 60 <= journal.instances <= 70


async def test_restarts_can_be_forbidden() -> None:
    """With ``max_restarts=0``, and with ``on_error="stop"``, the first exception crashes the topology."""
    for options in ({"max_restarts": 0}, {"on_error": "stop"}):
        journal, topology = Journal(), Topology("stop")
        logic: Any = partial(Noted, journal, raise_at("tick"))
        topology.bolt("bolt", logic, topology.spout("s").shuffle(), tick=1.0, **options)  # type: ignore[arg-type]
        with pytest.raises(TopologyCrashed, match=r"tick of bolt\[0\] raised LookupError\('tick'\)$"):
            async with topology.run():
                await asyncio.sleep(10.0)
        assert journal.instances == 1


async def run_and_kill(topology: Topology) -> None:
    """Have its bolt die after a second."""
    async with topology.run() as running:
        await asyncio.sleep(1.0)
        running.kill("bolt")
        await asyncio.sleep(10.0)


async def test_the_first_start_is_no_restart() -> None:
    """What ``prepare`` raises at the start is a failed start (law C1); at a restart it is another death."""

    class Unprepared(Noted):
        def prepare(self, context: TaskContext) -> None:
            self.meet("prepare", self.number)

    journal, topology = Journal(), Topology("start")
    topology.bolt("bolt", lambda: Unprepared(journal, raise_at("prepare")), topology.spout("s").shuffle())
    with pytest.raises(StartFailed, match=r"did not start: prepare of bolt\[0\] raised LookupError"):
        await run_to_end(topology)
    assert journal.instances == 1

    journal, topology = Journal(), Topology("restart")
    topology.bolt(
        "bolt", lambda: Unprepared(journal, raise_at("prepare", 2, 3, 4, 5)), topology.spout("s").shuffle()
    )
    with pytest.raises(TopologyCrashed, match=r"prepare of bolt\[0\] raised LookupError"):
        await run_and_kill(topology)
    assert (journal.instances, now()) == (5, pytest.approx(1.0 + 0.1 + 0.1 + 0.2 + 0.4))
    assert "cleanup" not in [what for instance, what in journal.lines if instance > 1]


async def test_a_constructor_that_raises_at_a_restart() -> None:
    """The crash names it, and has what it raised as its cause."""
    made: list[None] = []

    def make() -> Noted:
        made.append(None)
        if len(made) > 1:
            raise LookupError("no more")
        return Noted(Journal())

    topology = Topology("constructor")
    topology.bolt("bolt", make, topology.spout("s").shuffle())
    with pytest.raises(
        TopologyCrashed, match=r"the constructor of bolt\[0\] raised LookupError\('no more'\)"
    ):
        await run_and_kill(topology)


async def test_pauses_that_contradict_each_other_are_refused() -> None:
    """A first pause above the longest one is a mistake."""
    with pytest.raises(InvalidConfiguration, match=r"restart_delay=20.0 is above restart_delay_max=10.0"):
        Topology("pauses", restart_delay=20.0)


async def test_restarts_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One line says what it died of, with the traceback, and one when it comes back."""
    caplog.set_level(logging.WARNING)
    journal, topology = Journal(), Topology("log")
    topology.bolt(
        "bolt",
        lambda: Noted(journal, raise_at("x", 1)),
        topology.spout("s", ["x"]).shuffle(),
        on_error="restart",
    )
    await run_to_end(topology)
    died, restarts = caplog.records
    assert died.getMessage() == "bolt[0] raised LookupError('x') on 'x'"
    assert died.exc_info is not None
    assert restarts.getMessage() == (
        "bolt[0] died of LookupError('x') and is restarted in 0.1 s: "
        "restart 1, of at most 3 restarts within 60 s"
    )
    assert restarts.__dict__["component"] == "bolt"


async def test_unknown_tasks_cannot_be_killed() -> None:
    """The error lists the components."""
    topology = Topology("unknown")
    topology.bolt("bolt", ignore, topology.spout("spout").shuffle())
    async with topology.run() as running:
        for component, index in (("bold", 0), ("bolt", 1), ("bolt", -1)):
            with pytest.raises(InvalidTopology, match=r"components: '__acker', 'spout', 'bolt'"):
                running.kill(component, index)


# Drain and end.


async def test_a_drain_waits_for_a_task_that_is_being_restarted() -> None:
    """What waits in its queue is executed by the next instance, within the drain."""
    journal, topology = Journal(), Topology("drain", restart_delay=2.0)
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Noted(journal), fed.shuffle())
    async with topology.run() as running:
        running.kill("bolt")
        await asyncio.sleep(1.0)
        tree = await running.emit(fed, "x")
    assert (tree.done, tree.failure) == (True, None)
    assert (2, "x") in journal.lines


async def test_a_stop_does_not_wait_for_a_restart() -> None:
    """A second stop request ends it in the middle of the pause, and nothing is cleaned up twice."""
    journal, topology = Journal(), Topology("stop", restart_delay=5.0, restart_delay_max=5.0)
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Noted(journal), fed.shuffle())
    async with topology.run() as running:
        running.kill("bolt")
        await asyncio.sleep(1.0)
        tree = await running.emit(fed, "x")
        running.stop()
        running.stop()
    assert (tree.failure is not None and tree.failure.kind, now()) == (FailureKind.SHUTDOWN, 1.0)
    assert journal.lines == [(1, "prepare"), (1, "cleanup")]


# Ackers.


async def test_a_dead_acker_fails_its_trees_at_once() -> None:
    """They are replayed without waiting for a timeout, and that is no attempt of theirs."""
    seen: list[tuple[int, int, float]] = []

    class Slow(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            seen.append((tup.value, tup.attempt, now()))
            await asyncio.sleep(1.0)
            out.ack(tup)

    topology = Topology("acker", message_timeout=1000.0, max_attempts=1)
    topology.bolt("slow", Slow, topology.spout("numbers", [1, 2]).shuffle(), concurrency=2)
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        running.kill("__acker")
        await running.finished()
        counts = running.statistics().components
    assert sorted((value, attempt) for value, attempt, _ in seen) == [(1, 1), (1, 1), (2, 1), (2, 1)]
    assert now() < 3.0
    assert (counts["numbers"].acked, counts["numbers"].dead_letters) == (2, 0)
    assert (counts["__acker"].restarts, counts["__acker"].pending) == (1, 0)


async def test_trees_of_other_ackers_survive() -> None:
    """Only the shard of the acker that died fails."""
    topology = Topology("shards", message_timeout=None, ackers=4)
    topology.bolt("hold", lambda: Hold(Journal()), topology.spout("numbers", range(100)).shuffle())
    topology.spout("fed")  # as long as it may bring something, nothing is flushed
    async with topology.run() as running:
        await asyncio.sleep(0.001)
        shard = running.statistics().components["__acker"].tasks
        assert shard is not None
        first = shard[1].pending
        running.kill("__acker", 0)
        await asyncio.sleep(1.0)
        counts = running.statistics().components["numbers"]
        assert (counts.failed, counts.pending) == (first, 100)
    counts = running.statistics().components["numbers"]
    assert (counts.failed, counts.acked) == (first, 100)
    assert 0 < first < 100


# Spouts.


class Source(Spout[int]):
    """Emits 0, 1, 2 …, and notes what it hears; dies when ``meet`` says so."""

    def __init__(
        self,
        journal: Journal,
        meet: Callable[[Any, int], None] = lambda value, instance: None,
        last: int = 2,
    ) -> None:
        self.note = journal.enter()
        self.instance = journal.instances
        self.meet = meet
        self.next = 0
        self.last = last

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.note("open")

    def activate(self) -> None:
        self.note("activate")

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        self.meet(self.next, self.instance)
        if self.next > self.last:
            raise EndOfStream
        out.emit(self.next, message_id=(self.instance, self.next))
        self.next += 1

    def ack(self, message_id: object) -> None:
        self.meet(("ack", message_id), self.instance)
        self.note(("ack", message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.note((failure.kind, message_id))

    def close(self) -> None:
        self.note("close")


async def test_a_dead_spout_s_messages_fail_on_the_next_instance() -> None:
    """It is closed; the next one is opened and activated, and told that what was pending is lost."""
    journal, topology = Journal(), Topology("spout", message_timeout=None)
    source = topology.spout("source", lambda: Source(journal, raise_at(2, 1)))
    topology.bolt("hold", lambda: Hold(Journal()), source.shuffle())
    await run_to_end(topology)
    assert journal.lines == [
        (1, "open"),
        (1, "activate"),
        (1, "close"),
        (2, "open"),
        (2, (LOST, (1, 0))),
        (2, (LOST, (1, 1))),
        (2, "activate"),
        *((2, ("ack", (2, number))) for number in range(3)),
        (2, "close"),
    ]


async def test_a_spout_that_dies_in_ack() -> None:
    """The message is told once, and the outcomes that waited behind it go to the next instance."""
    journal, topology = Journal(), Topology("ack", message_timeout=None)
    source = topology.spout("source", lambda: Source(journal, raise_at(("ack", (1, 0)), 1)))
    topology.bolt("bolt", ignore, source.shuffle())
    running = await run_to_end(topology)
    told = [line for line in journal.lines if isinstance(line[1], tuple) and line[1][1][0] == 1]
    assert told == [(2, ("ack", (1, 1))), (2, ("ack", (1, 2)))]
    assert running.statistics().components["source"].pending == 0


async def test_a_reliable_spout_s_messages_stay_pending() -> None:
    """The engine keeps them: their trees complete as if nothing had happened, and the next instance hears of it."""
    journal = Journal()

    class Reliable(Source, ReliableSpout[int]):
        """The engine keeps its messages."""

    topology = Topology("reliable", message_timeout=None)
    source = topology.spout("source", lambda: Reliable(journal, raise_at(2, 1)))
    topology.bolt("hold", lambda: Hold(Journal()), source.shuffle())
    running = await run_to_end(topology)
    acked = [line[1] for line in journal.lines if isinstance(line[1], tuple)]
    assert acked == [("ack", (instance, number)) for instance in (1, 2) for number in range(1 + instance)]
    assert running.statistics().components["source"].failed == 0


async def test_a_spout_that_no_instance_can_replace() -> None:
    """``restartable = False`` makes an exception a crash."""

    class Unique(Source):
        restartable = False

    topology = Topology("unique")
    topology.spout("source", lambda: Unique(Journal(), raise_at(1)))
    with pytest.raises(TopologyCrashed, match=r"next_tuple of source\[0\] raised LookupError\(1\)$"):
        await run_to_end(topology)


class Flaky:
    """An iterator that raises now and then, and goes on."""

    def __init__(self) -> None:
        self.next = 0
        self.raised = False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.next == 2 and not self.raised:
            self.raised = True
            raise LookupError
        if self.next == 4:
            raise StopIteration
        self.next += 1
        return self.next - 1


async def test_an_iterable_goes_on_where_it_was() -> None:
    """What it had yielded stays pending, and what comes next is asked of it."""
    seen: list[int] = []
    topology = Topology("iterable")
    topology.bolt("seen", seen.append, topology.spout("flaky", Flaky()).shuffle())
    running = await run_to_end(topology)
    assert seen == [0, 1, 2, 3]
    assert running.statistics().components["flaky"].restarts == 1


async def test_a_value_that_cannot_be_emitted_is_not_lost() -> None:
    """It is tried again after each restart, and in the end the topology crashes rather than leave it out."""
    tried: list[int] = []

    def key(value: int) -> int:
        tried.append(value)
        if tried.count(1) < 3 and value == 1:
            raise LookupError
        return value

    topology = Topology("key")
    seen: list[int] = []
    topology.bolt("seen", seen.append, topology.spout("numbers", range(3)).fields(key))
    await run_to_end(topology)
    assert (seen, tried) == ([0, 1, 2], [0, 1, 1, 1, 2])


@pytest.mark.parametrize("killed", [True, False])
async def test_a_generator_that_raised_is_over(killed: bool) -> None:
    """There is nothing to go on from, so the topology crashes; one whose task was killed goes on."""

    def numbers() -> Iterator[int]:
        yield 0
        if not killed:
            raise LookupError
        yield 1

    seen: list[int] = []
    topology = Topology("generator", max_spout_pending=1)
    topology.bolt("seen", seen.append, topology.spout("numbers", numbers).shuffle())

    async def run() -> None:
        async with topology.run() as running:
            if killed:
                running.kill("numbers")
            await running.finished()

    if killed:
        await run()
        assert seen == [0, 1]
    else:
        way_out = "its generator is over by that, and could go on if .* a parameter resume="
        with pytest.raises(
            TopologyCrashed, match=rf"next_tuple of numbers\[0\] raised LookupError\(\); {way_out}"
        ):
            await run()


async def failing() -> AsyncIterator[int]:
    yield 0
    raise LookupError


class Wrapped:
    """An async iterator that hands on what another one yields, as those of libraries do."""

    def __init__(self, values: AsyncIterator[int]) -> None:
        self._values = values

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        return await anext(self._values)


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_generator_behind_an_iterator_is_over_too(asynchronous: bool) -> None:
    """What wraps it only says that there is no more, which is no end: what it had not yielded would be lost."""

    def numbers() -> Iterator[int]:
        yield 0
        raise LookupError

    seen: list[int] = []
    topology = Topology("wrapped")
    source: object = Wrapped(failing()) if asynchronous else enumerate(numbers())
    topology.bolt("seen", seen.append, topology.spout("numbers", source).shuffle())
    with pytest.raises(TopologyCrashed, match=r"next_tuple of numbers\[0\] raised LookupError\(\)"):
        await run_to_end(topology)
    assert len(seen) == 1


async def test_a_kill_that_ends_what_it_awaited_is_no_end() -> None:
    """The wait was cancelled, and with it the generator that was waited for."""

    async def waiting() -> AsyncIterator[int]:
        yield 0
        await asyncio.sleep(100)
        yield 1

    topology = Topology("wrapped")
    topology.bolt("seen", ignore, topology.spout("numbers", Wrapped(waiting())).shuffle())

    async def kill() -> None:
        async with topology.run() as running:
            await asyncio.sleep(1)
            running.kill("numbers")
            await running.finished()

    with pytest.raises(TopologyCrashed, match=r"was being awaited, and has ended by that"):
        await kill()


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_generator_function_can_resume(asynchronous: bool) -> None:
    """A function that accepts ``resume=`` is called again with the id of the last message."""
    resumed: list[object] = []

    def numbers(resume: int | None = None) -> Iterator[int]:
        resumed.append(resume)
        for number in range(0 if resume is None else resume + 1, 5):
            if number == 3 and len(resumed) == 1:
                raise LookupError
            yield number

    async def awaited(resume: int | None = None) -> AsyncIterator[int]:
        for number in numbers(resume):
            yield number

    seen: list[int] = []
    topology = Topology("resume")
    source = topology.spout("numbers", awaited) if asynchronous else topology.spout("numbers", numbers)
    topology.bolt("seen", seen.append, source.shuffle())
    await run_to_end(topology)
    assert (seen, resumed) == ([0, 1, 2, 3, 4], [None, 2])


async def test_an_async_spout_that_waits_can_be_killed() -> None:
    """It dies at its await."""
    journal = Journal()

    class Waits(Source):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
            if self.instance == 1:
                await asyncio.sleep(1e6)
            super().next_tuple(out)

    topology = Topology("waits")
    topology.bolt("bolt", ignore, topology.spout("source", lambda: Waits(journal)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1.0)
        running.kill("source")
        await running.finished()
    assert (2, "open") in journal.lines
    assert len([line for line in journal.lines if isinstance(line[1], tuple)]) == 3


async def test_trees_elsewhere_survive() -> None:
    """A death touches no tree of which the dead task had no tuple."""
    topology = Topology("survive", message_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("hold", lambda: Hold(Journal()), fed.shuffle())
    topology.bolt("other", lambda: Noted(Journal()), topology.spout("idle").shuffle())

    async def kill_all(running: Running) -> None:
        for component in ("other", "idle", "fed"):
            running.kill(component)
        await asyncio.sleep(5.0)

    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        await kill_all(running)
        assert not tree.done
        assert sum(each.restarts for each in running.statistics().components.values()) == 3
    assert (tree.done, tree.failure) == (True, None)


async def test_what_a_killed_task_dies_of(caplog: pytest.LogCaptureFixture) -> None:
    """The failures and the log tell it from exceptions of user code; there is no traceback to show."""
    caplog.set_level(logging.WARNING)
    topology = Topology("killed", message_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("hold", lambda: Hold(Journal()), fed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        await asyncio.sleep(1.0)
        running.kill("hold")
        await asyncio.sleep(1.0)
    assert tree.failure is not None
    assert isinstance(tree.failure.exception, TaskKilled)
    assert [each.getMessage() for each in caplog.records] == ["hold[0] was killed and is restarted in 0.1 s"]


async def test_the_log_counts_as_the_limit_does(caplog: pytest.LogCaptureFixture) -> None:
    """Neither kills nor restarts that are long past are in the number that is compared with ``max_restarts``."""
    caplog.set_level(logging.WARNING)
    topology = Topology("counts", restart_window=60.0, max_restarts=2)
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: Noted(Journal(), raise_at("x")), fed.shuffle(), on_error="restart")

    async def die(running: Running) -> None:
        await running.emit(fed, "x")
        await asyncio.sleep(1.0)

    async def run() -> None:
        async with topology.run() as running:
            for _ in range(3):
                running.kill("bolt")
                await die(running)
                await asyncio.sleep(60.0)
            for _ in range(4):
                await die(running)

    with pytest.raises(TopologyCrashed, match="after 2 restarts, of at most 2 restarts within 60 s"):
        await run()
    restarts = [message for each in caplog.records if "is restarted" in (message := each.getMessage())]
    killed, died = (
        "bolt[0] was killed and is restarted in 0.1 s",
        "bolt[0] died of LookupError('x') and is restarted in ",
    )
    first, second = (
        f"{died}{pause} s: restart {n}, of at most 2 restarts within 60 s"
        for n, pause in enumerate((0.1, 0.2), 1)
    )
    assert restarts == [killed, first, killed, first, killed, first, first, second]


async def test_a_task_that_is_down_is_killed_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """It is restarted once, and nothing is logged that nobody has raised."""
    caplog.set_level(logging.WARNING)
    topology = Topology("down")
    topology.bolt("bolt", lambda: Noted(Journal()), topology.spout("fed").shuffle())
    components = ("__acker", "fed", "bolt")
    async with topology.run() as running:
        for _ in range(3):  # before the first one has struck, when it has, and while there is no instance
            for component in components:
                running.kill(component)
            await asyncio.sleep(0.03)
        await asyncio.sleep(1.0)
        assert [running.statistics().components[each].restarts for each in components] == [1, 1, 1]
    logged = {each.getMessage() for each in caplog.records}
    assert logged == {f"{each}[0] was killed and is restarted in 0.1 s" for each in components}
    assert len(caplog.records) == 3


async def test_a_task_that_has_itself_killed_and_raises() -> None:
    """It dies once, of what it raised; the kill does not reach what comes after."""
    runs: list[Running] = []

    class KillsItself(BasicBolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if tup.attempt == 1 and tup.value == 3:
                runs[0].kill("bolt")
                raise LookupError

    topology = Topology("itself", message_timeout=None)
    topology.bolt("bolt", KillsItself, topology.spout("numbers", range(5)).shuffle(), on_error="restart")
    async with topology.run(active=False) as running:
        runs.append(running)
        running.activate()
        await running.finished()
        counts = running.statistics().components
    assert (counts["numbers"].acked, counts["bolt"].restarts) == (5, 1)


class RefusingOnce:
    """What the instances of a component do before their work: the second one, which waits for something, raises."""

    def __init__(self) -> None:
        self._instances = 0

    async def begin(self) -> None:
        self._instances += 1
        refused = self._instances == 2
        await asyncio.sleep(0)
        if refused:
            raise OSError("not yet")


async def test_a_spout_that_cannot_be_opened_again_holds_nothing_back() -> None:
    """What is emitted by the host while it is dead leaves at once, and wakes who also has inputs from others (F1)."""
    refusing = RefusingOnce()

    class Refusing(Waiting):
        async def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            await refusing.begin()

    topology = Topology("dead", restart_delay=10.0)
    dead, other = topology.spout("dead", Refusing), topology.spout("other")
    topology.bolt("last", ignore, dead.shuffle(), other.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.kill("dead")
        await asyncio.sleep(15)
        assert running.health().restarting
        for stream in (dead, other):
            await (await running.emit(stream, 1))
        assert now() == 16


async def test_a_bolt_that_cannot_be_prepared_again_holds_nothing_back() -> None:
    """Nor does what a helper emits on the collector that it was given by the one that died (F3, F1)."""
    refusing, collectors, got = RefusingOnce(), list[Collector[str]](), list[tuple[str, float]]()

    class Refusing(Bolt[str, str]):
        async def prepare(self, context: TaskContext) -> None:
            await refusing.begin()

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            collectors.append(out)
            out.ack(tup)

    topology = Topology("dead", restart_delay=10.0)
    feed, other = topology.spout("feed"), topology.spout("other")
    dead = topology.bolt("dead", Refusing, feed.shuffle())
    topology.bolt("last", lambda value: got.append((value, now())), dead.shuffle(), other.shuffle())
    async with topology.run() as running:
        await (await running.emit(feed, "first"))
        running.kill("dead")
        await asyncio.sleep(15)
        assert running.health().restarting
        collectors[0].emit("helper")
        await (await running.emit(other, "host"))
        assert got == [("helper", 15), ("host", 15)]


async def test_a_reject_restarts_nobody() -> None:
    """It says that the value is wrong, and nothing of the bolt."""

    def refuse(value: int) -> None:
        raise Reject("odd")

    topology = Topology("refusing")
    topology.bolt("refuse", refuse, topology.spout("numbers", [1, 3]).shuffle(), on_error="restart")
    statistics = (await run_to_end(topology)).statistics()
    assert (statistics.components["refuse"].restarts, statistics.dead_letters) == (0, 2)
