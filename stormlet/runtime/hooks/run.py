"""All hooks of a run, and what is wrapped for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, cast

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidTopology, StartFailed
from stormlet.model.hooks import TaskHook
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.worker import Wiring, Worker
from stormlet.runtime.context import MessageObserver
from stormlet.runtime.hooks.bolts import HookedCollector, HookedWorker, Inputs
from stormlet.runtime.hooks.calls import TaskHooks
from stormlet.runtime.hooks.messages import HookedMessages
from stormlet.runtime.hooks.outlets import HookedOutlet
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.usercode import as_exception
from stormlet.runtime.wire.collector import BoltCollector

HookFactory = Callable[[], TaskHook]
"""Makes the hook of one task: its class, or a function without parameters."""
MakeWorker = Callable[[Wiring], Worker]
MakeCollector = Callable[..., BoltCollector]


WAY_OUT: Final = (
    "hooks= takes a list of classes of TaskHook, or of functions without parameters that make one"
)


def factories_of(topology: str, hooks: object) -> Sequence[HookFactory]:
    """Return what makes hooks; raise :class:`~stormlet.errors.InvalidTopology` for anything else, such as a hook."""
    if not isinstance(hooks, Iterable):
        raise InvalidTopology(f"topology {topology!r}: hooks={shortened(hooks)} is no list; {WAY_OUT}")
    given = tuple(cast("Iterable[object]", hooks))
    for each in given:
        if not callable(each):
            raise InvalidTopology(f"topology {topology!r}: hooks= has {shortened(each)}; {WAY_OUT}")
    return cast("Sequence[HookFactory]", given)


class RunHooks:
    """The hooks of all tasks of one run."""

    def __init__(self, topology: str, factories: Sequence[HookFactory], clock: Callable[[], float]) -> None:
        self._topology = topology
        self._factories = factories
        self._clock = clock
        self._by_task: dict[int, TaskHooks] = {}

    def makers(self, plan: TaskPlan, make_worker: MakeWorker) -> tuple[MakeWorker, MakeCollector]:
        """Return what makes the worker and the collector of a bolt task."""
        if not self._factories or not self._of(plan).want("bolt_execute", "bolt_ack", "bolt_fail"):
            return make_worker, BoltCollector
        inputs = Inputs(self._of(plan), self._clock)
        return partial(_hooked, make_worker, inputs), partial(HookedCollector, inputs)

    def join(self, tasks: Tasks) -> None:
        """All tasks are made and wired: hear of what they emit, and have the hooks prepare."""
        if not self._factories:
            return
        everyone: Sequence[SpoutTask | BoltTask] = (*tasks.all_spouts, *tasks.all_bolts)
        for task in everyone:
            hooks = self._of(task.plan)
            hooks.prepare(task.context)
            if hooks.want("emit"):
                task.outlets.update({name: HookedOutlet(hooks, each) for name, each in task.outlets.items()})

    @property
    def observer(self) -> MessageObserver | None:
        """The observer of messages; None if no hook wants to hear of any."""
        if any(hooks.want("spout_ack", "spout_fail") for hooks in self._by_task.values()):
            return HookedMessages(self._by_task, self._clock)
        return None

    def cleanup(self) -> None:
        """All tasks have ended."""
        for hooks in self._by_task.values():
            hooks.cleanup()

    def _of(self, plan: TaskPlan) -> TaskHooks:
        if plan.task not in self._by_task:
            made = [self._made(each, plan) for each in self._factories]
            self._by_task[plan.task] = TaskHooks(self._topology, plan, made)
        return self._by_task[plan.task]

    def _made(self, factory: HookFactory, plan: TaskPlan) -> TaskHook:
        try:
            hook = factory()
        except (Exception, asyncio.CancelledError) as error:
            what = f"hook {getattr(factory, '__name__', shortened(factory))} for {plan.name}"
            raise StartFailed(self._topology, what, "the constructor") from as_exception(error)
        if not isinstance(cast("object", hook), TaskHook):
            raise InvalidTopology(
                f"a hook of topology {self._topology!r} is {shortened(hook)}, which is no TaskHook; {WAY_OUT}"
            )
        return hook


def _hooked(make_worker: MakeWorker, inputs: Inputs, wiring: Wiring) -> Worker:
    return HookedWorker(make_worker(wiring), inputs)
