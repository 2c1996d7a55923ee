"""The engine's parts in one partition: bolt tasks, outboxes and outlets, wired to each other and to the exits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import TypeAlias

from stormlet.core.life import TaskEvent
from stormlet.errors import StartFailed
from stormlet.model.components import SharedObjects, TaskContext
from stormlet.model.description import BoltSpec
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Link
from stormlet.runtime.bolt.calls import bolt_task_of
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.context import CrashSite, Engine
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.run.instances import Instances
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.run.wiring import Producer, Wires
from stormlet.runtime.slices import Activity, Pace
from stormlet.runtime.usercode import all_ended
from stormlet.runtime.wire.outbox import Outbox, Post
from stormlet.runtime.wire.outlets import Outlet
from stormlet.spark.engine.partition.exits import Exits
from stormlet.spark.engine.partition.outlets import OutletsToStages
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place

StateOf: TypeAlias = Callable[[TaskPlan, BoltSpec], TaskState]
"""Gives the state of a task."""
STEP = 1000
"""Inputs that a task executes before it looks around: nobody else waits for the loop."""


class Unsliced:
    """Slices without a budget (law F2 is for a host, of which there is none)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def begin(self, *, watched: bool = True) -> bool:
        """There is always time."""
        return True

    def watch(self) -> None:
        """Nothing depends on iterations of the loop."""

    def spent(self, pace: Pace, executed: int, *, awaited: bool = True, now: float | None = None) -> bool:
        """No budget is ever used up."""
        pace.chunk = STEP
        return False

    def call_next(self, callback: Callable[[], None]) -> None:
        """Once, in the next iteration."""
        self._loop.call_soon(callback)

    def go_on(self, now: float, in_slice: bool) -> bool:
        """There is always time."""
        return True

    async def turn(self) -> None:
        """No task ever waits for its turn."""


class Equipment:
    """All of them."""

    def __init__(
        self,
        engine: Engine,
        tasks: Mapping[int, BoltTask],
        outboxes: Sequence[Outbox],
        outlets: Mapping[int, dict[str, Outlet]],
        feeding: frozenset[int],
    ) -> None:
        self.engine = engine
        self.tasks = tasks
        """The bolt tasks, by id."""
        self._outboxes = outboxes
        self._outlets = outlets
        self._feeding = feeding

    def outlet(self, task: int, stream: str) -> Outlet:
        """Return the outlet of a stream of a task."""
        return self._outlets[task][stream]

    def outlets_of(self, task: int) -> dict[str, Outlet]:
        """Return the outlets of a task, by stream; they may be replaced before anything is emitted."""
        return self._outlets[task]

    def draws_edges(self, task: int) -> bool:
        """True if a task's outputs may go to other tasks here."""
        return task in self._feeding

    def by_component(self) -> Mapping[str, Sequence[BoltTask]]:
        """Return the bolt tasks by component; of each there is one."""
        return {task.plan.component: [task] for task in self.tasks.values()}

    def is_unflushed(self) -> bool:
        """True if a task has said something that is not sent yet."""
        return any(outbox.armed for outbox in self._outboxes)

    def holders(self) -> Mapping[int, tuple[str, ...]]:
        """Return the components that hold tuples, by root."""
        found: dict[int, dict[str, None]] = {}
        for task in self.tasks.values():
            for tup in task.tuples():
                for root in tup.roots:
                    found.setdefault(root, {})[task.plan.component] = None
        return {root: tuple(components) for root, components in found.items()}

    async def close(self) -> None:
        """End all tasks, the producers before their consumers."""
        for task in self.tasks.values():
            coroutine = task.coroutine
            if coroutine is None or coroutine.done():
                continue
            if not task.life.leaving:
                task.life.change(TaskEvent.END)
                coroutine.cancel()
            await all_ended([coroutine])
        self.engine.failures.close()


