"""Rest: the moments in which nothing in a partition moves by itself, and the crash that may come instead of one."""

from __future__ import annotations

import asyncio

from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.runtime.context import CrashSite
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.tasks import Tasks
from stormlet.spark.engine.partition.equipment import Equipment
from stormlet.spark.engine.planning.numbering import ClusterPlan, Span


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

    async def conducted(self, equipment: Equipment) -> None:
        """Have the bolts flush, and finish if this was the last, upstream first, until there is nothing left to do
        (law C2)."""
        loop, activity = asyncio.get_running_loop(), equipment.engine.activity
        tasks = Tasks((), {}, equipment.by_component(), {})
        order, finishes = self._cluster.plan.order, self._cluster.span is not Span.EPOCH
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
