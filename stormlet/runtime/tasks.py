"""All tasks of a run, and the search among them for the open tree of a root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from stormlet.core.ids import shard_of
from stormlet.core.trees import OpenTree
from stormlet.report.connections import Connection
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
    connections: Mapping[int, Callable[[], Connection]]
    """Functions that tell of the connections of tasks to their brokers, by their ids."""

    def name_of(self, task: int) -> str:
        """Return the name of a spout or bolt task, by its id."""
        everyone = (*self.all_spouts, *self.all_bolts)
        return next(each.name for each in everyone if each.plan.task == task)

    def acker_of(self, root: int) -> AckerTask:
        """The acker of this tree. There must be one."""
        return self.ackers[shard_of(root, len(self.ackers))]

    def open_tree(self, root: int) -> OpenTree | None:
        """The open tree of this root, also if its acker has not read of it yet; None if there is none."""
        if not self.ackers:
            return None
        acker = self.acker_of(root)
        tree = acker.ledger.open_tree(root)
        if tree is not None:
            return tree
        # A tree begins in an outbox, leaves with the slice, and may wait with a busy acker.
        on_their_way = (
            *(control.inits for control in acker.unread),
            *(spout.outbox.inits for spout in self.all_spouts),
        )
        return next((each for inits in on_their_way for each in inits if each.root == root), None)

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
        self.tasks = Tasks((), {}, {}, {}, {})

    def unsettled(self) -> Iterator[tuple[str, AnyTuple]]:
        """Iterate over the tuples that are queued, in hand or held, each with the component that has it."""
        for task in self.tasks.all_bolts:
            for tup in task.tuples():
                yield task.plan.component, tup

    def message_id(self, roots: Iterable[int]) -> object:
        """The message id of the first of these trees that is open; None if none is, or the host emitted
        it."""
        trees = (self.tasks.open_tree(root) for root in roots)
        return next((tree.message_id for tree in trees if tree is not None), None)
