"""The README's "What happens when": what becomes of messages."""

from __future__ import annotations

import asyncio
import gc
import json
from functools import partial
from pathlib import Path
from weakref import ref

import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    FailureKind,
    InvalidConfiguration,
    NotTracked,
    Reject,
    ReliableSpout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from tests.cast import Forget, Refuse
from tests.helpers import run_to_end
from tests.readme.what_happens_when.kit import EmitsOnce, FailsAtFirst


@pytest.mark.simulated_time
async def test_when_attempts_are_used_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The last attempt at a message fails. It becomes a dead letter: its value, and why each attempt failed, go to
    `run(dead_letters=...)`, a function or a JSONL file; without one they are logged and the last 1000 are kept. The
    run goes on, and a command line's exit code will be 1.
    """

    def fail(value: int) -> None:
        if value == 1:
            raise ValueError("never")

    topology = Topology("used up", max_attempts=3)
    topology.bolt("fail", fail, topology.spout("values", [1, 2]).shuffle())
    running = await run_to_end(topology, dead_letters=tmp_path / "letters.jsonl")
    (line,) = (tmp_path / "letters.jsonl").read_text("utf-8").splitlines()
    letter = json.loads(line)
    assert (letter["attempts"], len(letter["history"])) == (3, 3)
    assert "never" in letter["exception"]
    assert [each.value for each in running.dead_letters] == [1]
    assert running.statistics().components["values"].acked == 1

    many = Topology("many", max_attempts=1)
    many.bolt("fail", partial(Refuse, "never"), many.spout("values", range(1001)).shuffle())
    running = await run_to_end(many)
    assert [each.value for each in running.dead_letters] == list(range(1, 1001))
    assert len([line for line in caplog.messages if line.startswith("dead letter of values[0]: ")]) >= 1001


@pytest.mark.simulated_time
async def test_when_a_traceback_is_kept() -> None:
    """Tracebacks keep the local variables of your code alive: only the last attempt of a letter has its traceback, and
    in `running.dead_letters` only that of the last ten.
    """

    class Large:
        """Takes much room."""

    async def fail(value: int) -> None:
        local = Large()
        locals_.append(ref(local))
        await asyncio.sleep(0.001)
        raise ValueError(value)

    def check(letter: DeadLetter) -> None:
        gc.collect()
        alive.append(sum(each() is not None for each in locals_))
        assert [has_traceback(each) for each in letter.history] == [False, False, True]

    def has_traceback(failure: Failure) -> bool:
        assert isinstance(failure.exception, ValueError)
        assert failure.place is not None
        assert failure.place.function == "fail"
        return failure.exception.__traceback__ is not None

    locals_ = list[ref[Large]]()
    alive = list[int]()
    topology = Topology("tracebacks", max_attempts=3)
    topology.bolt("fail", fail, topology.spout("values", range(30)).shuffle())
    running = await run_to_end(topology, dead_letters=check)
    tracebacks = [has_traceback(letter.failure) for letter in running.dead_letters]
    assert tracebacks == [False] * 20 + [True] * 10
    assert [len(letter.history) for letter in running.dead_letters] == [3] * 30
    assert (len(locals_), max(alive)) == (90, 14)


@pytest.mark.simulated_time
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_when_a_dead_letter_cannot_be_kept(tmp_path: Path) -> None:
    """The dead letter sink raises, or its file cannot be written. The topology crashes, and the message is left over: a
    dead letter counts when its sink has it. Where a `Spout` class has called `out.dead_letter`, the exception comes out
    of that call, and the message stays with the spout. A file that cannot be opened is refused at the start.
    """

    def full(letter: DeadLetter) -> None:
        raise OSError("no space left on device")

    def reject(value: object) -> None:
        raise Reject("no")

    topology = Topology("sink")
    topology.bolt("reject", reject, topology.spout("values", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match="no space left"):
        async with topology.run(dead_letters=full) as running:
            await running.finished()
    assert (running.statistics().dead_letters, running.statistics().left_over) == (0, 1)
    with pytest.raises(TopologyCrashed, match="cannot be written: No space left"):
        await run_to_end(topology, dead_letters="/dev/full")
    with pytest.raises(InvalidConfiguration, match="cannot be written"):
        await run_to_end(topology, dead_letters=tmp_path / "missing" / "letters.jsonl")
    told: list[object] = []

    class GivesUp(EmitsOnce):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            super().open(context, out)
            self.out = out

        async def fail(self, message_id: object, failure: Failure) -> None:
            with pytest.raises(OSError, match="no space left"):
                await self.out.dead_letter(1, failure, message_id=message_id)
            told.append(message_id)

    topology = Topology("given up")
    topology.bolt("reject", reject, topology.spout("once", GivesUp).shuffle())
    running = await run_to_end(topology, dead_letters=full)
    assert (len(told), running.statistics().dead_letters) == (1, 0)


class EmitsReliably(EmitsOnce, ReliableSpout[int]):
    """The same, kept by the engine."""


@pytest.mark.simulated_time
@pytest.mark.parametrize(("spout", "told"), [(EmitsOnce, FailureKind.FAILED), (EmitsReliably, None)])
async def test_when_a_message_of_a_class_fails(spout: type[EmitsOnce], told: FailureKind | None) -> None:
    """A message of a `Spout` class fails. Its `fail(message_id, failure)` is called at the task that emitted it, and
    says why; whether the message comes again is for the spout to decide. What was pending when an instance died fails
    at the next one. Those of a `ReliableSpout` are kept and replayed by the engine.
    """
    instances = [spout(), spout()]
    instances[1].next_tuple = lambda out: None  # type: ignore[method-assign]
    left, bolt = iter(instances), FailsAtFirst()
    topology = Topology("class")
    values = topology.spout("values", lambda: next(left), parallelism=2)
    topology.bolt("some", lambda: bolt, topology.bolt("odd", lambda value: "odd", values.shuffle()).shuffle())
    async with topology.run():
        await asyncio.sleep(10)
    assert [each.heard for each in instances] == [[("one", told)], []]
    assert len(bolt.seen) == (1 if told else 3)

    instances = [spout(), spout()]
    instances[1].next_tuple = lambda out: None  # type: ignore[method-assign]
    left = iter(instances)
    topology = Topology("dead", message_timeout=None, drain_timeout=0)
    topology.bolt("hold", Forget, topology.spout("values", lambda: next(left)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.kill("values")
        await asyncio.sleep(1)
        assert instances[0].heard == []
        assert instances[1].heard == ([("one", FailureKind.TASK_LOST)] if told else [])


@pytest.mark.simulated_time
async def test_when_an_awaited_tree_fails() -> None:
    """A message of the host fails or times out. `await tree` raises `TupleFailed` or `TupleTimedOut` with the failure;
    there is one attempt unless `emit` was given `attempts=`, and it is no dead letter.
    """

    def fail(value: str) -> None:
        if value == "fail":
            raise ValueError("no")

    class HoldOne(Bolt[str, None]):
        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            if tup.value != "hold":
                out.ack(tup)

    topology = Topology("awaited", message_timeout=10)
    values = topology.spout("values", outputs=str)
    topology.bolt("fail", fail, values.shuffle())
    topology.bolt("hold", HoldOne, values.shuffle())
    async with topology.run() as running:
        with pytest.raises(TupleFailed) as failed:
            await (await running.emit(values, "fail"))
        assert isinstance(failed.value.__cause__, ValueError)
        with pytest.raises(TupleTimedOut) as late:
            await (await running.emit(values, "hold"))
        assert late.value.failure.holders == ("hold",)
        assert running.statistics().components["values"].replayed == 0
        with pytest.raises(TupleFailed):
            await (await running.emit(values, "fail", attempts=3))
        assert running.statistics().components["values"].replayed == 2
    assert running.statistics().dead_letters == 0


@pytest.mark.simulated_time
async def test_when_a_wait_is_cancelled() -> None:
    """A task that awaits a tree, or waits in `running.emit` for room, is cancelled. The tree goes on without it; of an
    `emit` that was cancelled nothing was emitted.
    """
    seen: list[int] = []

    async def slow(value: int) -> None:
        await asyncio.sleep(5)
        seen.append(value)

    topology = Topology("waits", max_spout_pending=1)
    values = topology.spout("values", outputs=int)
    topology.bolt("slow", slow, values.shuffle())
    async with topology.run() as running:
        tree = await running.emit(values, 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await tree
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await running.emit(values, 2)
        assert list(await tree) == []
    assert seen == [1]
    assert running.statistics().components["values"].emitted == 1


@pytest.mark.simulated_time
async def test_when_too_many_trees_are_open() -> None:
    """Twice as many trees are open as `acker_high_water` says. A further emit reaches no task and fails with OVERFLOW;
    its replay is no attempt. For a message of the host it is one: who awaits the tree is told, rather than left to
    wait.
    """
    topology = Topology("many", acker_high_water=2, max_attempts=1, message_timeout=None)

    async def slow(value: int) -> None:
        await asyncio.sleep(0.01)

    topology.bolt("slow", slow, topology.spout("values", range(20)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0)
        await running.finished()
        counts = running.statistics().components
    assert counts["values"].overflowed == counts["values"].failed > 0
    assert (counts["slow"].executed, counts["values"].acked, counts["values"].dead_letters) == (20, 20, 0)
    fed = Topology("fed", acker_high_water=2, message_timeout=None)
    values = fed.spout("values", outputs=int)
    fed.bolt("slow", slow, values.shuffle())
    async with fed.run() as running:
        *taken, refused = [await running.emit(values, number) for number in range(5)]
        with pytest.raises(TupleFailed, match="overflow"):
            await refused
        assert [await tree for tree in taken] == [[]] * 4


@pytest.mark.simulated_time
async def test_when_there_are_no_ackers(caplog: pytest.LogCaptureFixture) -> None:
    """There are no ackers. With `ackers=0` each message counts as acked once it was emitted, and awaiting a tree raises
    `NotTracked`; a warning says so at the start.
    """
    spout = EmitsOnce()
    topology = Topology("no ackers", ackers=0)
    values, fed = topology.spout("values", lambda: spout), topology.spout("fed")
    topology.bolt("hold", Forget, values.shuffle(), fed.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        assert spout.heard == [("one", None)]
        with pytest.raises(NotTracked):
            await (await running.emit(fed, 1))
    assert "runs with ackers=0: nothing is tracked, and every message counts as acked" in caplog.text
