"""When the batches of a ``BatchBolt`` are executed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterator, Sequence
from math import inf, nan
from typing import Any, cast

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tree,
    Tuple,
    TupleFailed,
)
from stormlet.errors import InvalidTopology, StartFailed
from stormlet.testing import SimulatedLoop
from tests.cast import take_a_second
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time

UNHASHABLE = (
    "cannot use 'list' as a dict key (unhashable type" if sys.version_info >= (3, 14) else "unhashable type"
)
"""Python's words for a list as a key."""


class Writing(BatchBolt[str, str]):
    """Executes every value alone, a second after it came, and takes its time for it."""

    within = 1.0

    def __init__(self, *, seconds: float, outputs: int = 0) -> None:
        self.seconds = seconds
        self.outputs = outputs
        self.began: list[tuple[str, float]] = []

    def key(self, value: str) -> str:
        """Every value is a batch."""
        return value

    async def execute_batch(self, tups: Sequence[Tuple[str]], out: Collector[str]) -> None:
        """Note the time, emit and wait."""
        self.began.extend((tup.value, now()) for tup in tups)
        for _ in range(self.outputs):
            out.emit("output")
        await asyncio.sleep(self.seconds)


async def test_a_batch_due_while_another_is_written_is_written_next() -> None:
    """A batch that becomes due during the call of another one is executed when that has returned."""
    bolt = Writing(seconds=0.75)
    topology = Topology("batches", message_timeout=None)
    spout = topology.spout("spout")
    topology.bolt("write", lambda: bolt, spout.shuffle())
    async with topology.run() as running:
        await running.emit(spout, "a")
        await asyncio.sleep(0.5)
        await running.emit(spout, "b")
        await asyncio.sleep(10)
        assert bolt.began == [("a", 1.0), ("b", 1.75)]


class Refusing(Writing):
    """Refuses some values, after it has noted the time."""

    async def execute_batch(self, tups: Sequence[Tuple[str]], out: Collector[str]) -> None:
        await super().execute_batch(tups, out)
        if tups[0].value in "ab":
            raise LookupError(tups[0].value)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_batches_that_fail_do_not_keep_others_from_being_written_when_they_are_due() -> None:
    """Each failure is acted on by itself, between two batches."""
    bolt = Refusing(seconds=0.0)
    topology = Topology("batches", message_timeout=None, max_attempts=1)
    spout = topology.spout("spout")
    topology.bolt("write", lambda: bolt, spout.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(spout, value) for value in "abc"]
        await asyncio.wait(map(asyncio.ensure_future, trees))
        assert bolt.began == [("a", 1.0), ("b", 1.0), ("c", 1.0)]
        assert running.statistics().components["write"].failed == 2


async def test_a_batch_due_while_another_waits_for_room_is_written_next() -> None:
    """A batch that becomes due while the outputs of another one wait for room is executed after it."""

    bolt = Writing(seconds=0.25, outputs=3)
    topology = Topology("batches", message_timeout=None)
    spout = topology.spout("spout")
    topology.bolt(
        "slow",
        take_a_second,
        topology.bolt("write", lambda: bolt, spout.shuffle()).shuffle(),
        queue_capacity=1,
    )
    async with topology.run() as running:
        await running.emit(spout, "a")
        await asyncio.sleep(0.5)
        await running.emit(spout, "b")
        await asyncio.sleep(20)
        assert [value for value, _ in bolt.began] == ["a", "b"]
        assert running.statistics().components["spout"].pending == 0


class Patient(Writing):
    """What waits for it does not time out."""

    resets_timeouts = True
    within = 7.0


