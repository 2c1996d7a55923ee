"""The README's "What happens when": each of its sentences is the docstring of the test that shows it."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from textwrap import dedent
from typing import Literal

import pytest

from stormlet import (
    AlreadySettled,
    BasicBolt,
    Bolt,
    Collector,
    DeadLetter,
    EndOfStream,
    Failure,
    FailureKind,
    InvalidConfiguration,
    NotTracked,
    Place,
    Reject,
    ReliableSpout,
    Running,
    Spout,
    SpoutCollector,
    StartFailed,
    StillHeld,
    TaskContext,
    Topology,
    TopologyCrashed,
    TopologyStopping,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from tests.helpers import block, leave_by, now, run_to_end

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def sentences() -> list[str]:
    """The bullets of the section, each on one line and without its bold print."""
    section = README.split("## What happens when\n", 1)[1].split("\n## ", 1)[0]
    bullets = re.findall(r"^- (.*?)(?=^- |^\S|\Z)", section, re.MULTILINE | re.DOTALL)
    return [" ".join(bullet.split()).replace("**", "") for bullet in bullets]


def promises() -> Iterator[str]:
    """The docstrings of the tests below."""
    for node in ast.parse(Path(__file__).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_when_"):
            yield " ".join((ast.get_docstring(node) or "").split())


def test_every_sentence_has_its_test() -> None:
    """The section and the tests of this file say the same, in the same order."""
    assert sentences() == list(promises())


class Hold(Bolt[object, None]):
    """Never settles what it gets."""

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Hold it."""


class Never(Bolt[object, None]):
    """Fails what it gets."""

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Fail it."""
        out.fail(tup, "never")


class FailsAtFirst(BasicBolt[object, None]):
    """Raises at the first attempts of each message."""

    attempts = 2

    def __init__(self) -> None:
        self.seen: list[tuple[float, object, int]] = []

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Note the call, and raise at the first attempts at "odd"."""
        self.seen.append((round(now(), 1), tup.value, tup.attempt))
        if tup.value == "odd" and tup.attempt <= self.attempts:
            raise ConnectionError("not yet")


