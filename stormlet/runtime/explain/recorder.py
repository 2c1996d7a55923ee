"""Follows trees edge by edge: since when each tuple is where it is, and what it came through.

It costs nothing while it is off: outlets are wrapped when it is switched on, and unwrapped again. Of a tree it knows
what was delivered, and each tuple has its own state; a tree is forgotten with its attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from stormlet.core.trees import OpenTree
from stormlet.core.tuples import HELD, Lineage
from stormlet.runtime.bolt.observer import ExecutionObserver
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.wire.collector import AnyTuple
from stormlet.runtime.wire.outlets import Outlet, WrappedOutlet

ROOTS = 1 << 64
FEWEST = 64
"""Edges of a tree from which on those are dropped that are settled."""
MOST_EXECUTIONS: Final = 200
"""Executions of an attempt that are kept: those that began first."""


class Edge:
    """One delivery of a recorded tree."""

    __slots__ = ("began", "ended", "path", "since", "task", "tup")

    def __init__(self, tup: AnyTuple, task: BoltTask, since: float, path: tuple[str, ...]) -> None:
        self.tup = tup
        self.task = task
        """The one that it was delivered to."""
        self.since = since
        self.path = path
        """The tasks that it came through."""
        self.began: float | None = None
        """The time at which user code was called with it."""
        self.ended: float | None = None
        """The time at which that has returned."""

    @property
    def outstanding(self) -> bool:
        """True while it is not settled."""
        return self.tup.state <= HELD

    @property
    def running(self) -> bool:
        """True while user code has it."""
        return self.began is not None and self.ended is None


class RecordedTree:
    """One attempt."""

    __slots__ = ("_prune_at", "began", "edges", "executions", "left_out", "value")

    def __init__(self, value: object, began: float) -> None:
        self.value = value
        self.began = began
        self.edges: dict[AnyTuple, Edge] = {}
        """By tuple; of those that are settled, many have been dropped."""
        self.executions: list[Edge] = []
        """Those that user code was called with."""
        self.left_out = 0
        """The number of those that are not among them."""
        self._prune_at = FEWEST

    @property
    def outstanding(self) -> Iterator[Edge]:
        """The tuples that are not settled."""
        return (edge for edge in self.edges.values() if edge.outstanding)

    def add(self, edge: Edge) -> None:
        """It was delivered."""
        # When it has doubled, so that dropping costs a constant part of adding. A tree of a million tuples, of
        # which few are open, keeps few.
        if len(self.edges) >= self._prune_at:
            self.edges = {tup: each for tup, each in self.edges.items() if each.outstanding or each.running}
            self._prune_at = max(FEWEST, 2 * len(self.edges))
        self.edges[edge.tup] = edge

    def begin(self, edge: Edge, now: float) -> None:
        """User code is called with it; the members of a batch are executed once more, with the batch."""
        if edge.began is None:
            if len(self.executions) < MOST_EXECUTIONS:
                self.executions.append(edge)
            else:
                self.left_out += 1
        edge.began, edge.ended = now, None


class EdgeRecorder:
    """Records a share of the trees of one run.

    ``spouts`` has the outlets of each spout task, by its name.
    """

    def __init__(
        self, spouts: Mapping[str, dict[str, Outlet]], bolts: Sequence[BoltTask], clock: Callable[[], float]
    ) -> None:
        self.trees: dict[int, RecordedTree] = {}
        """By root, the running attempts that are recorded."""
        self.executions = False
        """True if executions are recorded, too."""
        self._spouts = spouts
        self._bolts = {task.plan.task: task for task in bolts}
        self._clock = clock
        self._below = 0
        self._roots: dict[OpenTree, int] = {}
        self._emitted: tuple[OpenTree, object] | None = None

    @property
    def on(self) -> bool:
        """True if it records any trees that begin now."""
        return self._below > 0

    def record(self, share: float, *, executions: bool) -> None:
        """Record this share of the trees that begin from now on, from 0 to 1; those that are recorded already are
        followed to their end, unless it is 0. With ``executions``, note from now on when user code is called."""
        # By the root, which is random: no more is needed to choose a share, and a tree is recorded by all tasks or
        # by none.
        was_on, self._below = self.on, int(share * ROOTS)
        if self.on and not was_on:
            self._wrap()
        elif was_on and not self.on:
            self._unwrap()
        if self.on and executions and not self.executions:
            self._observe(self)

    def tracked(self, tree: OpenTree, value: object) -> None:
        """An attempt begins: a spout's outlet delivers its value next."""
        self._emitted = (tree, value)

    def settled(self, tree: OpenTree) -> RecordedTree | None:
        """An attempt is over: forget it, and return its record if there is one."""
        self._emitted = None
        root = self._roots.pop(tree, None)
        return None if root is None else self.trees.pop(root)

    def emitted(self, root: int) -> None:
        """A spout's outlet has delivered the first tuples of this tree."""
        if root >= self._below or self._emitted is None:
            return
        tree, value = self._emitted
        self.trees[root] = RecordedTree(value, self._clock())
        self._roots[tree] = root

    def delivered(
        self,
        path: Callable[[int, RecordedTree], tuple[str, ...]],
        roots: Sequence[int],
        reached: Sequence[int],
    ) -> None:
        """A tuple of these trees was delivered to each of these tasks, on the ``path`` of each tree."""
        # An output may be anchored to several inputs of one tree.
        for root in dict.fromkeys(roots):
            tree = self.trees.get(root)
            if tree is not None:
                way = path(root, tree)
                for task, tup in self._last_delivered(reached):
                    tree.add(Edge(tup, task, self._clock(), way))

    def _last_delivered(self, reached: Sequence[int]) -> Iterator[tuple[BoltTask, AnyTuple]]:
        # Nothing runs between a delivery and its record, so that its tuples are the last ones of their queues.
        if len(reached) == 1:  # nearly always
            consumer = self._bolts[reached[0]]
            yield consumer, consumer.inbox.items[-1]
            return
        # A task may get several copies, by two subscriptions.
        for task, count in Counter(reached).items():
            consumer = self._bolts[task]
            yield from ((consumer, tup) for tup in consumer.inbox.items[-count:])

    # Executions, as an observer of bolt tasks.

    def begin(self, tups: Sequence[AnyTuple]) -> None:
        """User code is called with these."""
        now = self._clock()
        for tree, edge in self._edges(tups):
            tree.begin(edge, now)

    def end(self, tups: Sequence[AnyTuple], waited: float = 0.0) -> None:
        """The call is over; its outputs have waited for room for so long."""
        now = self._clock() - waited
        for _, edge in self._edges(tups):
            edge.ended = now

    def _edges(self, tups: Sequence[AnyTuple]) -> Iterator[tuple[RecordedTree, Edge]]:
        for tup in tups:
            for root in tup.roots:
                tree = self.trees.get(root)
                edge = None if tree is None else tree.edges.get(tup)
                if tree is not None and edge is not None:
                    yield tree, edge

    # On and off.

    def _wrap(self) -> None:
        for name, outlets in self._spouts.items():
            _change(outlets, partial(SpoutRecorder, self, name))
        for bolt in self._bolts.values():
            _change(bolt.outlets, partial(BoltRecorder, self, bolt))

    def _unwrap(self) -> None:
        for outlets in (*self._spouts.values(), *(bolt.outlets for bolt in self._bolts.values())):
            _change(outlets, _unrecorded)
        self._observe(None)
        self.trees.clear()
        self._roots.clear()
        self._emitted = None

    def _observe(self, observer: ExecutionObserver | None) -> None:
        self.executions = observer is not None
        for bolt in self._bolts.values():
            bolt.observe(observer)


