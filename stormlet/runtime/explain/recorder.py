"""Follows trees edge by edge: since when each tuple is where it is, and what it came through.

It costs nothing while it is off: outlets are wrapped when it is switched on, and unwrapped again. Of a tree it knows
what was delivered, and each tuple tells itself whether it is settled; a tree is forgotten with its attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import Failure, FailureKind, Outstanding
from stormlet.core.tuples import HELD, Lineage, Tuple
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.runtime.wire.outlets import Outlet, WrappedOutlet

ROOTS = 1 << 64
FEWEST = 64
"""Edges of a tree from which on those are dropped that are settled."""
TOLD = frozenset((FailureKind.TIMEOUT, FailureKind.SHUTDOWN))
"""Failures that come from outstanding tuples."""


class Edge:
    """One delivery of a recorded tree."""

    __slots__ = ("path", "since", "task", "tup")

    def __init__(self, tup: AnyTuple, task: BoltTask, since: float, path: tuple[str, ...]) -> None:
        self.tup = tup
        self.task = task
        """The one that it was delivered to."""
        self.since = since
        self.path = path
        """The tasks that it came through."""

    @property
    def outstanding(self) -> bool:
        """True while it is not settled."""
        return self.tup.state <= HELD


class RecordedTree:
    """One attempt."""

    __slots__ = ("_prune_at", "began", "edges", "plan", "tree", "value")

    def __init__(self, plan: TaskPlan, tree: OpenTree, value: object, began: float) -> None:
        self.plan = plan
        """The spout task."""
        self.tree = tree
        self.value = value
        self.began = began
        self.edges: dict[AnyTuple, Edge] = {}
        """By tuple; of those that are settled, many have been dropped."""
        self._prune_at = FEWEST

    @property
    def outstanding(self) -> Iterator[Edge]:
        """The tuples that are not settled."""
        return (edge for edge in self.edges.values() if edge.outstanding)

    def add(self, edge: Edge) -> None:
        """It was delivered."""
        if len(self.edges) >= self._prune_at:
            self.edges = {each.tup: each for each in self.outstanding}
            self._prune_at = max(FEWEST, 2 * len(self.edges))
        self.edges[edge.tup] = edge


class EdgeRecorder:
    """Records a share of the trees of one run."""

    def __init__(self, tasks: Tasks, clock: Callable[[], float]) -> None:
        self.tell: Callable[[RecordedTree], Sequence[Outstanding]] = _nothing
        """Says where the outstanding tuples are of an attempt that has failed."""
        self._tasks = tasks
        self._clock = clock
        self._below = 0
        self._consumers = {task.plan.task: task for task in tasks.all_bolts}
        self.trees: dict[int, RecordedTree] = {}
        """By root, the running attempts that are recorded."""
        self._roots: dict[OpenTree, int] = {}
        self._emitted: tuple[TaskPlan, OpenTree, object] | None = None

    @property
    def on(self) -> bool:
        """True if it records any trees that begin now."""
        return self._below > 0

    def record(self, share: float) -> None:
        """Record this share of the trees that begin from now on, from 0 to 1; those that are recorded already are
        followed to their end, unless it is 0."""
        was_on, self._below = self.on, int(share * ROOTS)
        if self.on and not was_on:
            self._wrap()
        elif was_on and not self.on:
            self._unwrap()

    def recorded(self, root: int) -> RecordedTree | None:
        """The record of the tree of this root; None if it is not recorded."""
        return self.trees.get(root)

    def root_of(self, tree: OpenTree) -> int | None:
        """The root of a tree's running attempt; None if it is not recorded."""
        return self._roots.get(tree)

    # What is told to it.

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """See :meth:`stormlet.runtime.spout.messages.MessageObserver.tracked`."""
        self._emitted = (task, tree, value)  # what a spout's outlet delivers next

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """See :meth:`stormlet.runtime.spout.messages.MessageObserver.settled`."""
        self._emitted = None
        root = self._roots.pop(tree, None)
        if root is None:
            return
        if tree.failure is not None:
            tree.failure = self._described(tree.failure, self.trees[root])
        del self.trees[root]

    def emitted(self, root: int) -> None:
        """A spout's outlet has delivered the first tuples of this tree."""
        if root >= self._below or self._emitted is None:
            return
        plan, tree, value = self._emitted
        self.trees[root] = RecordedTree(plan, tree, value, self._clock())
        self._roots[tree] = root

    def delivered(self, source: SpoutTask | BoltTask, roots: Sequence[int], reached: Sequence[int]) -> None:
        """A task has delivered a tuple of these trees to each of these tasks."""
        for root in dict.fromkeys(roots):
            tree = self.trees.get(root)
            if tree is not None:
                path = (*_path_to(source, root, tree), source.plan.name)
                for task, tup in self._last_delivered(reached):
                    tree.add(Edge(tup, task, self._clock(), path))

    def _last_delivered(self, reached: Sequence[int]) -> Iterator[tuple[BoltTask, Tuple[Any]]]:
        if len(reached) == 1:  # nearly always
            consumer = self._consumers[reached[0]]
            yield consumer, consumer.inbox.items[-1]
            return
        for task, count in Counter(reached).items():
            consumer = self._consumers[task]
            yield from ((consumer, tup) for tup in consumer.inbox.items[-count:])

    def _described(self, failure: Failure, tree: RecordedTree) -> Failure:
        outstanding = self.tell(tree) if failure.kind in TOLD else ()
        return failure.recorded(self._clock() - tree.began, tuple(outstanding))

    # On and off.

    def _wrap(self) -> None:
        for spout in self._tasks.all_spouts:
            _change(spout, partial(SpoutRecorder, self, spout))
        for bolt in self._tasks.all_bolts:
            _change(bolt, partial(OutletRecorder, self, bolt))

    def _unwrap(self) -> None:
        tasks: Sequence[SpoutTask | BoltTask] = [*self._tasks.all_spouts, *self._tasks.all_bolts]
        for task in tasks:
            _change(task, _unrecorded)
        self.trees.clear()
        self._roots.clear()
        self._emitted = None


