"""The observer of messages, for hooks that hear of the outcomes that spouts get."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stormlet.core.trees import OpenTree
from stormlet.model.hooks import SpoutAckInfo, SpoutFailInfo
from stormlet.model.plan import TaskPlan
from stormlet.runtime.hooks.calls import TaskHooks


class HookedMessages:
    """Calls the hooks of spout tasks, by task id (see :class:`~stormlet.runtime.context.MessageObserver`)."""

    def __init__(self, hooks: Mapping[int, TaskHooks], clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._clock = clock
        self._began: dict[OpenTree, float] = {}

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """Note when the attempt began."""
        self._began[tree] = self._clock()

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """Have the hooks of the task hear of the outcome."""
        now = self._clock()
        latency = now - self._began.pop(tree, now)
        hooks, id, failure = self._hooks[task.task], tree.message_id, tree.failure
        if failure is None:
            hooks.call("spout_ack", SpoutAckInfo(id, task.task, latency))
        else:
            hooks.call("spout_fail", SpoutFailInfo(id, task.task, latency, failure))