class SpoutRecorder(WrappedOutlet):
    """An outlet where trees begin."""

    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: EdgeRecorder, name: str, inner: Outlet) -> None:
        super().__init__(inner)
        self._recorder = recorder
        self._name = name

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        edges = self.inner.deliver(value, root, lineage)
        self.reached = self.inner.reached
        if root:
            self._recorder.emitted(root)
            self._recorder.delivered(self._path, (root,), self.reached)
        return edges

    def _path(self, root: int, tree: RecordedTree) -> tuple[str, ...]:
        return (self._name,)

    def wrapping(self, inner: Outlet) -> Outlet:
        return SpoutRecorder(self._recorder, self._name, inner)


class BoltRecorder(WrappedOutlet):
    """An outlet where trees go on."""

    __slots__ = ("_recorder", "_task", "_trees")

    def __init__(self, recorder: EdgeRecorder, task: BoltTask, inner: Outlet) -> None:
        super().__init__(inner)
        self._recorder = recorder
        self._task = task
        self._trees = recorder.trees

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        edges = self.inner.deliver(value, root, lineage)
        self.reached = self.inner.reached
        if root in self._trees:
            self._recorder.delivered(self._path, (root,), self.reached)
        return edges

    def after(self, value: object, roots: Sequence[int]) -> None:
        """It was joined to the trees of several anchors."""
        self._recorder.delivered(self._path, roots, self.reached)

    def _path(self, root: int, tree: RecordedTree) -> tuple[str, ...]:
        """The tasks that a tree has come through when this one emits something of it."""
        current = self._task.current
        edge = None if current is None else tree.edges.get(current)
        if edge is None:  # it emits something of what it holds, or of one of several calls
            edge = next((each for each in tree.outstanding if each.task is self._task), None)
        return (*(() if edge is None else edge.path), self._task.plan.name)

    def wrapping(self, inner: Outlet) -> Outlet:
        return BoltRecorder(self._recorder, self._task, inner)


def _change(outlets: dict[str, Outlet], change: Callable[[Outlet], Outlet]) -> None:
    outlets.update({name: _changed(outlet, change) for name, outlet in outlets.items()})


def _changed(outlet: Outlet, change: Callable[[Outlet], Outlet]) -> Outlet:
    """An outlet whose innermost part is changed: those around it stay, and are found where they were."""
    # Below the wrappers of others: a tap must find what it has wrapped, whatever is switched on or off meanwhile.
    if isinstance(outlet, RECORDERS) or not isinstance(outlet, WrappedOutlet):
        return change(outlet)
    outlet.inner = _changed(outlet.inner, change)
    return outlet


def _unrecorded(outlet: Outlet) -> Outlet:
    return outlet.inner if isinstance(outlet, RECORDERS) else outlet


RECORDERS: Final = (SpoutRecorder, BoltRecorder)
