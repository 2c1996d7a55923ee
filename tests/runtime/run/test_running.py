"""The handle on a running topology."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from stormlet import (
    Bolt,
    Collector,
    DirectStream,
    EndOfStream,
    FailureKind,
    InvalidConfiguration,
    InvalidEmit,
    InvalidTopology,
    Progress,
    Running,
    RunState,
    Spout,
    SpoutCollector,
    StartFailed,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
)
from tests.cast import Ack, Forget, ignore
from tests.helpers import leave_by, now, run_to_end


def stop_twice(running: Running) -> None:
    running.stop()
    running.stop()


@pytest.mark.simulated_time
async def test_two_stop_requests_at_once_cancel() -> None:
    """A second stop request cancels even if the drain of the first one has not begun yet (law C3)."""

    async def wait(value: int) -> None:
        await asyncio.Event().wait()

    topology = Topology("stuck", message_timeout=None, drain_timeout=None)
    topology.bolt("wait", wait, topology.spout("numbers", [1]).shuffle())
    async with topology.run() as running:
        asyncio.get_running_loop().call_later(1.0, stop_twice, running)
        await running.finished()
    assert running.statistics().left_over == 1


class Odd(BaseException):
    """What ``except Exception`` does not catch."""


@pytest.mark.simulated_time
async def test_a_task_never_ends_unnoticed() -> None:
    """User code that raises no ordinary exception crashes the topology like any other crash."""
    topology = Topology("odd")

    def raise_odd(value: int) -> None:
        raise Odd(value)

    topology.bolt("bolt", raise_odd, topology.spout("spout", range(3)).shuffle())
    with pytest.raises(TopologyCrashed, match=r"execute of bolt\[0\] raised Odd\(0\)"):
        async with topology.run() as running:
            await running.finished()


@pytest.mark.simulated_time
async def test_a_second_stop_settles_what_the_body_waits_for() -> None:
    """A body that waits for a tree goes on when a second stop request cancels (C3)."""
    topology = Topology("stuck", message_timeout=None, drain_timeout=None)
    spout = topology.spout("spout")
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run() as running:
        tree = await running.emit(spout, 1)
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, running.stop)
        loop.call_later(3.0, running.stop)
        with pytest.raises(TupleFailed):
            await tree
        assert now() == 3.0


# The end, cancelled.


class SlowToClose(Spout[int]):
    """Takes five seconds to close."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Emit one, then wait."""
        out.emit(1, message_id=1)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Wait."""
        await asyncio.sleep(5)


class Cleaning(Forget):
    """Notes its cleanup."""

    def __init__(self, cleaned: list[float]) -> None:
        self.cleaned = cleaned

    def cleanup(self) -> None:
        """Note the time."""
        self.cleaned.append(now())


@pytest.mark.simulated_time
async def test_an_end_goes_to_its_end_although_the_host_is_cancelled() -> None:
    """Cancelled while spouts close, a topology still closes them, cleans up, and is gone when it is left."""
    cleaned: list[float] = []
    topology = Topology("end", message_timeout=None)
    topology.bolt("bolt", lambda: Cleaning(cleaned), topology.spout("spout", SlowToClose).shuffle())
    host = asyncio.ensure_future(leave_by(KeyError(), topology))
    asyncio.get_running_loop().call_later(2.0, host.cancel)
    await asyncio.wait([host])
    assert host.cancelled()
    assert (cleaned, now()) == ([6.0], 6.0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.simulated_time
async def test_a_cancelled_end_settles_the_trees_of_the_host() -> None:
    """Who waits for a tree learns that the topology has ended, although the host was cancelled meanwhile."""
    topology = Topology("end", message_timeout=None)
    spout = topology.spout("host")
    topology.bolt("bolt", Forget, spout.shuffle(), topology.spout("spout", SlowToClose).shuffle())
    trees: list[Any] = []

    async def run() -> None:
        async with topology.run() as running:
            trees.append(await running.emit(spout, 1))
            raise KeyError

    host = asyncio.ensure_future(run())
    asyncio.get_running_loop().call_later(1.0, host.cancel)
    await asyncio.wait([host])
    with pytest.raises(TupleFailed):
        await trees[0]


# Misuse.


def emit_topology(outputs: object = None) -> tuple[Topology, Stream[Any], Stream[Any]]:
    """A spout for the host and a bolt behind it."""
    topology = Topology("emit")
    spout: Stream[Any] = topology.spout("spout", outputs=outputs)
    direct = isinstance(outputs, DirectStream)
    bolt = topology.bolt("bolt", ignore, spout.direct() if direct else spout.shuffle())
    return topology, spout, bolt


MISUSES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a component": (lambda running, spout: running.emit("spout", 1), "emit needs a stream.*not 'spout'"),
    "a subscription": (
        lambda running, spout: running.emit(spout.shuffle(), 1),
        "emit needs a stream.*Subscr",
    ),
    "a str": (lambda running, spout: running.emit(spout, 1, attempts="2"), "attempts must be an int.*'2'"),
    "zero": (lambda running, spout: running.emit(spout, 1, attempts=0), "attempts must be an int.*0"),
    "collect": (lambda running, spout: running.emit(spout, 1, collect="bolt"), "collect needs a.*not 'bolt'"),
}


@pytest.mark.simulated_time
@pytest.mark.parametrize("misuse", MISUSES)
async def test_emit_says_what_is_wrong(misuse: str) -> None:
    """Arguments of emit that cannot be are refused with a sentence that shows them (C4)."""
    call, message = MISUSES[misuse]
    topology, spout, _ = emit_topology()
    async with topology.run() as running:
        with pytest.raises(InvalidTopology, match=message):
            await call(running, spout)
        await (await running.emit(spout, 1))


@pytest.mark.simulated_time
async def test_the_host_cannot_emit_on_a_direct_stream() -> None:
    """A stream declared direct needs a receiver, which the host cannot name."""
    topology, spout, _ = emit_topology(DirectStream())
    async with topology.run() as running:
        with pytest.raises(InvalidTopology, match="declared direct"):
            await running.emit(spout, 1)


@pytest.mark.simulated_time
async def test_an_emit_that_is_refused_collects_nothing() -> None:
    """A value that does not fit leaves no trace where the values of its tree would have been collected."""
    topology, spout, bolt = emit_topology(["first", "second"])
    async with topology.run() as running:
        for value in range(5):
            with pytest.raises(InvalidEmit):
                await running.emit(spout, value, collect=bolt)
        engine = running._engine  # pyright: ignore[reportPrivateUsage] - memory has no public face
        assert [len(roots) for roots in engine.collected.values()] == [0]
        assert await (await running.emit(spout, (1, 2), collect=bolt)) == []


@pytest.mark.simulated_time
async def test_a_wait_for_the_end_that_is_given_up_leaves_nothing() -> None:
    """A host may ask every second for a year, with a timeout, whether the topology has finished."""
    topology, _, _ = emit_topology()
    async with topology.run() as running:
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.finished(), 1.0)
        assert not running._conductor._waiting  # pyright: ignore[reportPrivateUsage] - memory has no public face


# A start that fails.


def not_made() -> Any:
    """A factory that raises."""
    raise LookupError("nothing there")


class NotMadeBolt(Forget):
    """Cannot be made."""

    def __init__(self) -> None:
        not_made()


class NotMadeSpout(SlowToClose):
    """Cannot be made."""

    def __init__(self) -> None:
        not_made()


@pytest.mark.simulated_time
@pytest.mark.parametrize("bolt", [not_made, NotMadeBolt])
async def test_a_bolt_that_cannot_be_made_fails_the_start(bolt: Any) -> None:
    """An exception in the constructor or factory of a bolt is told as a failed start of that bolt (C1)."""
    topology = Topology("start")
    topology.bolt("bolt", bolt, topology.spout("spout", [1]).shuffle())
    await refuses_to_start(topology, "'bolt'")


@pytest.mark.simulated_time
async def test_a_spout_that_cannot_be_made_fails_the_start() -> None:
    """An exception in the constructor of a spout is told as a failed start of that spout (C1)."""
    topology = Topology("start")
    topology.bolt("bolt", ignore, topology.spout("spout", NotMadeSpout).shuffle())
    await refuses_to_start(topology, "'spout'")


@pytest.mark.simulated_time
async def test_a_source_function_that_raises_fails_the_start() -> None:
    """An exception in the function that makes the source of a spout is a failed start of that spout (C1)."""

    def source() -> Any:
        not_made()
        return iter([1])

    topology = Topology("start")
    topology.bolt("bolt", ignore, topology.spout("spout", source).shuffle())
    await refuses_to_start(topology, "'spout'")


async def refuses_to_start(topology: Topology, component: str) -> None:
    """Whether the failed start names the component, and has the cause."""
    with pytest.raises(StartFailed, match=component) as caught:
        async with topology.run():
            pass
    assert isinstance(caught.value.__cause__, LookupError)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.simulated_time
@pytest.mark.parametrize("target", [42, "missing/letters.jsonl", ""])
async def test_dead_letters_that_cannot_be_written_are_refused_at_the_start(
    target: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that is neither callable nor a file that can be written is refused before anything runs (S6)."""
    monkeypatch.chdir(tmp_path)
    topology, _, _ = emit_topology()
    with pytest.raises(InvalidConfiguration, match=f"dead_letters={target!r}"):
        async with topology.run(dead_letters=target):
            pass


