"""Rest, the moments in which nothing in a partition moves by itself, and the crashes that may come instead of one."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from stormlet.core.shortened import shortened
from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.runtime.context import CrashSite
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.tasks import Tasks
from stormlet.spark.engine.partition.deliveries import Unreadable
from stormlet.spark.engine.partition.equipment import Equipment
from stormlet.spark.engine.partition.lanes import Unpicklable
from stormlet.spark.engine.partition.merging import MergeFailed
from stormlet.spark.engine.partition.states import Unfit, Unsavable
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, Span


class Rest:
    """Waits for them. Every wait raises the crash of a task, once there is one."""

    def __init__(self, cluster: ClusterPlan) -> None:
        self._cluster = cluster
        self._name = cluster.plan.description.name
        self._bell = asyncio.Event()
        self._crash: TopologyCrashed | None = None

    @property
    def crash(self) -> TopologyCrashed | None:
        """The crash that has come, if there is one."""
        return self._crash

    def crashed(self, site: CrashSite, error: BaseException) -> None:
        """A task has died. The first one counts."""
        if self._crash is None:
            self._crash = TopologyCrashed(
                self._name, site.task.name, site.method, site.restarts, site.way_out
            )
            self._crash.__cause__ = error
        if isinstance(error, SystemExit):
            # It ends the loop in the midst of all tasks, of which each would be logged.
            asyncio.get_running_loop().set_exception_handler(_ignore)
        self._bell.set()

    async def started(self, equipment: Equipment) -> None:
        """Begin all tasks, and wait until they are ready. Raises :class:`~stormlet.errors.StartFailed`."""
        equipment.engine.activity.call_when_quiet(self._bell.set)
        tasks = equipment.tasks.values()
        for task in tasks:
            task.spawn(task.live(), f"{self._name}/{task.name}")
        while not all(task.ready.done() for task in tasks):
            await self._something()
            if self._crash is not None:
                raise StartFailed(self._name, self._crash.task, self._crash.what) from self._crash.__cause__

    async def reached(self, equipment: Equipment) -> None:
        """Wait until nothing moves by itself."""
        while True:
            self._raise_crash()
            if equipment.engine.activity.busy:
                await self._something()
            elif equipment.is_unflushed():
                await asyncio.sleep(0)  # what leaves then may wake a task
            else:
                return

    async def conducted(self, equipment: Equipment, *, finishes: bool = True) -> None:
        """Have the bolts flush, and finish if this was the last, upstream first, until there is nothing left to do
        (law C2). With ``finishes=False`` more will come."""
        loop, activity = asyncio.get_running_loop(), equipment.engine.activity
        tasks = Tasks((), {}, equipment.by_component(), {}, {})
        order, finishes = self._cluster.plan.order, finishes and self._cluster.span is not Span.EPOCH
        conductor = Conductor(loop, activity, tasks, order, finishes=finishes)
        running = [loop.create_task(each) for each in (conductor.run(), conductor.quiescent())]
        running[1].add_done_callback(lambda _: self._bell.set())
        try:
            while not running[1].done() and self._crash is None:
                await self._something()
        finally:
            for each in running:
                each.cancel()
            await asyncio.wait(running)
            activity.call_when_quiet(self._bell.set)
        self._raise_crash()

    async def _something(self) -> None:
        await self._bell.wait()
        self._bell.clear()

    def _raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash


def _ignore(loop: asyncio.AbstractEventLoop, context: object) -> None:
    """The crash is raised."""


class Crashes:
    """Errors that user code of one partition raises where no input answers for it, with its task and the way out."""

    def __init__(self, cluster: ClusterPlan, place: Place) -> None:
        self._cluster = cluster
        self._place = place
        self._name = cluster.plan.description.name

    def of_task(self, task: int, what: str, way_out: str = "") -> TopologyCrashed:
        """Return the crash of a task, by its id."""
        plan = next(each for each in self._cluster.tasks_at(self._place) if each.task == task)
        return TopologyCrashed(self._name, plan.name, what, "", way_out)

    def of_input(self, target: int, error: Unreadable) -> TopologyCrashed:
        """Return that of a task whose input cannot be made again."""
        way_out = (
            f"a value of {self._cluster.component_of(error.producer)!r} cannot be made again on this machine: "
            f"define its class in a file that goes along, and let it be pickled"
        )
        return self.of_task(target, "the input", way_out)

    @contextmanager
    def raised(self) -> Generator[None]:
        """Raise as crashes what merging, sending and saving raise."""
        try:
            yield
        except MergeFailed as error:
            component = self._cluster.component_of(error.target)
            raise TopologyCrashed(self._name, component, "merge") from error.__cause__
        except Unpicklable as error:
            way_out = (
                f"what goes from stage to stage is pickled, and {shortened(error.value)} on stream {error.stream!r} "
                f"cannot be: emit a record, or let its consumers subscribe by shuffle() to stay in its stage"
            )
            raise self.of_task(error.producer, "the emit", way_out) from error.__cause__
        except Unfit as error:
            way_out = (
                "what the epoch before has saved does not fit: let __setstate__ take it, or begin with another "
                "checkpoint"
            )
            raise TopologyCrashed(self._name, error.component, "the state", "", way_out) from error.__cause__
        except Unsavable as error:
            way_out = (
                f"what a bolt has changed in itself is saved in between, and {error.attribute!r} cannot be: "
                f"make it in prepare if it is no state, or define __getstate__"
            )
            raise TopologyCrashed(self._name, error.component, "the state", "", way_out) from error.__cause__