async def test_what_a_patient_batch_holds_does_not_time_out() -> None:
    """Collecting takes longer than ``message_timeout``, so does executing, and so does waiting in the queue
    meanwhile; each value is executed once."""
    bolt = Patient(seconds=9.0)
    topology = Topology("batches", message_timeout=2.0)
    topology.bolt("write", lambda: bolt, topology.spout("spout", ["a", "b"]).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert [value for value, _ in bolt.began] == ["a", "b"]
    assert running.statistics().components["spout"].failed == 0


async def test_what_comes_after_a_rest_does_not_time_out_either() -> None:
    """While there was nothing to keep, no timer ran."""
    topology = Topology("batches", message_timeout=2.0)
    spout = topology.spout("spout")
    topology.bolt("write", lambda: Patient(seconds=0.0), spout.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(60.0)
        await (await running.emit(spout, "late"))


class LateAgain(Patient):
    """Another instance takes longer than ``message_timeout`` to be ready."""

    instances = 0

    async def prepare(self, context: TaskContext) -> None:
        """The first one is ready at once."""
        LateAgain.instances += 1
        await asyncio.sleep(0.0 if LateAgain.instances == 1 else 9.0)


async def test_what_is_queued_while_a_patient_bolt_is_restarted_does_not_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it came before the next instance was made, or while that got ready: there is no execute yet."""
    monkeypatch.setattr(LateAgain, "instances", 0)
    topology = Topology("batches", message_timeout=2.0, restart_delay=2.5)
    spout = topology.spout("spout")
    topology.bolt("write", lambda: LateAgain(seconds=0.0), spout.shuffle())
    async with topology.run() as running:
        running.kill("write")
        trees = list[Tree[object]]()
        for pause in (2.6, 0.5, 0.0):
            trees.append(await running.emit(spout, "value"))
            await asyncio.sleep(pause)
        for tree in trees:
            await tree
    assert LateAgain.instances == 2


async def test_without_resets_it_does() -> None:
    """The same bolt without them finds the messages timed out and replayed."""
    bolt = Writing(seconds=9.0)
    topology = Topology("batches", message_timeout=2.0, max_attempts=2)
    topology.bolt("write", lambda: bolt, topology.spout("spout", ["a", "b"]).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert running.statistics().components["spout"].failed == 4


class Unprepared(Patient):
    """Cannot be prepared while what it writes to is away."""

    away = False
    prepared = 0

    def __init__(self, *, asynchronous: bool) -> None:
        super().__init__(seconds=0.0)
        self.asynchronous = asynchronous

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        """At once, or later."""
        Unprepared.prepared += 1
        if self.asynchronous:
            return self.later()
        return self.find()

    async def later(self) -> None:
        """It takes a moment."""
        await asyncio.sleep(0.01)
        self.find()

    def find(self) -> None:
        """Raise if it is away."""
        if Unprepared.away:
            raise OSError("away")


def timers() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return sum(not each.cancelled() for each in loop._scheduled)  # pyright: ignore[reportPrivateUsage] - nobody else tells


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_patient_bolt_that_cannot_be_prepared_leaves_no_timers(
    asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it writes to may be away for hours, and each attempt to find it again is another instance."""
    monkeypatch.setattr(Unprepared, "prepared", 0)
    topology = Topology("batches", max_restarts=1000, restart_window=1e6)
    spout = topology.spout("spout")
    topology.bolt("write", lambda: Unprepared(asynchronous=asynchronous), spout.shuffle())
    async with topology.run() as running:
        monkeypatch.setattr(Unprepared, "away", True)
        running.kill("write")
        await asyncio.sleep(1)
        tree, before = await running.emit(spout, "waits"), timers()
        await asyncio.sleep(3600)
        assert Unprepared.prepared > 300
        assert timers() <= before + 1
        monkeypatch.setattr(Unprepared, "away", False)
        assert await tree == []


class Heavy(BatchBolt[int, None]):
    """A value weighs as much as it is; notes its batches, and when they came."""

    size = 10
    within = 5.0

    def __init__(self) -> None:
        self.batches: list[tuple[list[int], float]] = []

    def weight(self, value: int) -> int:
        """13 cannot be weighed."""
        if value == 13:
            raise ValueError("13")
        return value

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Note the values."""
        self.batches.append(([tup.value for tup in tups], now()))


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_a_batch_is_full_by_its_weight(executor: str) -> None:
    """The last value may go beyond, and one that weighs nothing fills nothing; the rest is flushed."""
    bolt = Heavy()
    topology = Topology("weights")
    values = topology.spout("values", [4, 5, 0, 9, 10, 30, 1, 2])
    topology.bolt("heavy", lambda: bolt, values.shuffle(), executor=executor)
    async with topology.run() as running:
        await running.finished()
    assert [values for values, _ in bolt.batches] == [[4, 5, 0, 9], [10], [30], [1, 2]]
    assert running.statistics().components["values"].acked == 8


async def test_what_weighs_nothing_waits_no_longer_than_others() -> None:
    """Its batch is executed when it is old enough (``within``)."""
    bolt = Heavy()
    topology = Topology("weightless", message_timeout=None)
    spout = topology.spout("spout")
    topology.bolt("heavy", lambda: bolt, spout.shuffle())

    async def keep_busy(value: int) -> None:
        await asyncio.sleep(100)  # so that there is no flush

    topology.bolt("busy", keep_busy, topology.spout("other", [1]).shuffle())
    async with topology.run() as running:
        await (await running.emit(spout, 0))
        assert bolt.batches == [([0], 5.0)]


async def test_a_value_that_cannot_be_weighed_fails() -> None:
    """Alone: it is in no batch."""
    bolt = Heavy()
    topology = Topology("unweighable", max_attempts=1)
    topology.bolt("heavy", lambda: bolt, topology.spout("values", [1, 13, 2]).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert [values for values, _ in bolt.batches] == [[1, 2]]
    assert running.statistics().components["values"].dead_letters == 1


class Weighed(BatchBolt[object, None]):
    """A value weighs what its first half says, and belongs to the batch that the second names."""

    size = 3
    within = 5.0

    def __init__(self) -> None:
        self.batches: list[list[object]] = []

    def key(self, value: Any) -> Any:
        """The second half."""
        return value[1]

    def weight(self, value: Any) -> Any:
        """The first half."""
        return value[0]

    def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
        """Note what there is."""
        self.batches.append([tup.value for tup in tups])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((None, "a"), "weight of weighed[0] returned None for (None, 'a'), and must"),
        ((nan, "a"), "weight of weighed[0] returned nan"),
        ((-1, "a"), "weight of weighed[0] returned -1"),
        (("2", "a"), "weight of weighed[0] returned '2'"),
        ((inf, "a"), "weight of weighed[0] returned inf"),
        ((1, []), f"key of weighed[0] gave [] as the name of a batch: {UNHASHABLE}"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"executor": "thread"}])
async def test_what_cannot_be_weighed_fails_and_is_in_no_batch(
    wrong: object, said: str, options: dict[str, Any]
) -> None:
    """It fails once for each attempt, by name, and those that wait for a full batch go on waiting for it."""
    bolt = Weighed()
    topology = Topology("weights", max_attempts=2)
    spout = topology.spout("spout", [(1, "a"), wrong, (2, "a")])
    topology.bolt("weighed", lambda: bolt, spout.shuffle(), **options)
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert (letter.value, letter.attempts, bolt.batches) == (wrong, 2, [[(1, "a"), (2, "a")]])
    assert str(letter.failure.exception).startswith(said)
    assert running.statistics().components["weighed"].failed == 2


async def test_each_key_has_a_batch_that_is_full_by_its_own_weight() -> None:
    """Whatever the batches of other keys have."""
    bolt = Weighed()
    topology = Topology("weights")
    values = topology.spout("values", [(2, "a"), (2, "b"), (1, "b"), (1, "a"), (1, "c")])
    topology.bolt("weighed", lambda: bolt, values.shuffle())
    await run_to_end(topology)
    assert bolt.batches == [[(2, "b"), (1, "b")], [(2, "a"), (1, "a")], [(1, "c")]]


class Shrinking(BatchBolt[int, None]):
    """Has smaller batches after the first."""

    size = 4

    def __init__(self) -> None:
        self.batches: list[int] = []

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Note how many there are."""
        self.batches.append(len(tups))
        self.size = 1


async def test_a_size_may_change_from_batch_to_batch() -> None:
    """The next one has it."""
    bolt = Shrinking()
    topology = Topology("shrinking")
    topology.bolt("shrinking", lambda: bolt, topology.spout("values", range(6)).shuffle())
    await run_to_end(topology)
    assert bolt.batches == [4, 1, 1]


async def test_a_wrong_weight_fails_where_there_are_no_keys() -> None:
    """By name; the others have their batch."""
    bolt = Heavy()
    topology = Topology("weights", max_attempts=1)
    topology.bolt("heavy", lambda: bolt, topology.spout("values", [9, -1, 1]).shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert str(letter.failure.exception).startswith("weight of heavy[0] returned -1 for -1, and must")
    assert [values for values, _ in bolt.batches] == [[9, 1]]


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_what_waits_for_its_batch_dies_with_the_task(executor: str) -> None:
    """Its message fails at once, not by its timeout."""
    topology = Topology("killed", message_timeout=1000)
    spout = topology.spout("spout")
    topology.bolt("heavy", Heavy, spout.shuffle(), executor=executor)
    async with topology.run() as running:
        tree = await running.emit(spout, 1)
        await asyncio.sleep(1)
        running.kill("heavy")
        with pytest.raises(TupleFailed, match=r"task lost in heavy\[0\]"):
            await tree
        assert now() < 2


async def test_what_weighs_nothing_waits_with_the_others() -> None:
    """0 is a weight, and so is a part of one."""
    bolt = Weighed()
    topology = Topology("weights")
    spout = topology.spout("spout", [(0, "a"), (2.5, "a"), (0, "a"), (0.5, "a"), (0, "a")])
    topology.bolt("weighed", lambda: bolt, spout.shuffle())
    await run_to_end(topology)
    assert [[weight for weight, _ in batch] for batch in cast("Any", bolt.batches)] == [[0, 2.5, 0, 0.5], [0]]


class Sized(BatchBolt[int, None]):
    """Knows the size of its batches when it is prepared."""

    def __init__(self, size: Any) -> None:
        self._prepared_size = size
        self.batches: list[list[int]] = []

    def prepare(self, context: TaskContext) -> None:
        self.size = self._prepared_size

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        self.batches.append([tup.value for tup in tups])


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_prepare_may_set_the_size(executor: Any) -> None:
    """Batches are of that size from the first one on."""
    topology, bolt = Topology("sized"), Sized(2)
    numbers = topology.spout("numbers", range(4))
    topology.bolt("bolt", lambda: bolt, numbers.shuffle(), executor=executor)
    await run_to_end(topology)
    assert bolt.batches == [[0, 1], [2, 3]]


@pytest.mark.parametrize("executor", ["loop", "thread"])
@pytest.mark.parametrize("size", [0, nan, "2"])
async def test_a_size_that_prepare_sets_is_checked(size: Any, executor: Any) -> None:
    """As that of the class is."""
    topology = Topology("sized")
    numbers = topology.spout("numbers", range(4))
    topology.bolt("bolt", lambda: Sized(size), numbers.shuffle(), executor=executor)
    with pytest.raises(StartFailed, match="bolt 'bolt': a batch needs an int size >= 1"):
        await run_to_end(topology)


async def take(self: object, value: object) -> int:
    """A key or a weight that is not there when it is needed."""
    return 1


def give(self: object, value: object) -> Iterator[int]:
    """The same."""
    yield 1


class Taking:
    """The same, as an object."""

    async def __call__(self, value: object) -> int:
        return 1


@pytest.mark.parametrize("executor", ["loop", "thread"])
@pytest.mark.parametrize("name", ["key", "weight"])
@pytest.mark.parametrize(
    ("method", "words"), [(take, "is async"), (give, "yields"), (Taking(), "is async"), (5, "is 5")]
)
async def test_a_key_or_weight_that_is_no_plain_method_is_refused(
    name: str, method: Any, words: str, executor: Any
) -> None:
    """Each input would be a batch of its own, by its coroutine, or fail."""
    made = type("Made", (Sized,), {name: method})
    topology = Topology("batches")
    numbers = topology.spout("numbers", range(4))
    topology.bolt("bolt", lambda: made(2), numbers.shuffle(), executor=executor)
    with pytest.raises(
        InvalidTopology, match=f"bolt 'bolt': {name} of Made {words}, and .*; write def {name}"
    ):
        await run_to_end(topology)


class Broken(BatchBolt[int, None]):
    size = 20

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        raise ValueError(len(tups))


def has_traceback(letter: DeadLetter) -> bool:
    return letter.failure.exception is not None and letter.failure.exception.__traceback__ is not None


async def test_messages_that_failed_of_one_exception_lose_its_traceback_each_for_itself() -> None:
    """A member of the batch that is replayed, or a letter before the last ten, does not take it from the others."""
    given_up: list[bool] = []
    topology = Topology("shared")
    once = topology.spout("once", range(15), max_attempts=1)
    twice = topology.spout("twice", range(5), max_attempts=2)
    topology.bolt("broken", Broken, twice.shuffle(), once.shuffle())
    running = await run_to_end(topology, dead_letters=lambda letter: given_up.append(has_traceback(letter)))
    assert given_up == [True] * 20
    assert [has_traceback(letter) for letter in running.dead_letters] == [False] * 10 + [True] * 10


class Summing(BatchBolt[int, int]):
    """Emits the sum of two values."""

    size = 2

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        """Emit without naming anchors."""
        out.emit(sum(tup.value for tup in tups))


async def test_what_a_batch_emits_is_anchored_to_all_its_members() -> None:
    """Unless it names other anchors: a member is acked when what came of the batch is."""
    seen: list[tuple[int, int]] = []

    class See(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            seen.append((tup.value, len(tup.roots)))
            out.fail(tup, permanent=True)

    topology = Topology("sums")
    sums = topology.bolt("sum", Summing, topology.spout("numbers", [1, 2, 3, 4]).shuffle())
    topology.bolt("see", See, sums.shuffle())
    running = await run_to_end(topology)
    assert (seen, running.statistics().dead_letters) == ([(3, 2), (7, 2)], 4)


class Picky(BatchBolt[int, None]):
    """Acks one member and fails another."""

    size = 3

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Leave the third one to the engine."""
        out.ack(tups[0])
        out.fail(tups[1], permanent=True)


async def test_members_that_a_batch_has_settled_stay_as_they_are() -> None:
    """The others are acked when it returns."""
    topology = Topology("picky")
    topology.bolt("pick", Picky, topology.spout("numbers", range(6)).shuffle())
    running = await run_to_end(topology)
    numbers = running.statistics().components["numbers"]
    assert (numbers.acked, numbers.dead_letters, running.statistics().components["pick"].restarts) == (
        4,
        2,
        0,
    )


class RaisesAtTheEnd(BatchBolt[int, None]):
    """Executes no batch before the end, and then raises."""

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Raise."""
        raise LookupError("refused")


async def test_the_exception_of_a_batch_that_stops_the_topology_is_shown_alone() -> None:
    """Nothing of the engine's stands before it in the traceback."""
    topology = Topology("alone")
    topology.bolt("bolt", RaisesAtTheEnd, topology.spout("numbers", range(3)).shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed) as crash:
        await run_to_end(topology)
    cause = crash.value.__cause__
    assert isinstance(cause, LookupError)
    assert cause.__context__ is None