@pytest.mark.parametrize("seed", ["x", 1.5])
def test_a_seed_is_a_number(seed: Any) -> None:
    """Anything else is refused before the topology starts."""
    topology, _, _ = emit_topology()
    with pytest.raises(InvalidConfiguration, match="seed must be an int or None"):
        topology.run(seed=seed)


class NotCalled:
    """A class that traces, of which no object was made."""

    def start(self, run: object) -> None: ...


@pytest.mark.parametrize("traces", [5, NotCalled])
def test_traces_are_an_object_that_traces(traces: Any) -> None:
    """The class itself, or anything else, is refused before the topology starts."""
    topology, _, _ = emit_topology()
    with pytest.raises(
        InvalidConfiguration, match=r"run of topology '.*': traces must be a .*Traces\(\) or None"
    ):
        topology.run(traces=traces)


@pytest.mark.simulated_time
async def test_a_crash_after_the_entering_task_has_ended() -> None:
    """Where a notebook's cell has entered the block, a crash leaves nobody waiting: open trees fail, and a new emit
    raises the crash."""

    def crash(value: int) -> None:
        if value == 2:
            raise ValueError("no")

    topology = Topology("notebook", message_timeout=None)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("hold", Forget, numbers.shuffle())
    topology.bolt("crash", crash, numbers.shuffle(), on_error="stop")
    run = topology.run()
    running = await asyncio.create_task(run.__aenter__())
    held = await running.emit(numbers, 1)
    await running.emit(numbers, 2)
    with pytest.raises(TupleFailed) as failed:
        await held
    assert failed.value.failure.kind is FailureKind.SHUTDOWN
    for _ in range(3):
        with pytest.raises(TopologyCrashed) as raised:
            await running.emit(numbers, 3)
        assert len(raised.traceback) < 5
    with pytest.raises(TopologyCrashed):
        await run.__aexit__(None, None, None)


