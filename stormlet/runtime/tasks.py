"""All tasks of a run, and the search among them: for the open tree of a root, and for the holders of tuples (law
L14)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from stormlet.core.ids import shard_of
from stormlet.core.ledger import OpenTree
from stormlet.core.tuples import HELD
from stormlet.report.statistics import Progress
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.spout.task import SpoutTask

# One dict of 100,000 trees took 3 ms when it grew for the last time. Its parts take that one after another.
SHARDS = 64


class FoundHolders:
    """By root, the components that hold tuples of its tree. In many dicts, from which each is taken when it is used: a
    large one holds the loop for milliseconds when it grows and when it is dropped (law F2). These have numbers of what
    most roots have in common, so that the garbage collector does not look into them."""

    def __init__(self) -> None:
        self._shards: tuple[dict[int, int], ...] = tuple({} for _ in range(SHARDS))
        self._numbers: dict[tuple[str, ...], int] = {}
        self._holders: list[tuple[str, ...]] = []

    def pop(self, root: int, default: tuple[str, ...]) -> tuple[str, ...]:
        """Take out those of this root; ``default`` if none was found."""
        number = self._shards[root % SHARDS].pop(root, None)
        return default if number is None else self._holders[number]

    def add(self, root: int, component: str) -> None:
        """This component holds one more tuple of the tree."""
        shard = self._shards[root % SHARDS]
        # In the order in which they are found, which is that of the plan: two runs of one seed name them alike.
        known = self._holders[shard[root]] if root in shard else ()
        if component not in known:
            shard[root] = self._number((*known, component))

    def _number(self, holders: tuple[str, ...]) -> int:
        number = self._numbers.get(holders)
        if number is None:
            number = self._numbers[holders] = len(self._holders)
            self._holders.append(holders)
        return number


class HolderScan:
    """One look at everything that is queued, in hand or held, a few tuples at a time, so that it never holds the loop
    for long. A tuple that moves on while it goes is found where it is looked for, or not at all."""

    def __init__(self, tasks: Iterable[BoltTask], roots: Container[int]) -> None:
        self.found = FoundHolders()
        self._looks = _look(self.found, tasks, roots)

    def advance(self, most: int) -> int:
        """Look at so many more tuples; returns at how many, which are fewer when there are no more."""
        # Fewer than asked for means that all have been looked at.
        return sum(islice(self._looks, most))


def _look(found: FoundHolders, tasks: Iterable[BoltTask], roots: Container[int]) -> Iterator[int]:
    for task in tasks:
        for tup in task.tuples():
            if tup.state <= HELD:  # else it was settled since the scan came to this task
                # Of most tuples the one root is at hand; roots would make a tuple of it.
                for root in (tup.root,) if tup.root else tup.roots:
                    if root in roots:
                        found.add(root, task.plan.component)
            yield 1


class Tasks(msgspec.Struct, frozen=True):
    """All tasks of a topology, in the order of the plan."""

    ackers: Sequence[AckerTask]
    spouts: Mapping[str, Sequence[SpoutTask]]
    bolts: Mapping[str, Sequence[BoltTask]]
    progress: Mapping[int, Progress]
    """The last progress report of each task, by its id."""

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
        return next((inits[root] for inits in on_their_way if root in inits), None)

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

    def scan_holders(self, roots: Container[int]) -> HolderScan:
        """Begin to look for the components that still hold tuples of these trees (law L14)."""
        return HolderScan(self.tasks.all_bolts, roots)

    def message_id(self, roots: Iterable[int]) -> object:
        """The message id of the first of these trees that is open; None if none is, or the host emitted
        it."""
        trees = (self.tasks.open_tree(root) for root in roots)
        return next((tree.message_id for tree in trees if tree is not None), None)
