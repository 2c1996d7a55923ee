"""The parts of a run that a simulation replaces by ones that it can watch and disturb."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stormlet.core.ledger import OpenTree
from stormlet.core.plan import TaskPlan
from stormlet.runtime.inbox import Inbox

if TYPE_CHECKING:
    from stormlet.runtime.assembly import Tasks
    from stormlet.runtime.outbox import Shard
    from stormlet.runtime.workers import Worker


class Parts:
    """Makes them as they are used."""

    def assembled(self, tasks: Tasks) -> None:
        """All tasks of the run are there."""

    def inbox(self, plan: TaskPlan, capacity: int, wake_consumer: Callable[[], None]) -> Inbox:
        """The queue of a bolt task."""
        return Inbox(capacity, wake_consumer)

    def outcomes(self, plan: TaskPlan) -> deque[OpenTree]:
        """Where the verdicts for a spout task wait."""
        return deque()

    def shards(self, plan: TaskPlan, ackers: Sequence[Shard]) -> Sequence[Shard]:
        """The ackers, as this task sends to them."""
        return ackers

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        """What executes the inputs of a bolt task."""
        return worker