def equip(
    cluster: ClusterPlan,
    place: Place,
    seed: int,
    kit: Kit,
    post: Post,
    exits: Exits,
    crashed: Callable[[CrashSite, BaseException], None],
    state_of: StateOf | None = None,
) -> Equipment:
    """Make the tasks of one partition. Acks and fails go to ``post``, tuples for other places into ``exits``.
    ``state_of`` gives the state of a task with a keyed bolt."""
    engine = _engine(cluster, seed, crashed)
    plans = cluster.tasks_at(place)
    maker = _Maker(cluster, engine, kit, post, state_of)
    tasks = {each.task: maker.bolt(each) for each in plans if each.component in maker.bolts}
    links = cluster.links_from(place)
    here = {stream: [each for each in all_ if not _leaves(each, exits)] for stream, all_ in links.items()}
    away = {stream: [each for each in all_ if _leaves(each, exits)] for stream, all_ in links.items()}
    wires = Wires(engine, kit, here, {id: task.inbox for id, task in tasks.items()})
    leading_out = OutletsToStages(engine, kit, away, exits, cluster.state.now)
    producers = [maker.producer(each, tasks.get(each.task)) for each in plans]
    for each in producers:
        wires.lay([each], each.plan.component, cluster.outputs_of(each.plan.component))
        leading_out.lay(each)
    feeding = {stream.component for stream, local in here.items() if local}
    return Equipment(
        engine,
        tasks,
        [each.outbox for each in producers],
        {each.plan.task: each.outlets for each in producers},
        frozenset(each.task for each in plans if each.component in feeding),
    )


def _leaves(link: Link, exits: Exits) -> bool:
    return exits.leads_to(link.targets[0])


class _Maker:
    """Makes bolt tasks."""

    def __init__(
        self, cluster: ClusterPlan, engine: Engine, kit: Kit, post: Post, state_of: StateOf | None
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._kit = kit
        self._post = post
        self._shared = SharedObjects()
        self.bolts: Mapping[str, BoltSpec] = cluster.plan.description.bolts
        name = cluster.plan.description.name
        self._instances = Instances(name, kit, tracked=True, simulated=engine.simulated, state_of=state_of)

    def bolt(self, plan: TaskPlan) -> BoltTask:
        """Make the task of a bolt. Raises :class:`~stormlet.errors.StartFailed`."""
        try:
            return self._bolt(plan)
        except SystemExit as error:
            name = self._cluster.plan.description.name
            raise StartFailed(name, plan.component, "the constructor") from error

    def _bolt(self, plan: TaskPlan) -> BoltTask:
        spec = self.bolts[plan.component]
        context = TaskContext(
            self._cluster.plan.description.name,
            plan.component,
            plan.task,
            plan.index,
            plan.parallelism,
            self._cluster.configurations[plan.component],
            tuple(self._cluster.schema(each.source) for each in spec.inputs),
            shared=self._shared,
        )
        return bolt_task_of(spec.concurrency)(
            plan,
            self._engine,
            context,
            self._outbox(plan),
            make_inbox=partial(self._kit.inbox, plan, min(context.config.queue_capacity, sys.maxsize)),
            make_worker=partial(self._instances.worker, spec),
            on_error=spec.on_error,
            timed=False,  # else another attempt at this partition might make other batches
        )

    def producer(self, plan: TaskPlan, task: BoltTask | None) -> Producer:
        """Return the producing end of a bolt task, or make that of a spout."""
        if task is not None:
            return Producer(plan, task.outbox, task.outlets)
        return Producer(plan, self._outbox(plan), {})

    def _outbox(self, plan: TaskPlan) -> Outbox:
        engine = self._engine
        return Outbox(
            engine.loop, engine.slices.call_next, [self._post], engine.clock, partial(engine.failed, plan)
        )


def _engine(cluster: ClusterPlan, seed: int, crashed: Callable[[CrashSite, BaseException], None]) -> Engine:
    loop = asyncio.get_running_loop()
    simulated = bool(getattr(loop, "simulated_time", False))
    return Engine(
        plan=cluster.plan,
        loop=loop,
        slices=Unsliced(loop),
        activity=Activity(),
        seed=seed,
        context=copy_context(),
        crashed=crashed,
        host_leaves=_stays,
        failures=FailureLog(cluster.plan.description.name, loop, _unknown),
        clock=loop.time if simulated else monotonic,
        simulated=simulated,
    )


def _stays() -> bool:
    """No host is there to leave."""
    return False


def _unknown(roots: object) -> object:
    """Messages are known to the driver alone."""
    return None