@pytest.mark.simulated_time
async def test_when_a_bolt_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A bolt raises. Its input fails and the bolt goes on with the next one; a message of a generator or iterable
    comes again after 0.1 s, then 0.2 s and so on with some jitter, in five attempts at most. The log has the
    traceback once and counts the repetitions.
    """
    bolts: list[FailsAtFirst] = []

    def make() -> FailsAtFirst:
        bolts.append(FailsAtFirst())
        return bolts[-1]

    topology = Topology("raises")
    topology.bolt("some", make, topology.spout("values", ["odd", "even"]).shuffle())
    running = await run_to_end(topology)
    ((first, *_), (second, *_), (third, *_), (fourth, *_)) = bolts[0].seen
    assert [value for _, value, _ in bolts[0].seen] == ["odd", "even", "odd", "odd"]
    assert first == second == 0
    assert 0.05 <= third <= 0.2 < fourth <= 0.6
    (failure,) = running.failures()
    assert (failure.kind, failure.count) == ("ConnectionError", 2)
    assert running.statistics().components["values"].acked == 2
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]
    assert "once more" in caplog.messages[1] or "1 more" in caplog.messages[1]

    class Always(FailsAtFirst):
        attempts = 5

    never = Topology("never")
    never.bolt("some", Always, never.spout("values", ["odd"]).shuffle())
    assert [letter.attempts for letter in (await run_to_end(never)).dead_letters] == [5]


@pytest.mark.simulated_time
async def test_when_a_bolt_rejects() -> None:
    """A bolt raises `Reject`, or calls `out.fail(tup, reason, permanent=True)`. The message goes to the dead letters
    at once, without replays.
    """

    def reject(value: object) -> None:
        raise Reject("no use")

    class Refuse(Bolt[object, None]):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            out.fail(tup, "no use", permanent=True)

    for logic in (reject, Refuse):
        letters: list[DeadLetter] = []
        topology = Topology("rejects")
        topology.bolt("reject", logic, topology.spout("values", [1]).shuffle())
        await run_to_end(topology, dead_letters=letters.append)
        assert [(each.attempts, each.failure.reason) for each in letters] == [(1, "no use")]


@pytest.mark.simulated_time
@pytest.mark.parametrize(("on_error", "failed", "restarts"), [("restart", 2, 2), ("stop", 1, 0)])
async def test_when_a_bolt_is_to_die_of_errors(
    on_error: Literal["restart", "stop"], failed: int, restarts: int
) -> None:
    """A bolt with `on_error="restart"` raises. Its input fails, and its task dies and is restarted; with
    `on_error="stop"` the topology crashes at once.
    """
    runs: list[Running] = []
    topology = Topology("dies")
    values = topology.spout("values", ["odd"])
    topology.bolt("some", FailsAtFirst, values.shuffle(), on_error=on_error)

    async def run() -> None:
        async with topology.run() as running:
            runs.append(running)
            await running.finished()

    with pytest.raises(TopologyCrashed) if on_error == "stop" else nullcontext():
        await run()
    counts = runs[0].statistics().components
    assert (counts["values"].failed, counts["some"].restarts) == (failed, restarts)


@pytest.mark.simulated_time
async def test_when_attempts_are_used_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The last attempt fails, too. The message becomes a dead letter: its value, and why each attempt failed, go to
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
    many.bolt("fail", Never, many.spout("values", range(1001)).shuffle())
    running = await run_to_end(many)
    assert [each.value for each in running.dead_letters] == list(range(1, 1001))
    assert len([line for line in caplog.messages if line.startswith("dead letter of values[0]: ")]) >= 1001


@pytest.mark.simulated_time
async def test_when_a_tuple_is_never_settled() -> None:
    """A bolt forgets to ack. After `message_timeout` the message fails, and log and failure name the component that
    holds the tuple; it is then replayed like any other. Until then, `running.explain` says that it was forgotten.
    """
    letters: list[DeadLetter] = []
    topology = Topology("forgets", message_timeout=10, max_attempts=2)
    topology.bolt("holder", Hold, topology.spout("values", [1]).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
        (explanation,) = running.explain_oldest()
        assert running.explain(explanation.root or 0).outstanding[0].place is Place.FORGOTTEN
        await running.finished()
    (letter,) = letters
    assert [each.kind for each in letter.history] == [FailureKind.TIMEOUT, FailureKind.TIMEOUT]
    assert letter.failure.holders == ("holder",)


@pytest.mark.simulated_time
@pytest.mark.parametrize("second", ["ack", "fail", "emit"])
async def test_when_an_input_is_settled_twice(second: str) -> None:
    """A bolt settles an input twice, or anchors to one that it has settled. `AlreadySettled` is raised there and names
    the tuple; the first outcome stands. To settle an input whose message has timed out meanwhile is legal and changes
    nothing.
    """

    class Twice(Bolt[str, str]):
        async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            if tup.value == "late":
                await asyncio.sleep(20)
            out.ack(tup)
            with pytest.raises(AlreadySettled, match=r"<Tuple 'late'|<Tuple 'once'"):
                out.emit("more", anchors=tup) if second == "emit" else getattr(out, second)(tup)

    topology = Topology("twice", message_timeout=10)
    values = topology.spout("values", outputs=str)
    topology.bolt("twice", Twice, values.shuffle())
    async with topology.run() as running:
        await (await running.emit(values, "once"))
        with pytest.raises(TupleTimedOut):
            await (await running.emit(values, "late"))
        await asyncio.sleep(20)
        counts = running.statistics().components
        assert (counts["values"].acked, counts["values"].failed) == (1, 1)
        assert (counts["twice"].acked, counts["twice"].errors) == (2, 0)


@pytest.mark.simulated_time
async def test_when_a_bolt_keeps_what_is_over() -> None:
    """A bolt's `flush` leaves inputs unsettled whose messages are over, while a spout waits until everything is
    settled. The topology crashes with `StillHeld`, which names the bolt: nothing else would end that wait, of a spout
    that calls `out.pause_until_settled()`, as those of epochs do.
    """

    class Pausing(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            out.emit(1, message_id=1)
            out.pause_until_settled()

    topology = Topology("held", message_timeout=10.0)
    topology.bolt("hold", Hold, topology.spout("values", Pausing).shuffle())
    with pytest.raises(TopologyCrashed, match=r"hold\[0\]") as raised:
        await run_to_end(topology)
    assert isinstance(raised.value.__cause__, StillHeld)


@pytest.mark.simulated_time
async def test_when_a_bolt_is_slow() -> None:
    """A bolt is slower than what feeds it. Its queue fills to `queue_capacity`, then those who feed it wait, up to the
    spout, which is not asked for more; nothing is dropped and memory does not grow.
    """
    asked = 0

    def values() -> Iterator[int]:
        nonlocal asked
        while True:
            asked += 1
            yield asked

    async def slow(value: int) -> None:
        await asyncio.sleep(1)

    topology = Topology("slow", queue_capacity=10, max_spout_pending=None, message_timeout=None)
    topology.bolt("slow", slow, topology.spout("values", values).shuffle())
    async with topology.run(drain_timeout=None) as running:
        await asyncio.sleep(100)
        assert running.statistics().components["slow"].executed == 99
        assert asked <= 99 + 2 * 10 + 1
        assert running.health().full == ("slow",)


@pytest.mark.simulated_time
async def test_when_too_many_trees_are_open() -> None:
    """Twice as many trees are open as `acker_high_water` says. A further emit reaches no task and fails with OVERFLOW;
    its replay is no attempt.
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