class Crashing(Spout[int]):
    """Crashes at once, and takes a second to close."""

    closed = False

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        raise ValueError("no")

    async def close(self) -> None:
        await asyncio.sleep(1.0)
        type(self).closed = True


def crashing_topology() -> tuple[Topology, Stream[int]]:
    topology = Topology("crashing", message_timeout=None)
    numbers = topology.spout("numbers", Crashing)
    topology.bolt("hold", Forget, numbers.shuffle())
    return topology, numbers


@pytest.mark.simulated_time
async def test_a_crashed_spout_settles_what_the_host_emitted_there() -> None:
    """A tree fails although the task that would hear of it is gone, and so is the one that entered the block."""
    topology, numbers = crashing_topology()
    run = topology.run(active=False)
    running = await asyncio.create_task(run.__aenter__())
    held = await running.emit(numbers, 1)
    running.activate()
    with pytest.raises(TupleFailed):
        await held
    with pytest.raises(TopologyCrashed):
        await run.__aexit__(None, None, None)


@pytest.mark.simulated_time
async def test_what_has_crashed_is_closed_all_the_same() -> None:
    """Its ``close`` goes to its end, too, before the crash is raised (law C3)."""
    topology, _ = crashing_topology()
    Crashing.closed = False
    with pytest.raises(TopologyCrashed):
        async with topology.run() as running:
            await running.finished()
    assert Crashing.closed


