"""All hooks of a run, and what is wrapped for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidTopology
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
from stormlet.runtime.wire.collector import BoltCollector

HookFactory = Callable[[], TaskHook]
"""Makes the hook of one task: its class, or a function without parameters."""
MakeWorker = Callable[[Wiring], Worker]
MakeCollector = Callable[..., BoltCollector]


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
            made = [self._made(each) for each in self._factories]
            self._by_task[plan.task] = TaskHooks(self._topology, plan, made)
        return self._by_task[plan.task]

    def _made(self, factory: HookFactory) -> TaskHook:
        hook = factory()
        if not isinstance(cast("object", hook), TaskHook):
            raise InvalidTopology(
                f"a hook of topology {self._topology!r} is {shortened(hook)}, which is no TaskHook; hooks= takes "
                f"classes of them, or functions without parameters that make one for each task"
            )
        return hook


def _hooked(make_worker: MakeWorker, inputs: Inputs, wiring: Wiring) -> Worker:
    return HookedWorker(make_worker(wiring), inputs)