class EmitsOnce(Spout[int]):
    """Emits 1, and notes what it hears of it."""

    heard: list[tuple[object, FailureKind | None]]

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.heard = []
        self.left = [1]

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        out.emit(self.left.pop(), message_id="one")

    def ack(self, message_id: object) -> None:
        self.heard.append((message_id, None))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.heard.append((message_id, failure.kind))


class EmitsReliably(EmitsOnce, ReliableSpout[int]):
    """The same, kept by the engine."""


@pytest.mark.simulated_time
@pytest.mark.parametrize(("spout", "told"), [(EmitsOnce, FailureKind.FAILED), (EmitsReliably, None)])
async def test_when_a_message_of_a_class_fails(spout: type[EmitsOnce], told: FailureKind | None) -> None:
    """A message of a `Spout` class fails. Its `fail(message_id, failure)` is called at the task that emitted it, and
    says why; whether the message comes again is for the spout to decide. Those of a `ReliableSpout` are kept and
    replayed by the engine.
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


async def noted(body: Awaitable[None], ends: list[object]) -> None:
    """Await it, and note whether it was cancelled."""
    try:
        await body
    except asyncio.CancelledError:
        ends.append("cancelled")
        raise


class Dies(Bolt[int, None]):
    """Holds its inputs; the first three instances die of their first tick."""

    def __init__(self, made: list[float]) -> None:
        made.append(asyncio.get_running_loop().time())
        self.made = made

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if len(self.made) > 3:
            out.ack(tup)

    def tick(self, out: Collector[None]) -> None:
        if len(self.made) <= 3:
            raise ConnectionError("the database is gone")


@pytest.mark.simulated_time
async def test_when_a_task_dies() -> None:
    """A spout raises, or another method that has no tuple to fail. Its task is restarted: another instance is made
    after 0.1 s, then 0.2 s, 0.4 s; what the dead one had in hand fails with TASK_LOST at once and is replayed, what
    was queued waits. Iterables go on where they were.
    """
    made: list[float] = []
    topology = Topology("dies", message_timeout=None)
    numbers = topology.spout("numbers", [1, 2])
    topology.spout("open")  # as long as it may bring something, nothing is flushed
    topology.bolt("bolt", lambda: Dies(made), numbers.shuffle(), tick=1.0)
    async with topology.run() as running:
        await asyncio.sleep(10.0)
        counts = running.statistics().components
    assert made == pytest.approx([0.0, 1.1, 2.2, 3.4])
    assert counts["bolt"].restarts == 3
    assert (counts["numbers"].acked, counts["numbers"].failed) == (2, 6)


class RaisesOnce:
    """An iterable that raises between 1 and 2, and goes on."""

    def __init__(self) -> None:
        self.left: list[int | Exception] = [3, 2, ConnectionError("the broker is gone"), 1]

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        match self.left.pop():
            case Exception() as error:
                raise error
            case number:
                return number


@pytest.mark.simulated_time
async def test_what_was_queued_and_what_comes_next_after_a_death() -> None:
    """The second half of the sentence above: a bolt's queue survives it, and so does an iterable."""
    seen: list[tuple[int, float]] = []

    async def see(number: int) -> None:
        seen.append((number, now()))
        await asyncio.sleep(10)

    topology = Topology("queued", message_timeout=None)
    topology.bolt("see", see, topology.spout("numbers", RaisesOnce()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(5)
        running.kill("see")
        await running.finished()
        assert running.statistics().components["numbers"].restarts == 1
    assert [number for number, _ in seen] == [1, 2, 3, 1]
    assert seen[1][1] == pytest.approx(5.1)


@pytest.mark.simulated_time
@pytest.mark.parametrize("dies", ["generator", "bolt"])
async def test_when_a_source_raises(dies: str) -> None:
    """A task dies once more than `max_restarts` in `restart_window`, or a generator has raised. The topology crashes:
    the body of the block is cancelled, and the block raises `TopologyCrashed` with your exception as its cause.
    Messages without an outcome are counted as left over.
    """

    def values() -> Iterator[int]:
        yield 1
        raise ConnectionError("the broker is gone")

    topology = Topology("crashes", max_restarts=2, restart_window=60, max_attempts=1000)
    topology.spout("open")  # as long as it may bring something, nothing is flushed
    if dies == "generator":
        topology.bolt("hold", Hold, topology.spout("values", values).shuffle())
    else:
        topology.bolt("dies", lambda: Dies([]), topology.spout("values", [1]).shuffle(), tick=1.0)
    ends: list[object] = []

    async def host() -> None:
        try:
            async with topology.run() as running:
                await noted(asyncio.sleep(1000), ends)
        finally:
            ends.append(running.statistics().left_over)

    with pytest.raises(TopologyCrashed) as raised:
        await host()
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert ends == ["cancelled", 1]


@pytest.mark.simulated_time
async def test_when_an_acker_dies() -> None:
    """An acker dies. Its open trees fail at once, are replayed, and that is no attempt of theirs."""
    topology = Topology("acker", max_attempts=1, message_timeout=1000.0)
    topology.bolt("slow", lambda value: asyncio.sleep(1.0), topology.spout("one", [1]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        running.kill("__acker")
        await running.finished()
        counts = running.statistics().components["one"]
    assert (counts.acked, counts.failed, counts.dead_letters) == (1, 1, 0)
    assert asyncio.get_running_loop().time() < 3.0


@pytest.mark.simulated_time
async def test_when_a_task_is_killed() -> None:
    """`running.kill("split")` is called. A task dies as if its code had raised, and is restarted after 0.1 s, however
    often that happens: it does not count against `max_restarts`.
    """
    topology = Topology("killed", max_restarts=0, max_attempts=100, message_timeout=None)
    topology.bolt("split", lambda value: asyncio.sleep(3600), topology.spout("values", [1]).shuffle())
    async with topology.run() as running:
        for times in range(1, 8):
            await asyncio.sleep(60)
            running.kill("split")
            await asyncio.sleep(0.11)
            counts = running.statistics().components
            assert (counts["split"].restarts, counts["values"].failed) == (times, times)
        running.stop()
        running.stop()


@pytest.mark.simulated_time
async def test_when_the_loop_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop is held up, by code that blocks or by a machine that sleeps. Timeouts and ticks that were due
    meanwhile come late and once, never early, so that open trees still have time to complete. Setting the machine's
    clock changes nothing.
    """
    ticks: list[float] = []

    class Slow(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(tup.value)
            out.ack(tup)

        def tick(self, out: Collector[None]) -> None:
            ticks.append(now())

    topology = Topology("late", message_timeout=10.0)
    values = topology.spout("values", outputs=int)
    topology.bolt("slow", Slow, values.shuffle(), tick=30.0, concurrency=2)
    async with topology.run() as running:
        open_before = await running.emit(values, 3)
        await asyncio.sleep(1)
        block(100.0)
        began = now()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        after = await running.emit(values, 1000)
        await open_before
        with pytest.raises(TupleTimedOut):
            await after
        assert 10.0 <= now() - began <= 15.0
        assert ticks == [101.0]
        running.stop()
        running.stop()


@pytest.mark.simulated_time
async def test_when_a_start_fails() -> None:
    """`prepare` or `open` raises. Nothing starts: entering the block raises `StartFailed` with your exception as its
    cause, after what was started has been closed.
    """
    closed: list[str] = []

    class First(Hold):
        def cleanup(self) -> None:
            closed.append("first")

    class Second(Hold):
        def prepare(self, context: TaskContext) -> None:
            raise FileNotFoundError("no model")

    topology = Topology("start")
    values = topology.spout("values", [1])
    topology.bolt("first", First, values.shuffle())
    topology.bolt("second", Second, values.shuffle())
    with pytest.raises(StartFailed) as raised:
        async with topology.run():
            pytest.fail("the block was entered")
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    assert closed == ["first"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("resuming", [False, True])
async def test_when_the_end_raises(resuming: bool, caplog: pytest.LogCaptureFixture) -> None:
    """`close` or `cleanup` raises. The log has it, and everything else is closed all the same. If the spout is one that
    another run resumes, as `DataFrameSpout(df, checkpoint=...)` is, that run would not know of it: then the topology
    crashes, and the block raises `TopologyCrashed`.
    """
    closed: list[str] = []

    class Source(Spout[int]):
        resumes = resuming

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            raise EndOfStream

        def close(self) -> None:
            raise OSError("no space")

    class Second(Hold):
        def cleanup(self) -> None:
            closed.append("second")
            raise ValueError("no connection")

    topology = Topology("end")
    topology.bolt("second", Second, topology.spout("values", Source).shuffle())
    with pytest.raises(TopologyCrashed) if resuming else nullcontext() as raised:
        await run_to_end(topology)
    assert closed == ["second"]
    assert "close of values[0] raised OSError('no space')" in caplog.text
    assert "cleanup of second[0] raised ValueError('no connection')" in caplog.text
    assert raised is None or isinstance(raised.value.__cause__, OSError)


@pytest.mark.simulated_time
@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError])
async def test_when_the_body_raises(error: type[BaseException]) -> None:
    """The body of the block raises, or its task is cancelled. The topology is cancelled without a drain, `close` and
    `cleanup` are called, and your exception comes out.
    """
    closed: list[str] = []

    class Closes(Hold):
        def cleanup(self) -> None:
            closed.append("bolt")

    class Closing(EmitsOnce):
        def close(self) -> None:
            closed.append("spout")

    topology = Topology("body")
    topology.bolt("hold", Closes, topology.spout("values", Closing).shuffle())
    host = asyncio.create_task(leave_by(KeyError("mine"), topology, after=1))
    if error is asyncio.CancelledError:
        asyncio.get_running_loop().call_at(1, host.cancel)
    with pytest.raises(error):
        await host
    assert now() == 1
    assert sorted(closed) == ["bolt", "spout"]


@pytest.mark.simulated_time
async def test_when_the_block_is_left() -> None:
    """The body of the block ends. The topology drains: spouts end, what is in flight is finished, replays included,
    and `running.emit` raises `TopologyStopping`; after `drain_timeout` what is left fails with SHUTDOWN, is counted,
    and goes to `dead_letters=`.
    """
    letters: list[DeadLetter] = []
    topology = Topology("drains", drain_timeout=20)
    values, flaky = topology.spout("values", [1, 2]), topology.spout("flaky", ["odd"])
    topology.bolt("hold", Hold, values.shuffle())
    topology.bolt("some", FailsAtFirst, flaky.shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(0.01)
        running.stop()
        with pytest.raises(TopologyStopping):
            await running.emit(values, 3)
    assert now() == 20.01
    counts = running.statistics().components["flaky"]
    assert (counts.acked, counts.replayed) == (1, 2)
    assert [each.failure.kind for each in letters] == [FailureKind.SHUTDOWN] * 2
    assert running.statistics().left_over == 2


@pytest.mark.simulated_time
@pytest.mark.parametrize(("calls", "seconds"), [(1, 21), (2, 1)])
async def test_when_a_stop_is_asked_for(calls: int, seconds: float) -> None:
    """`running.stop()` is called. The topology drains while the block goes on; a second call cancels the drain, and
    what is open fails with SHUTDOWN at once.
    """
    topology = Topology("stops", drain_timeout=20, message_timeout=None)
    values = topology.spout("values", outputs=int)
    topology.bolt("hold", Hold, values.shuffle())
    async with topology.run() as running:
        tree = await running.emit(values, 1)
        await asyncio.sleep(1)
        for _ in range(calls):
            running.stop()
        with pytest.raises(TupleFailed) as failed:
            await tree
        assert (failed.value.failure.kind, now()) == (FailureKind.SHUTDOWN, seconds)


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
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_when_a_dead_letter_cannot_be_kept(tmp_path: Path) -> None:
    """The dead letter sink raises, or its file cannot be written. The topology crashes, rather than lose the message
    silently; a file that cannot be opened is refused at the start.
    """

    def full(letter: DeadLetter) -> None:
        raise OSError("no space left on device")

    def reject(value: object) -> None:
        raise Reject("no")

    topology = Topology("sink")
    topology.bolt("reject", reject, topology.spout("values", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match="no space left"):
        await run_to_end(topology, dead_letters=full)
    with pytest.raises(TopologyCrashed, match="cannot be written: No space left"):
        await run_to_end(topology, dead_letters="/dev/full")
    with pytest.raises(InvalidConfiguration, match="cannot be written"):
        await run_to_end(topology, dead_letters=tmp_path / "missing" / "letters.jsonl")


@pytest.mark.simulated_time
async def test_when_there_are_no_ackers(caplog: pytest.LogCaptureFixture) -> None:
    """There are no ackers. With `ackers=0` each message counts as acked once it was emitted, and awaiting a tree raises
    `NotTracked`; a warning says so at the start.
    """
    spout = EmitsOnce()
    topology = Topology("no ackers", ackers=0)
    values, fed = topology.spout("values", lambda: spout), topology.spout("fed")
    topology.bolt("hold", Hold, values.shuffle(), fed.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        assert spout.heard == [("one", None)]
        with pytest.raises(NotTracked):
            await (await running.emit(fed, 1))
    assert "runs with ackers=0: nothing is tracked, and every message counts as acked" in caplog.text


# The process: these need one of their own, and real time.

ENDLESS = """
    import itertools
    from pathlib import Path
    from stormlet import Topology

    def note(value):
        with Path("noted").open("a") as file:
            file.write(f"{value}\\n")

    def fail(value):
        raise ValueError("no")

    topology = Topology("endless", max_attempts=1)
    numbers = topology.spout("numbers", itertools.count, max_spout_pending=1)
    topology.bolt("note", note, numbers.shuffle())
"""


@contextmanager
def started(there: Path) -> Iterator[subprocess.Popen[str]]:
    """``python -m stormlet run flow.py`` in a process that does not outlive the test."""
    command = [sys.executable, "-m", "stormlet", "run", "flow.py"]
    with subprocess.Popen(command, cwd=there, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, f"{path.name} was never written"
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_when_a_signal_comes(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """Ctrl-C or SIGTERM comes to `python -m stormlet run`. The topology drains, and the exit code is 130 or 143; a
    second signal cancels, a third one kills. An embedded topology handles no signals: that is the host's affair.
    """
    (tmp_path / "flow.py").write_text(
        dedent(ENDLESS).replace("itertools.count,", "itertools.count(),"), "utf-8"
    )
    with started(tmp_path) as process:
        wait_for(tmp_path / "noted")
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert "draining" in errors


STUCK = """
    import asyncio, time
    from pathlib import Path
    from stormlet import Topology

    async def stuck(value):
        Path("noted").write_text("it runs")
        SLEEP

    topology = Topology("stuck")
    topology.bolt("stuck", stuck, topology.spout("numbers", [1]).shuffle())
"""


@pytest.mark.parametrize(
    ("sleep", "times", "code"),
    [("await asyncio.sleep(1000)", 2, 130), ("time.sleep(1000)", 3, -signal.SIGINT)],
)
def test_a_second_and_a_third_signal(sleep: str, times: int, code: int, tmp_path: Path) -> None:
    """The second half of the sentence above: what does not drain is cancelled, what cannot be cancelled is killed."""
    (tmp_path / "flow.py").write_text(dedent(STUCK).replace("SLEEP", sleep), "utf-8")
    with started(tmp_path) as process:
        wait_for(tmp_path / "noted")
        assert process.stderr is not None
        said: list[str] = []
        for _ in range(times):  # one after the other: signals that come together are one
            process.send_signal(signal.SIGINT)
            said.append(process.stderr.readline())
        process.communicate(timeout=30)
    assert process.returncode == code
    answers = ["SIGINT: draining; once more cancels\n", "SIGINT: cancelling; once more kills\n", ""]
    assert said == answers[:times]


@pytest.mark.simulated_time
async def test_an_embedded_topology_handles_no_signals() -> None:
    """The last part of it."""
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    topology = Topology("embedded")
    topology.spout("fed")
    async with topology.run():
        assert [signal.getsignal(number) for number in signal.valid_signals()] == before


def test_when_messages_are_given_up(tmp_path: Path) -> None:
    """A run at the command line has crashed, or ends with messages that were given up or left over. The exit code
    is 1, and the summary says how many.
    """
    text = dedent(ENDLESS).replace("itertools.count,", "[1, 2],").replace('"note", note', '"fail", fail')
    (tmp_path / "flow.py").write_text(text, "utf-8")
    with started(tmp_path) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert re.search(r"dead letters:? +2|2 dead letters", errors)


EXITS = """
    import sys
    from stormlet import Topology

    topology = Topology("exits")
    topology.bolt("leave", sys.exit, topology.spout("codes", [7]).shuffle())
"""


HOST = """
    import asyncio
    from flow import topology

    async def main():
        async with topology.run() as running:
            await running.finished()

    asyncio.run(main())
"""


def test_when_a_bolt_exits(tmp_path: Path) -> None:
    """A bolt calls `sys.exit()`. At the command line the topology crashes, and the exit code is 1 whatever the bolt
    says; in a host it ends the event loop, as it does anywhere in asyncio.
    """
    (tmp_path / "flow.py").write_text(dedent(EXITS), "utf-8")
    with started(tmp_path) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "SystemExit" in errors
    (tmp_path / "host.py").write_text(dedent(HOST), "utf-8")
    host = subprocess.run(
        [sys.executable, "host.py"], cwd=tmp_path, capture_output=True, timeout=30, check=False
    )
    assert host.returncode == 7


SPOOL = """
    import os, time
    from pathlib import Path
    from stormlet import Spout, Topology

    class Spool(Spout):
        "Every file of a directory is a message; it is removed when its tree is acked."

        def open(self, context, out):
            self.left = sorted(Path("spool").iterdir())

        def next_tuple(self, out):
            if self.left:
                path = self.left.pop(0)
                out.emit(path.name, message_id=path)

        def ack(self, path):
            path.unlink()

    def process(name):
        with Path("done").open("a") as file:
            file.write(f"{name}\\n")
        time.sleep(0.01)

    topology = Topology("spool")
    topology.bolt("process", process, topology.spout("spool", Spool).shuffle())
"""


def left(there: Path) -> int:
    return len(list((there / "spool").iterdir()))


def test_when_the_process_dies(tmp_path: Path) -> None:
    """The process dies, by `kill -9` or a power cut. All that was in memory is gone: counts of bolts, queues, what a
    generator was going to yield. A source that forgets a message only when it was acked (a broker, a spool) delivers
    the others again, so that each is processed at least once, and some of them twice.
    """
    (tmp_path / "flow.py").write_text(dedent(SPOOL), "utf-8")
    (tmp_path / "spool").mkdir()
    names = [f"{number:03}" for number in range(150)]
    for name in names:
        (tmp_path / "spool" / name).touch()
    with started(tmp_path) as process:
        wait_for(tmp_path / "done")
        process.kill()
    assert left(tmp_path), "it was too fast to be killed"
    with started(tmp_path):
        deadline = time.monotonic() + 30
        while left(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
    done = (tmp_path / "done").read_text("utf-8").split()
    assert sorted(set(done)) == names
    assert left(tmp_path) == 0
