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

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    DeadLetter,
    EndOfStream,
    FailureKind,
    Place,
    Reject,
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
from tests.helpers import leave_by, now, run_to_end

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
async def test_when_a_bolt_raises() -> None:
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
    assert topology.configuration.max_attempts == 5


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
async def test_when_attempts_are_used_up(tmp_path: Path) -> None:
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


@pytest.mark.simulated_time
async def test_when_a_source_raises() -> None:
    """A task dies once more than `max_restarts` in `restart_window`, or a generator has raised. The topology crashes:
    the body of the block is cancelled, and the block raises `TopologyCrashed` with your exception as its cause.
    Messages without an outcome are counted as left over.
    """

    def values() -> Iterator[int]:
        yield 1
        raise ConnectionError("the broker is gone")

    topology = Topology("crashes")
    topology.bolt("hold", Hold, topology.spout("values", values).shuffle())
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
async def test_when_the_body_raises() -> None:
    """The body of the block raises, or its task is cancelled. The topology is cancelled without a drain, `close` and
    `cleanup` are called, and your exception comes out.
    """
    closed: list[str] = []

    class Closes(Hold):
        def cleanup(self) -> None:
            closed.append("bolt")

    topology = Topology("body")
    topology.bolt("hold", Closes, topology.spout("values", [1]).shuffle())
    with pytest.raises(KeyError):
        await leave_by(KeyError("mine"), topology, after=1)
    assert now() == 1
    assert closed == ["bolt"]


@pytest.mark.simulated_time
async def test_when_the_block_is_left() -> None:
    """The body of the block ends. The topology drains: spouts end, what is in flight is finished, replays included,
    and `running.emit` raises `TopologyStopping`; after `drain_timeout` what is left fails with SHUTDOWN, is counted,
    and goes to `dead_letters=`.
    """
    letters: list[DeadLetter] = []
    seen: list[int] = []
    topology = Topology("drains", drain_timeout=20)
    values = topology.spout("values", [1, 2])
    topology.bolt("hold", Hold, values.shuffle())
    topology.bolt("see", seen.append, values.shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
        running.stop()
        with pytest.raises(TopologyStopping):
            await running.emit(values, 3)
    assert now() == 21
    assert seen == [1, 2]
    assert [each.failure.kind for each in letters] == [FailureKind.SHUTDOWN] * 2
    assert running.statistics().left_over == 2


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
async def test_when_a_dead_letter_cannot_be_kept() -> None:
    """The dead letter sink raises. The topology crashes, rather than lose the message silently."""

    def full(letter: DeadLetter) -> None:
        raise OSError("no space left on device")

    def reject(value: object) -> None:
        raise Reject("no")

    topology = Topology("sink")
    topology.bolt("reject", reject, topology.spout("values", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match="no space left"):
        await run_to_end(topology, dead_letters=full)


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
