"""The parts of a run that a simulation replaces by ones that it can watch and disturb."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from stormlet.core.groupings import Grouping
from stormlet.core.trees import OpenTree
from stormlet.model.components import BoltBase, Spout
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.worker import Worker
from stormlet.runtime.dead_letters import DeadLetterSink
from stormlet.runtime.spout.spout_feed import OutcomeReceiver
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Post


class Kit:
    """Makes them as they are used."""

    records_executions = True
    """True if executions are recorded where edges are."""

    def assembled(self, tasks: Tasks) -> None:
        """All tasks of the run are there."""

    def inbox(self, plan: TaskPlan, capacity: int, wake_consumer: Callable[[], None]) -> Inbox:
        """The queue of a bolt task."""
        return Inbox(capacity, wake_consumer)

    def outcomes(self, plan: TaskPlan) -> deque[OpenTree]:
        """The queue of verdicts for a spout task."""
        return deque()

    def own_outcomes(self) -> deque[OpenTree]:
        """The queue of verdicts on trees that belong to epochs themselves."""
        return deque()

    def receiver(self, plan: TaskPlan, spout: Spout[Any]) -> OutcomeReceiver:
        """Receives the outcomes that an instance wants to know."""
        return spout

    def dead_letters(self, sink: DeadLetterSink | None) -> DeadLetterSink | None:
        """The receiver of the dead letters of the run."""
        return sink

    def posts(self, plan: TaskPlan, posts: Sequence[Post]) -> Sequence[Post]:
        """The ways by which this task sends to the ackers."""
        return posts

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        """An instance of user code was made for this task."""

    def grouping(self, plan: TaskPlan, grouping: Grouping) -> Grouping:
        """The grouping by which this task chooses the receivers of its tuples."""
        return grouping

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        """The worker that executes the inputs of a bolt task."""
        return worker
