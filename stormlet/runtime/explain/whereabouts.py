"""The outstanding tuples of a tree, and the places where they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from stormlet.core.outcomes import Outstanding, Place
from stormlet.core.tracebacks import Call
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.explain.occupations import call_stack, own_stack
from stormlet.runtime.explain.recorder import Edge, EdgeRecorder, RecordedTree
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.collector import AnyTuple

ORDER = (Place.EXECUTING, Place.HELD, Place.NOWHERE, Place.QUEUED)
"""The most likely reason for an open tree stands first."""
UNSETTLED = "execute has returned without settling it; the bolt acks it later, or lacks an out.ack(tup)"
MOST_KEPT = 10
"""The number of outstanding tuples that a failure keeps."""


class Found(NamedTuple):
    """An outstanding tuple, and the task that has it."""

    outstanding: Outstanding
    task: BoltTask


class Station:
    """The tuples that one bolt task has, at one moment."""

    def __init__(self, task: BoltTask) -> None:
        self.task = task
        self.calls = task.calls()

    def tuples(self) -> Iterator[tuple[AnyTuple, int | None]]:
        """Everything, and how many are ahead of what is queued."""
        yield from ((tup, None) for tup in self.calls)
        yield from ((tup, None) for tup in self.task.account.held)
        yield from ((tup, ahead) for ahead, tup in enumerate(self.task.queue()))

    def place_of(self, tup: AnyTuple) -> Place:
        """The place of a tuple in the task."""
        if tup in self.calls:
            return Place.EXECUTING
        return Place.HELD if tup in self.task.account.held else Place.QUEUED

    def stack(self, tup: AnyTuple) -> tuple[Call, ...]:
        """Of the call that has it, or of what the task is in meanwhile."""
        return call_stack(self.task, tup, self.calls[tup]) if tup in self.calls else self._meanwhile

    @cached_property
    def _meanwhile(self) -> tuple[Call, ...]:
        others = (call_stack(self.task, other, call) for other, call in self.calls.items())
        return next(others, None) or own_stack(self.task)

    def note(self, tup: AnyTuple, place: Place) -> str:
        """Other facts about the tuple."""
        return (self.task.worker.why_held(tup) or UNSETTLED) if place is Place.HELD else ""


class Whereabouts:
    """Finds tuples in one run."""

    def __init__(self, tasks: Tasks, recorder: EdgeRecorder, clock: Callable[[], float]) -> None:
        self._tasks = tasks
        self._recorder = recorder
        self._clock = clock
        self._names = {task.plan.task: task.plan.name for task in (*tasks.all_spouts, *tasks.all_bolts)}

    def of(self, roots: Collection[int]) -> Mapping[int, Sequence[Found]]:
        """By root, the outstanding tuples of these trees: one look at everything that bolts have."""
        found: dict[int, dict[AnyTuple, Found]] = {root: {} for root in roots}
        for task in self._tasks.all_bolts:
            station = Station(task)
            for tup, ahead in station.tuples():
                for root in tup.roots:
                    if root in found:
                        found[root][tup] = self._found(station, tup, self._edge(root, tup), ahead)
        return {root: _sorted([*here.values(), *self._nowhere(root, here)]) for root, here in found.items()}

    def of_failed(self, tree: RecordedTree) -> Sequence[Outstanding]:
        """Some of what was outstanding of a recorded tree when it failed. That is quick, as many trees may time out at
        once, and so it does not tell how many others are ahead of one that is queued."""
        edges = islice(tree.outstanding, MOST_KEPT)
        return [each.outstanding for each in _sorted([self._of_edge(edge) for edge in edges])]

    def _of_edge(self, edge: Edge) -> Found:
        return self._found(Station(edge.task), edge.tup, edge, None)

    def _nowhere(self, root: int, found: Collection[AnyTuple]) -> Iterator[Found]:
        tree = self._recorder.recorded(root)
        for edge in () if tree is None else tree.outstanding:
            if edge.tup not in found:  # a task that dies lets go of its calls before it fails their inputs
                place = Place.NOWHERE if edge.task.working else Place.EXECUTING
                yield self._found(Station(edge.task), edge.tup, edge, None, place)

    def _edge(self, root: int, tup: AnyTuple) -> Edge | None:
        tree = self._recorder.recorded(root)
        return None if tree is None else tree.edges.get(tup)

    def _found(
        self,
        station: Station,
        tup: AnyTuple,
        edge: Edge | None,
        ahead: int | None,
        place: Place | None = None,
    ) -> Found:
        task, place = station.task, place or station.place_of(tup)
        outstanding = Outstanding(
            tup.value,
            task.plan.component,
            task.plan.task,
            task.plan.name,
            place,
            (self._names[tup.task],) if edge is None else edge.path,
            ahead,
            None if edge is None else self._clock() - edge.since,
            station.stack(tup),
            station.note(tup, place),
        )
        return Found(outstanding, task)


def _sorted(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda each: ORDER.index(each.outstanding.place))
