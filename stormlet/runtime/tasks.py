"""All tasks of a run, and the search among them for the open tree of a root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from stormlet.core.ids import shard_of
from stormlet.core.ledger import OpenTree
from stormlet.report.statistics import Progress
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.wire.collector import AnyTuple


class Tasks(msgspec.Struct, frozen=True):
    """All tasks of a topology, in the order of the plan."""

    ackers: Sequence[AckerTask]
    spouts: Mapping[str, Sequence[SpoutTask]]
    bolts: Mapping[str, Sequence[BoltTask]]
    progress: Mapping[int, Progress]
    """The last progress report of each task, by its id."""

    @property
    def all_spouts(self) -> Sequence[SpoutTask]:
        """The spout tasks of all components."""
        return [task for tasks in self.spouts.values() for task in tasks]

    @property
    def all_bolts(self) -> Sequence[BoltTask]:
        """The bolt tasks of all components."""
        return [task for tasks in self.bolts.values() for task in tasks]


class Directory:
    """Looks through the tasks, once there are any."""

    def __init__(self) -> None:
        self.tasks = Tasks((), {}, {}, {})

    def unsettled(self) -> Iterator[tuple[str, AnyTuple]]:
        """Iterate over the tuples that are queued, in hand or held, each with the component that has it."""
        for task in self.tasks.all_bolts:
            for tup in task.tuples():
                yield task.plan.component, tup

    def message_id(self, roots: Iterable[int]) -> object:
        """The message id of the first of these trees that is open; None if none is, or the host emitted
        it."""
        for root in roots:
            tree = self._open_tree(root)
            if tree is not None:
                return tree.message_id
        return None

    def _open_tree(self, root: int) -> OpenTree | None:
        ackers = self.tasks.ackers
        if not ackers:
            return None
        tree = ackers[shard_of(root, len(ackers))].ledger.open_tree(root)
        if tree is not None:
            return tree
        unsent = (task.outbox.inits.get(root) for task in self.tasks.all_spouts)
        return next((each for each in unsent if each is not None), None)
