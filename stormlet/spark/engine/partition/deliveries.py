"""Tuples for the bolt tasks of a partition, made of the chunks that have come for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat
from typing import Any, Final

from stormlet.core.tuples import PLAIN, AnyTuple, Lineage, Source, plain_tuple
from stormlet.model.streams import StreamId
from stormlet.spark.engine.partition.inputs import Batch, Input
from stormlet.spark.engine.partition.rows import Content, Row, unpack
from stormlet.spark.engine.planning.numbering import ClusterPlan

ONLY_EDGE: Final = 1
"""The edge of an input that no other task here gets a part of: its tree has no other edge, so that any will do."""


class Unreadable(Exception):
    """A chunk cannot be unpickled; ``__cause__`` says why."""

    def __init__(self, producer: int) -> None:
        super().__init__(producer)
        self.producer = producer
        """The id of the task that it comes from."""


class Deliveries:
    """Makes tuples."""

    def __init__(
        self,
        cluster: ClusterPlan,
        ids: Iterable[int],
        draws_edges: Callable[[int], bool],
        *,
        tracks_all: bool = False,
    ) -> None:
        """``draws_edges`` says if the outputs of a task may go to other tasks here. With ``tracks_all`` inputs that
        belong to no message have trees here, too (law X5)."""
        self._cluster = cluster
        self._edges = iter(ids)
        self._draws_edges = draws_edges
        self._sources: dict[tuple[int, str], Source] = {}
        self._lineages = {1: PLAIN}
        self._tracks_all = tracks_all

    def tuples_of(self, batch: Batch) -> list[AnyTuple]:
        """Return the tuples of a batch, whose edges are noted in it."""
        first, count = batch.first, len(batch.values)
        roots: Sequence[int] = range(first, first + count)
        edges = self._new_edges(batch.target, count)
        # What belongs to no message has no tree here, either (law L10).
        if 0 in batch.counts and not self._tracks_all:
            edges = [edge if count else 0 for edge, count in zip(edges, batch.counts, strict=True)]
            roots = [root if edge else 0 for root, edge in zip(roots, edges, strict=True)]
        batch.edges = dict(zip(roots, edges, strict=True))
        batch.edges.pop(0, None)
        if batch.attempts:
            lineages = map(self.lineage, batch.attempts)
            fields = zip(batch.values, batch.sources, lineages, roots, edges, strict=True)
            return [plain_tuple(*each) for each in fields]
        return [
            plain_tuple(value, source, PLAIN, root, edge)
            for value, source, root, edge in zip(batch.values, batch.sources, roots, edges, strict=True)
        ]

    def new_edge(self) -> int:
        """Return an edge."""
        return next(self._edges)

    def of_input(self, each: Input, root: int) -> AnyTuple:
        """Return the tuple for one more attempt at an input."""
        (edge,) = self._new_edges(each.target, 1)
        tup: AnyTuple = plain_tuple(each.value, each.source, self.lineage(each.attempt), root, edge)
        return tup

    def lineage(self, attempt: int) -> Lineage:
        """Return the lineage of tuples of this attempt."""
        lineage = self._lineages.get(attempt)
        if lineage is None:
            lineage = self._lineages[attempt] = Lineage(attempt)
        return lineage

    def batch_of(self, rows: Sequence[Row]) -> Batch:
        """Return the inputs of chunks for one task. Raise :class:`Unreadable`."""
        contents = [_unpacked(row) for row in rows]
        values, sources, messages = list[Any](), list[Source](), list[int]()
        for row, content in zip(rows, contents, strict=True):
            each = [self._source(row.producer, stream) for stream in content.streams]
            values += content.values
            sources += each if len(each) == row.size else each * row.size
            messages += content.roots
        counts = _padded([content.counts for content in contents], rows)
        attempts = _padded([content.attempts for content in contents], rows)
        words = b"".join(row.words for row in rows)
        return Batch(rows[0].target, values, sources, messages, counts, attempts, words)

    def _new_edges(self, task: int, count: int) -> Sequence[int]:
        """Return the edges of new inputs of a task."""
        if self._draws_edges(task):
            return list(islice(self._edges, count))
        return [ONLY_EDGE] * count

    def _source(self, task: int, stream: str) -> Source:
        source = self._sources.get((task, stream))
        if source is None:
            component = self._cluster.component_of(task)
            schema = self._cluster.schema(StreamId(component, stream))
            source = self._sources[task, stream] = Source(component, stream, task, schema)
        return source


def _unpacked(row: Row) -> Content:
    try:
        return unpack(row)
    except Exception as error:
        raise Unreadable(row.producer) from error


def _padded(numbers: Sequence[Sequence[int]], rows: Sequence[Row]) -> Sequence[int]:
    """Return the numbers of all rows, 1 for each value of a row without; nothing if all are without."""
    if not any(numbers):
        return ()
    return [number for each, row in zip(numbers, rows, strict=True) for number in each or repeat(1, row.size)]
