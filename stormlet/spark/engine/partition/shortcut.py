"""The direct way through a partition, for bolts that are plain functions.

Theory of operation
-------------------
A function holds no input. When its call returns, the input is settled: it was acked, or the call has raised. So where
all bolts of a partition are functions that are called one after another, every tree has its outcome when all calls have
returned, and needs neither tuples nor edges. Inputs *pass through* in columns of values, each with its *place*, the
number of its input in the batch. One bolt after another, upstream first, is called with all values that have come to
it, and its outputs go into the columns of its consumers here, and to the lanes that lead away.

- Where all calls have returned, all outputs leave, and all inputs are settled together.
- An input whose call has raised has failed, and is noted as the engine notes any failure
  (:mod:`~stormlet.spark.engine.partition.inputs`). Its outputs are dropped. It is executed again in the engine's own
  way, by tasks and tuples.
- What is none of this is left to the engine from the start: an input whose result must be awaited, or whose call has
  raised what its task must die of. It becomes a tuple, as if nobody had called the function with it, and the outputs of
  the whole batch wait for the outcomes of their trees.

User code is called by the worker of its task (:meth:`FunctionWorker.pass_through
<stormlet.runtime.bolt.functions.FunctionWorker.pass_through>`), and streams have the choosers, lanes and counts of
their outlets. So both ways give the same rows and the same statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Final, cast

from stormlet.core.schema import schema_of
from stormlet.core.tuples import PLAIN, Source, plain_tuple
from stormlet.model.components import DEFAULT_STREAM, To
from stormlet.model.description import BoltSpec
from stormlet.model.logic import LogicKind, what_is_called
from stormlet.model.planning import Link
from stormlet.model.streams import StreamId
from stormlet.runtime.bolt.functions import FunctionWorker, Outputs
from stormlet.runtime.bolt.task import FATAL, BoltTask
from stormlet.runtime.bolt.worker import Raised
from stormlet.runtime.usercode import as_exception
from stormlet.runtime.wire.collector import AnyTuple, undeclared
from stormlet.spark.engine.partition.columns import Stream
from stormlet.spark.engine.partition.equipment import Equipment
from stormlet.spark.engine.partition.inputs import Batch
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place

PASSES: Final = 1000
"""Inputs that pass through together."""


class NotTaken(Exception):
    """A spout emits what its stream does not take; ``__cause__`` says why."""


class Shortcut:
    """The direct way through one partition."""

    def __init__(
        self, functions: Mapping[int, Function], streams: Mapping[int, Mapping[str, Stream]]
    ) -> None:
        """``functions`` are the bolts by task, upstream first, and ``streams`` those of all tasks."""
        self._functions = functions
        self._streams = streams
        self._closed = False

    def takes(self, batch: Batch) -> bool:
        """True if inputs may pass through: each is the first attempt at one message."""
        if self._closed or batch.counts or batch.attempts:
            return False
        if batch.target in self._functions:
            return True
        return DEFAULT_STREAM in self._streams[batch.target] and To not in set(map(type, batch.values))

    def pass_through(self, batch: Batch) -> bool:
        """Call the functions with all inputs of a batch; return True if all were acked. Raises :class:`NotTaken`."""
        places, functions = range(len(batch.values)), self._functions.values()
        head = self._functions.get(batch.target)
        if head is None:
            self._emit(self._streams[batch.target][DEFAULT_STREAM], batch.values, places, batch.first)
        else:
            head.add(batch.values, places)
        for each in functions:
            each.execute(batch.first)
        self._closed = any(each.awaits for each in functions)
        streams = [stream for streams in self._streams.values() for stream in streams.values()]
        # None may overtake the outputs of an input that is still to be executed; those of one that has failed are lost.
        if any(each.left for each in functions):
            batch.to_settle = None
            for stream in streams:
                stream.wait()
            return False
        batch.to_settle = {tup.root - batch.first for each in functions for tup in each.not_acked()}
        for stream in streams:
            stream.leave(batch.messages, batch.to_settle)
        return not batch.to_settle

    def hand_over(self, batch: Batch, new_edge: Callable[[], int]) -> None:
        """Fail the inputs that have failed, and hand to the engine those that are left to it."""
        for each in self._functions.values():
            each.hand_over(batch, new_edge)

    def _emit(self, stream: Stream, values: Sequence[object], places: Sequence[int], first: int) -> None:
        try:
            stream.check_all(values)
        except Exception as error:
            raise NotTaken from error
        for _, refused in stream.take(values, places, first):
            raise NotTaken from refused


class Function:
    """One bolt of the partition, and the inputs that have come to it."""

    def __init__(self, task: BoltTask, worker: FunctionWorker, clock: Callable[[], float]) -> None:
        self.task = task
        self.streams: Mapping[str, Stream] = {}
        """By name; filled when all functions are made."""
        self.failed: list[Raised] = []
        """Calls that have raised."""
        self.left: list[AnyTuple] = []
        """Inputs that are left to the engine."""
        self.awaits = False
        """True if its results must be awaited."""
        # A function of the value does not see where the value comes from.
        self._source = Source(task.plan.component, DEFAULT_STREAM, task.plan.task, schema_of(None))
        self._worker = worker
        self._context = copy_context()  # what it sets stays in its task (law B10)
        self._clock = clock
        self._values: Sequence[object] = ()
        self._places: Sequence[int] = ()
        self._outputs = Outputs(self._fitting)

    def add(self, values: Sequence[object], places: Sequence[int]) -> None:
        """Add inputs."""
        several = bool(self._values)  # those of one producer stay as they are, and so does a range of places
        self._values = [*self._values, *values] if several else values
        self._places = [*self._places, *places] if several else places

    def execute(self, first: int) -> None:
        """Call the function with all inputs; ``first`` is the root of place 0."""
        values, places = self._values, self._places
        self._values, self._places = (), ()
        began = self._clock()
        for place, error in self._emit(*self._outputs_of(values, places, first), first):
            self._note(values[places.index(place)], first + place, error)
        self.task.executed_elsewhere(len(values) - len(self.left), self._clock() - began, ())

    def _outputs_of(
        self, values: Sequence[object], places: Sequence[int], first: int
    ) -> tuple[Sequence[object], Sequence[int]]:
        """Call the function with values, and return the outputs, with the places of their inputs."""
        run, worker, outputs, each = self._context.run, self._worker, self._outputs, iter(values)
        odd = run(worker.pass_plainly, each, outputs)
        if odd is None:
            return outputs.taken()[0], places
        at = len(outputs.values)
        outputs.places += places[:at]
        inputs = zip(places[at + 1 :], each, strict=True)
        stop = run(worker.pass_odd, odd, places[at], outputs)
        while stop is not None or (stop := run(worker.pass_through, inputs, outputs)) is not None:
            self._note(stop.value, first + stop.place, stop.error)
            if stop.error is None:  # as that of the others would have to be
                self.awaits = True
                self.left += [self._tuple(value, first + place) for place, value in inputs]
            stop = None
        return outputs.taken()

    def hand_over(self, batch: Batch, new_edge: Callable[[], int]) -> None:
        """Fail inputs, and hand over those that are left to the engine."""
        for tup in self.not_acked():
            # Edges of their own: an input may have come to several functions, or several times to one.
            tup.edge = new_edge()
            batch.edges[tup.root] = batch.edges.get(tup.root, 0) ^ tup.edge
        self.task.executed_elsewhere(0, 0.0, self.failed)
        self.task.inbox.items += self.left
        self.failed, self.left = [], []

    def not_acked(self) -> Sequence[AnyTuple]:
        """Return the inputs that have failed, and those that are left to the engine."""
        return [*(tup for raised in self.failed for tup in raised.inputs), *self.left]

    def _note(self, value: object, root: int, error: BaseException | None) -> None:
        """Note an input whose call has raised, or has a result that must be awaited."""
        tup = self._tuple(value, root)
        if error is None or isinstance(error, (SystemExit, *FATAL)):
            self.left.append(tup)
        else:
            self.failed.append(Raised((tup,), as_exception(cast("Exception", error))))

    def _tuple(self, value: object, root: int) -> AnyTuple:
        tup: AnyTuple = plain_tuple(value, self._source, PLAIN, root, 0)
        return tup

    def _emit(
        self, values: Sequence[object], places: Sequence[int], first: int
    ) -> Iterable[tuple[int, Exception]]:
        if len(self.streams) == 1:
            (only,) = self.streams.values()
            return only.take(values, places, first)
        columns = defaultdict[str, tuple[list[object], list[int]]](lambda: ([], []))
        for value, place in zip(values, places, strict=True):
            to = _to(value)
            columns[to.stream][0].append(to.value)
            columns[to.stream][1].append(place)
        return [each for name, column in columns.items() for each in self.streams[name].take(*column, first)]

    def _fitting(self, value: object) -> tuple[object, bool]:
        """See :class:`~stormlet.runtime.bolt.functions.Outputs`."""
        to = _to(value)
        stream = self.streams.get(to.stream)
        if stream is None:
            raise undeclared(self.task.outlets, to.stream, self.task.plan)
        if to.task is not None:
            self.task.outlets[to.stream].at(to.task)
        stream.check(to.value)
        return (to.value if len(self.streams) == 1 else value), to is not value and stream.by_type


def _to(value: object) -> To[object]:
    return cast("To[object]", value) if type(value) is To else To(value)


def shortcut_of(cluster: ClusterPlan, place: Place, equipment: Equipment) -> Shortcut | None:
    """Return the direct way through a partition whose outlets are complete; None if it has none."""
    bolts, links = cluster.plan.description.bolts, cluster.links_from(place)
    functions = dict[int, Function]()
    for plan in cluster.tasks_at(place):
        task = equipment.tasks.get(plan.task)
        if task is None:
            continue
        if type(task.worker) is not FunctionWorker or not _is_plain(bolts[plan.component]):
            return None
        functions[plan.task] = Function(task, task.worker, equipment.engine.clock)
    if _mixes_streams(links):
        return None
    streams = dict[int, dict[str, Stream]]()
    for plan in cluster.tasks_at(place):
        streams[plan.task] = {
            name: Stream(
                outlet,
                [
                    functions[link.targets[0]].add
                    for link in links[StreamId(plan.component, name)]
                    if link.targets[0] in functions
                ],
            )
            for name, outlet in equipment.outlets_of(plan.task).items()
        }
    for id, function in functions.items():
        function.streams = streams[id]
    return Shortcut(functions, streams)


def _is_plain(bolt: BoltSpec) -> bool:
    """True for a function whose calls follow one another and fail one by one."""
    function = what_is_called(bolt.logic)
    plain = bolt.kind is LogicKind.FUNCTION and not (
        iscoroutinefunction(function) or isasyncgenfunction(function)
    )
    return plain and bolt.executor == "loop" and bolt.concurrency == 1 and bolt.on_error == "fail"


def _mixes_streams(links: Mapping[StreamId, Sequence[Link]]) -> bool:
    """True if a bolt takes two streams of one producer, whose order columns would not keep."""
    taken = {(stream, link.consumer) for stream, all_ in links.items() for link in all_}
    return len(taken) > len({(stream.component, consumer) for stream, consumer in taken})
