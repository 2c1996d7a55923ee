"""What is asked of the bolts when it has come to rest."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import Bolt, Collector, TaskContext, Topology, Tuple
from stormlet.core.progress import Survey
from stormlet.errors import TaskKilled
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.run import conductor
from stormlet.runtime.tasks import Tasks
from tests.cast import AckLater, Hold, ignore
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class InPairs(Hold):
    """Settles two at each flush."""

    def flush(self, out: Collector[None]) -> None:
        """Ack one and fail one."""
        first, second = self.held[:2]
        del self.held[:2]
        out.ack(first)
        out.fail(second, permanent=True)


async def test_flush_is_asked_for_as_long_as_it_settles_something() -> None:
    """A flush that settled part of what is held is followed by another one, until all is settled (B8)."""
    topology = Topology("flush")
    topology.bolt("pairs", InPairs, topology.spout("spout", range(6)).shuffle())
    running = await run_to_end(topology)
    spout = running.statistics().components["spout"]
    assert (spout.acked, spout.failed, now()) == (3, 3, 0.0)


class Deaf(Hold):
    """Settles nothing."""

    flushes = 0

    def flush(self, out: Collector[None]) -> None:
        """Count."""
        Deaf.flushes += 1


async def test_a_flush_that_settles_nothing_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush that settled nothing is not repeated before there is new input (B8)."""
    monkeypatch.setattr(Deaf, "flushes", 0)
    topology = Topology("flush", message_timeout=10.0, max_attempts=1)
    topology.bolt("deaf", Deaf, topology.spout("spout", range(6)).shuffle())
    await run_to_end(topology)
    assert Deaf.flushes == 1


async def test_finish_is_asked_for_again_only_where_a_replay_came() -> None:
    """After a replay in the end, only the task that it reached is finished again (C2)."""
    finished: list[int] = []
    failed: list[int] = []

    class Last(Hold):
        def prepare(self, context: TaskContext) -> None:
            self.index = context.task_index

        def finish(self, out: Collector[None]) -> None:
            finished.append(self.index)
            for tup in self.held:
                if tup.value == 0 and not failed:
                    failed.append(self.index)
                    out.fail(tup)
                else:
                    out.ack(tup)
            self.held.clear()

    topology = Topology("finish")
    topology.bolt("last", Last, topology.spout("spout", range(8)).fields(), parallelism=4)
    await run_to_end(topology)
    assert finished == [0, 1, 2, 3, *failed]


async def test_an_outcome_that_wakes_nobody_is_the_moment_of_rest() -> None:
    """The last ack comes from a timer, and its verdict is told to the host at once: no task has run by that."""
    topology = Topology("late")
    source = topology.spout("source")
    topology.bolt("late", AckLater, source.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "x")
    assert tree.done
    assert tree.failure is None
    assert now() < 2.0


class Finishes(Bolt[int, int]):
    """Acks its inputs, and has a ``finish``."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.ack(tup)

    def finish(self, out: Collector[int]) -> None:
        pass


@pytest.mark.parametrize(("bolt", "surveys"), [(ignore, 2), (Finishes, 52)])
async def test_only_bolts_with_a_finish_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, bolt: Any, surveys: int
) -> None:
    """A look at all tasks for each component that has nothing to do would take the square of their number (C2)."""
    survey, taken = conductor._survey, list[Survey]()

    def counted(tasks: Tasks, epochs: EpochKeeper | None, *, finishes: bool) -> Survey:
        taken.append(survey(tasks, epochs, finishes=finishes))
        return taken[-1]

    monkeypatch.setattr(conductor, "_survey", counted)
    topology = Topology("wide")
    numbers = topology.spout("numbers", range(3))
    for each in range(50):
        topology.bolt(f"bolt{each}", bolt, numbers.shuffle())
    await run_to_end(topology)
    assert len(taken) == surveys


async def test_nothing_finishes_behind_a_task_that_is_about_to_die(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that has finished is killed at the moment when the next one would be asked to: first its next instance
    finishes (C2)."""
    finished: list[str] = []

    class Finishes(Bolt[int, int]):
        def prepare(self, context: TaskContext) -> None:
            self.name = context.component

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.ack(tup)

        def finish(self, out: Collector[int]) -> None:
            finished.append(self.name)

    survey = conductor._survey

    def killed_before(tasks: Tasks, epochs: EpochKeeper | None, *, finishes: bool) -> Survey:
        if finished == ["first"]:
            tasks.bolts["first"][0].die(TaskKilled("the test has killed it"))
            monkeypatch.setattr(conductor, "_survey", survey)
        return survey(tasks, epochs, finishes=finishes)

    monkeypatch.setattr(conductor, "_survey", killed_before)
    topology = Topology("dies")
    first = topology.bolt("first", Finishes, topology.spout("spout", range(3)).shuffle())
    topology.bolt("second", Finishes, first.shuffle())
    await run_to_end(topology)
    assert finished == ["first", "first", "second"]