@pytest.mark.simulated_time
async def test_a_stop_after_the_end_does_nothing() -> None:
    """A host that stops what has ended leaves no task behind that waits for a drain."""
    topology, _ = crashing_topology()
    run = topology.run(active=False)
    with pytest.raises(LookupError):
        async with run as running:
            raise LookupError
    running.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.simulated_time
async def test_calls_that_were_cancelled_are_not_counted_as_done() -> None:
    """Nor is the input that waited for one of them to end."""

    async def wait(value: int) -> None:
        await asyncio.sleep(1.0 if value < 3 else 1000.0)

    topology = Topology("cancelled", message_timeout=None)
    topology.bolt("wait", wait, topology.spout("numbers", range(10)).shuffle(), concurrency=4)
    async with topology.run(drain_timeout=5.0) as running:
        await asyncio.sleep(0.5)
        during = running.statistics().components["wait"]
    after = running.statistics().components["wait"]
    assert (during.executed, during.acked, during.pending) == (0, 0, 10)
    assert (after.executed, after.acked) == (3, 3)


@pytest.mark.simulated_time
async def test_an_emit_that_waits_for_room_hears_of_the_crash() -> None:
    """Whichever task of the host it waits in."""
    topology = Topology("crowded", message_timeout=None)
    fed = topology.spout("fed", outputs=int, max_spout_pending=1)
    crashing = topology.spout("crashing", Crashing)
    topology.bolt("hold", Forget, fed.shuffle(), crashing.shuffle())
    run = topology.run(active=False)
    running = await run.__aenter__()
    await running.emit(fed, 1)
    waiting = asyncio.create_task(running.emit(fed, 2))
    asyncio.get_running_loop().call_later(1.0, running.activate)
    with pytest.raises(asyncio.CancelledError):
        await running.finished()
    with pytest.raises(TopologyCrashed):
        await run.__aexit__(None, None, None)
    with pytest.raises(TopologyCrashed):
        await waiting


@pytest.mark.simulated_time
async def test_a_running_topology_belongs_to_its_loop() -> None:
    """From another loop or thread its methods are refused, and the message names the way."""
    topology, spout, _ = emit_topology()
    async with topology.run() as running:

        async def emit() -> None:
            await running.emit(spout, 1)

        with ThreadPoolExecutor(1) as threads:
            for call, way in [
                (lambda: asyncio.run(emit()), "run_coroutine_threadsafe"),
                (running.stop, "call_soon_threadsafe"),
                (running.activate, "call_soon_threadsafe"),
                (running.deactivate, "call_soon_threadsafe"),
            ]:
                with pytest.raises(RuntimeError, match=way):
                    threads.submit(call).result()
        assert running.health().state is RunState.RUNNING


@pytest.mark.simulated_time
async def test_a_cleanup_that_hangs_is_named() -> None:
    """While everything else is over, health() says which tasks have not been cleaned up."""
    seen: list[tuple[str, ...]] = []

    class Hangs(Ack):
        async def cleanup(self) -> None:
            await asyncio.sleep(5)

    topology = Topology("hangs")
    topology.bolt("hangs", Hangs, topology.spout("one", [1]).shuffle())
    async with topology.run() as running:
        await running.finished()
        asyncio.get_running_loop().call_later(1, lambda: seen.append(running.health().closing))
        assert running.health().closing == ()
    assert seen == [("hangs[0]",)]
    assert running.health().closing == ()


