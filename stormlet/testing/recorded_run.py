"""Writes down what happens in one run: every value that is emitted, and the outcome of every message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import Failure
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.messages import Message
from stormlet.testing.watched_run import SpoutOrBolt, WatchedRun


@dataclass(frozen=True, slots=True)
class Emission:
    """One value that was emitted."""

    component: str
    task: int
    """The id of the task."""
    stream: str
    value: object
    during: str
    """The method that emitted it or ran last, such as ``execute`` or ``finish``."""
    at: float
    """When, by the clock of the loop, in seconds."""
    roots: tuple[int, ...]
    """The trees that it joined; none if it was untracked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one message."""

    component: str
    """The spout that emitted it."""
    value: object
    message_id: object
    history: tuple[Failure, ...]
    """Why each attempt failed, in order."""
    acked: bool

    @property
    def attempts(self) -> int:
        """How many attempts were made."""
        return len(self.history) + self.acked

    @property
    def failure(self) -> Failure | None:
        """Why it failed in the end; None if it was acked."""
        return None if self.acked else self.history[-1]


class RecordedRun(WatchedRun):
    """An observer that keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.emissions: list[Emission] = []
        """All of them, in their order."""
        self._messages: list[_Message] = []
        self._last: dict[object, _Message] = {}

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Of every message that was settled, in the order in which they were emitted first."""
        return [each.outcome() for each in self._messages if each.acked or each.history]

    def emitted(self, task: SpoutOrBolt, stream: str, value: object, roots: Sequence[int]) -> None:
        """Note the value."""
        super().emitted(task, stream, value, roots)
        trees = tuple(root for root in roots if root)
        plan, now = task.plan, task.loop.time()
        self.emissions.append(Emission(plan.component, plan.task, stream, value, task.doing, now, trees))

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """Note the attempt; one with the message id of another that failed is the next attempt at that."""
        super().tracked(task, tree, value)
        key = _key(task, tree)
        before = self._last.get(key)
        if before is None or before.acked:
            self._last[key] = _Message(task.component, value, tree)
            self._messages.append(self._last[key])

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """Note the outcome of an attempt."""
        super().settled(task, tree)
        message = self._last[_key(task, tree)]
        if tree.failure is None:
            message.acked = True
        else:
            message.history += (tree.failure,)


@dataclass(slots=True)
class _Message:
    component: str
    value: object
    tree: OpenTree
    history: tuple[Failure, ...] = ()
    acked: bool = False

    def outcome(self) -> Outcome:
        return Outcome(self.component, self.value, self.tree.message_id, self.history, self.acked)


def _key(task: TaskPlan, tree: OpenTree) -> object:
    if isinstance(tree, Message):
        return tree
    try:
        hash(tree.message_id)
    except TypeError:
        return task.task, id(tree.message_id)
    return task.task, tree.message_id
