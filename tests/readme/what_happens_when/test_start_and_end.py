"""The README's "What happens when": how it begins and ends."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from stormlet import (
    DeadLetter,
    EndOfStream,
    FailureKind,
    Spout,
    SpoutCollector,
    StartFailed,
    TaskContext,
    Topology,
    TopologyCrashed,
    TopologyStopping,
    TupleFailed,
)
from tests.cast import Forget
from tests.helpers import leave_by, now, run_to_end
from tests.readme.what_happens_when.kit import EmitsOnce, FailsAtFirst


@pytest.mark.simulated_time
async def test_when_a_start_fails() -> None:
    """`prepare` or `open` raises. Nothing starts: entering the block raises `StartFailed` with your exception as its
    cause, after what was started has been closed.
    """
    closed: list[str] = []

    class First(Forget):
        def cleanup(self) -> None:
            closed.append("first")

    class Second(Forget):
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
async def test_when_the_block_is_left() -> None:
    """The body of the block ends. The topology drains: spouts end, what is in flight is finished, replays included,
    and `running.emit` raises `TopologyStopping`; after `drain_timeout` what is left fails with SHUTDOWN, is counted,
    and goes to `dead_letters=`.
    """
    letters: list[DeadLetter] = []
    topology = Topology("drains", drain_timeout=20)
    values, flaky = topology.spout("values", [1, 2]), topology.spout("flaky", ["odd"])
    topology.bolt("hold", Forget, values.shuffle())
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
    topology.bolt("hold", Forget, values.shuffle())
    async with topology.run() as running:
        tree = await running.emit(values, 1)
        await asyncio.sleep(1)
        for _ in range(calls):
            running.stop()
        with pytest.raises(TupleFailed) as failed:
            await tree
        assert (failed.value.failure.kind, now()) == (FailureKind.SHUTDOWN, seconds)


@pytest.mark.simulated_time
@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError])
async def test_when_the_body_raises(error: type[BaseException]) -> None:
    """The body of the block raises, or its task is cancelled. The topology is cancelled without a drain, `close` and
    `cleanup` are called, and your exception comes out.
    """
    closed: list[str] = []

    class Closes(Forget):
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


@pytest.mark.simulated_time(allow_leaks=["errors"])
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

    class Second(Forget):
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