class Reporting(Spout[int]):
    """Says how far it is, from its own thread and from another."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.report = context.report_progress

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        self.report(Progress(1, 2, "rows"))
        thread = Thread(target=self.report, args=(Progress(2, 2, "rows"),))
        thread.start()
        thread.join()
        raise EndOfStream


@pytest.mark.simulated_time
async def test_what_tasks_report_is_in_the_statistics() -> None:
    """What each said last counts, and stays after the end; who says nothing has nothing."""
    topology = Topology("reporting")
    topology.bolt("quiet", ignore, topology.spout("rows", Reporting, parallelism=2).shuffle())
    running = await run_to_end(topology)
    components = running.statistics().components
    assert components["rows"].progress == Progress(4, 4, "rows")
    assert components["quiet"].progress is None


@pytest.mark.simulated_time
async def test_a_run_is_entered_once() -> None:
    """Its tasks have ended with its block; another run is made by another call."""
    topology = Topology("once")
    topology.spout("numbers", [1])
    run = topology.run()
    async with run as running:
        await running.finished()
    with pytest.raises(InvalidTopology, match="this run was entered before"):
        await run.__aenter__()


def test_a_run_that_is_not_entered_says_how() -> None:
    """What it gives is asked of it."""
    topology = Topology("forgotten")
    topology.spout("numbers", outputs=int)
    with pytest.raises(AttributeError) as raised:
        _ = topology.run().emit  # type: ignore[attr-defined]
    assert str(raised.value) == (
        "emit belongs to the running topology: write `async with topology.run() as running:`, and "
        "use running.emit"
    )


def test_a_run_that_nobody_enters_is_warned_of() -> None:
    """At the line that has lost it, unless it says that the checks were meant alone."""
    topology = Topology("forgotten")
    topology.spout("numbers", [1])
    topology.run().close()
    with pytest.warns(RuntimeWarning) as warned:
        topology.run()
    (warning,) = warned
    assert (warning.filename, str(warning.message)) == (
        __file__,
        "the run of topology 'forgotten' was never entered: write `async with topology.run() as running:`",
    )


def test_a_run_has_nothing_else() -> None:
    """A word that is nowhere gets no advice."""
    topology = Topology("forgotten")
    topology.spout("numbers", [1])
    with pytest.raises(AttributeError, match=r"^'Run' object has no attribute 'emti'"):
        _ = topology.run().emti  # type: ignore[attr-defined]


@pytest.mark.simulated_time
async def test_the_hosts_messages_go_to_the_spout_tasks_in_turn() -> None:
    """Each task of a spout that the host feeds emits its share."""
    topology = Topology("shared")
    numbers = topology.spout("numbers", outputs=int, parallelism=3)
    async with topology.run() as running:
        for number in range(6):
            await running.emit(numbers, number)
    tasks = running.statistics().components["numbers"].tasks
    assert tasks is not None
    assert [each.emitted for each in tasks.values()] == [2, 2, 2]


@pytest.mark.simulated_time
async def test_a_stream_that_two_messages_collect_is_collected_once() -> None:
    """Each tree has its own values, however many ask for the stream."""
    topology = Topology("collected")
    numbers = topology.spout("numbers", outputs=int)
    doubled = topology.bolt("double", lambda number: 2 * number, numbers.shuffle(), outputs=int)
    async with topology.run() as running:
        trees = [await running.emit(numbers, number, collect=doubled) for number in (1, 2, 3)]
        assert [await tree for tree in trees] == [[2], [4], [6]]


class Pair(Bolt[int, int]):
    """Emits one value for two inputs."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Anchor it to both."""
        self.held.append(tup)
        if len(self.held) == 2:
            out.emit(tup.value, anchors=self.held)
            for each in self.held:
                out.ack(each)


@pytest.mark.simulated_time
async def test_a_value_anchored_twice_to_one_tree_is_collected_once() -> None:
    """It was emitted once."""
    topology = Topology("collected")
    numbers = topology.spout("numbers", outputs=int)
    pairs = topology.bolt("pair", Pair, numbers.shuffle(), numbers.shuffle())
    async with topology.run() as running:
        assert await (await running.emit(numbers, 7, collect=pairs)) == [7]


@pytest.mark.simulated_time
async def test_a_message_that_failed_has_no_complete_latency() -> None:
    """It is the time from emit to ack."""

    async def fail(value: int) -> None:
        await asyncio.sleep(1)
        raise ValueError(value)

    topology = Topology("failing", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", [1]).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].complete_latency is None