class OutletRecorder(WrappedOutlet):
    """An outlet whose deliveries are recorded."""

    __slots__ = ("_recorder", "_task", "_trees")

    def __init__(self, recorder: EdgeRecorder, task: SpoutTask | BoltTask, inner: Outlet) -> None:
        super().__init__(inner)
        self._recorder = recorder
        self._task = task
        self._trees = recorder.trees

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        edges = self.inner.deliver(value, root, lineage)
        self.reached = self.inner.reached
        if root in self._trees:
            self._recorder.delivered(self._task, (root,), self.reached)
        return edges

    def after(self, value: object, roots: Sequence[int]) -> None:
        """It was joined to the trees of several anchors."""
        self._recorder.delivered(self._task, roots, self.reached)

    def wrapping(self, inner: Outlet) -> Outlet:
        return type(self)(self._recorder, self._task, inner)


class SpoutRecorder(OutletRecorder):
    """An outlet where trees begin."""

    __slots__ = ()

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        edges = self.inner.deliver(value, root, lineage)
        self.reached = self.inner.reached
        if root:
            self._recorder.emitted(root)
            self._recorder.delivered(self._task, (root,), self.reached)
        return edges


def _path_to(source: SpoutTask | BoltTask, root: int, tree: RecordedTree) -> tuple[str, ...]:
    """The tasks that a tree came through before this task emits something of it."""
    if isinstance(source, SpoutTask):
        return ()
    current = source.current
    edge = None if current is None else tree.edges.get(current)
    if edge is None:  # it emits something of what it holds, or of one of several calls
        edge = next((each for each in tree.outstanding if each.task is source), None)
    return () if edge is None else edge.path


def _change(task: SpoutTask | BoltTask, change: Callable[[Outlet], Outlet]) -> None:
    task.outlets.update({name: _changed(outlet, change) for name, outlet in task.outlets.items()})


def _changed(outlet: Outlet, change: Callable[[Outlet], Outlet]) -> Outlet:
    """An outlet whose innermost part is changed: those around it stay, and are found where they were."""
    if isinstance(outlet, OutletRecorder) or not isinstance(outlet, WrappedOutlet):
        return change(outlet)
    outlet.inner = _changed(outlet.inner, change)
    return outlet


def _unrecorded(outlet: Outlet) -> Outlet:
    return outlet.inner if isinstance(outlet, OutletRecorder) else outlet


def _nothing(tree: RecordedTree) -> Sequence[Outstanding]:
    return ()
