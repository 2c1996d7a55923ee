"""The order of a start, and starts that fail (law C1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import pytest

from stormlet import BasicBolt, Collector, StartFailed, TaskContext, Topology, Tuple
from stormlet.testing.loop import pending_tasks
from tests.cast import ignore
from tests.engines import Engine
from tests.helpers import now, run_to_end
from tests.law.calls import Log, logged_bolt, logged_spout


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


class Broken:
    """An iterable that cannot be gone through."""

    def __iter__(self) -> Iterator[int]:
        raise OSError("the disk is gone")


class BrokenAsync:
    """As well."""

    def __aiter__(self) -> AsyncIterator[int]:
        raise OSError("the disk is gone")


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [Broken(), BrokenAsync()], ids=["iterable", "async iterable"])
async def test_C1_a_source_that_cannot_be_iterated_fails_the_start(source: Iterable[int]) -> None:
    """The error names the spout and has the exception as its cause."""
    topology = Topology("broken")
    topology.bolt("bolt", ignore, topology.spout("spout", source).shuffle())
    with pytest.raises(StartFailed, match="`iter` of spout 'spout' raised OSError") as failed:
        async with topology.run():
            pytest.fail("the body must not run")
    assert isinstance(failed.value.__cause__, OSError)


class Unprepared:
    """A grouping that cannot prepare."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def prepare(self, targets: Sequence[int]) -> None:
        raise self.error

    def choose(self, value: object) -> Sequence[int]:
        raise AssertionError


@pytest.mark.simulated_time
@pytest.mark.parametrize("error", [OSError("no"), asyncio.CancelledError()])
async def test_C1_a_grouping_that_cannot_prepare_fails_the_start(error: BaseException) -> None:
    """The error names the grouping; a cancellation is one that it has raised by itself."""
    topology = Topology("grouped")
    topology.bolt("bolt", ignore, topology.spout("spout", [1]).custom(Unprepared(error)))
    says = (
        r"did not start: prepare of custom grouping of 'spout' -> 'bolt' raised (OSError|StrayCancellation)"
    )
    with pytest.raises(StartFailed, match=says):
        await run_to_end(topology)


@pytest.mark.simulated_time
async def test_C1_a_constructor_that_raises_a_cancellation_fails_the_start() -> None:
    """The host is not cancelled by it."""

    class Unmade(BasicBolt[int, None]):
        def __init__(self) -> None:
            raise asyncio.CancelledError

        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            raise AssertionError

    topology = Topology("unmade")
    topology.bolt("bolt", Unmade, topology.spout("spout", [1]).shuffle())
    with pytest.raises(StartFailed, match="the constructor of bolt 'bolt' raised StrayCancellation"):
        await run_to_end(topology)


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
async def test_C1_a_bolt_that_cannot_be_prepared_fails_the_start(engine: Engine) -> None:
    """The error names its task, with the exception as its cause; what was prepared is cleaned up."""
    log: Log = []
    topology = Topology("prepare")
    numbers = topology.spout("numbers", [1])
    topology.bolt("good", logged_bolt(log, "good"), numbers.shuffle())
    topology.bolt("bad", logged_bolt(log, "bad", failing="prepare", seconds=1), numbers.shuffle())
    with pytest.raises(StartFailed, match=r"prepare of bad\[0\]") as failed:
        await engine.run_to_end(topology)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert log.count("good prepare") == log.count("good cleanup") == 1


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
