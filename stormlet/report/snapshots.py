"""Statistics that are kept for a while, made small: of each component nothing but the numbers, in one string of
bytes."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import (
    MERGED,
    SUMMED,
    ComponentStatistics,
    EdgeStatistics,
    Statistics,
    StreamStatistics,
    TaskStatistics,
)
from stormlet.report.steps import Steps, each_of

PackedTimes: TypeAlias = tuple[bytes, list[int], float]
"""The bounds, the counts and the total of a histogram. Bounds have five binary digits: short floats are exact."""


class PackedTask(msgspec.Struct, frozen=True, array_like=True):
    """Counts of a task or component, and its histograms."""

    numbers: list[float]
    """In the order of ``SUMMED``; most are small integers, or 0, which take a byte."""
    times: list[PackedTimes | int | None] = []
    """In the order of ``MERGED``: a number is the place of another one that is the same, as of most bolts the times to
    the end of ``execute`` and to the ack are."""


class PackedComponent(msgspec.Struct, frozen=True, array_like=True):
    """A component with its tasks."""

    total: PackedTask
    streams: dict[str, tuple[int, int]]
    tasks: dict[int, PackedTask]
    """Empty if there is but one: it has the numbers of the component."""
    only: int | None
    """That one."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(PackedComponent)


def packed_times(histogram: Histogram) -> PackedTimes:
    """Return a histogram as bytes and numbers."""
    counts = histogram.counts
    return array("f", counts).tobytes(), list(counts.values()), histogram.total


def unpacked_times(packed: PackedTimes) -> Histogram:
    """Return the histogram as it was."""
    bounds, counts, total = packed
    return Histogram(dict(zip(array("f", bounds), counts, strict=True)), total)


def _packed(task: TaskStatistics, *, with_times: bool) -> PackedTask:
    numbers: list[float] = [getattr(task, name) or 0 for name in SUMMED]
    return PackedTask(numbers, _packed_histograms(task) if with_times else [])


def _packed_histograms(task: TaskStatistics) -> list[PackedTimes | int | None]:
    found: list[Histogram | None] = [getattr(task, name) for name in MERGED]
    # Equal counts and another sum are not the same times.
    places = [
        next((place for place, other in enumerate(found[:number]) if _same(each, other)), None)
        for number, each in enumerate(found)
    ]
    return [
        None if each is None else packed_times(each) if place is None else place
        for each, place in zip(found, places, strict=True)
    ]


def _same(one: Histogram | None, other: Histogram | None) -> bool:
    return one is not None and other is not None and one.total == other.total and one.counts == other.counts


def _fields(packed: PackedTask, *, with_times: bool) -> dict[str, Any]:
    """Return what :class:`~stormlet.report.statistics.TaskStatistics` is made of, to be taken from later ones."""
    fields: dict[str, Any] = dict(zip(SUMMED, packed.numbers, strict=True))
    if with_times and packed.times:
        for name, times in zip(MERGED, packed.times, strict=True):
            if isinstance(times, int):
                fields[name] = fields[MERGED[times]]
            elif times is not None:
                fields[name] = unpacked_times(times)
    return fields


class Snapshot:
    """The part of statistics that a later difference needs; made by :func:`snapshot_of`."""

    def __init__(self, statistics: Statistics, components: Sequence[bytes], *, detailed: bool) -> None:
        self._ids = tuple(statistics.components)
        self._components = components
        self._detailed = detailed
        edges = statistics.edges
        # Columns, as an object for each edge would take more than all that is kept of its producer.
        self._ends = tuple(
            zip(*((each.producer, each.stream, each.consumer, each.grouping) for each in edges), strict=True)
        )
        self._transferred = array("q", [each.transferred for each in edges])
        self._waited = array("d", [each.waited_seconds for each in edges])
        self._loop = statistics.loop and replace(statistics.loop, lag=statistics.loop.lag.copy())

    @property
    def size(self) -> int:
        """Bytes of the components."""
        return sum(map(len, self._components))

    def statistics(self, times_of: Collection[str] = ()) -> Steps[Statistics]:
        """Return the statistics, for a difference; with the times of the tasks of these components."""
        components = yield from each_of(
            zip(self._ids, self._components, strict=True),
            lambda id, packed: self._component(packed, with_times=self._detailed and id in times_of),
        )
        return Statistics(components, edges=list(self._edges()), loop=self._loop)

    def totals(self) -> Steps[Statistics]:
        """Return the same without tasks and edges, for a difference that needs none."""
        components = yield from each_of(
            zip(self._ids, self._components, strict=True),
            lambda id, packed: ComponentStatistics(**_fields(_DECODER.decode(packed).total, with_times=True)),
        )
        return Statistics(components)

    @staticmethod
    def _component(packed: bytes, *, with_times: bool) -> ComponentStatistics:
        found = _DECODER.decode(packed)
        tasks = found.tasks if found.only is None else {found.only: found.total}
        return ComponentStatistics(
            **_fields(found.total, with_times=True),
            tasks={
                task: TaskStatistics(**_fields(each, with_times=with_times)) for task, each in tasks.items()
            },
            streams={name: StreamStatistics(*counts) for name, counts in found.streams.items()},
        )

    def _edges(self) -> Iterator[EdgeStatistics]:
        for ends, transferred, waited in zip(
            zip(*self._ends, strict=True), self._transferred, self._waited, strict=True
        ):
            producer, stream, consumer, grouping = ends
            yield EdgeStatistics(producer, stream, consumer, grouping, transferred, 0, 0, 0.0, waited)


def snapshot_of(statistics: Statistics, *, detailed: bool) -> Steps[Snapshot]:
    """Make a snapshot; one that is ``detailed`` has the times of each task."""
    packed = yield from each_of(
        statistics.components.items(), lambda _, each: _packed_component(each, detailed=detailed)
    )
    return Snapshot(statistics, list(packed.values()), detailed=detailed)


def _packed_component(component: ComponentStatistics, *, detailed: bool) -> bytes:
    tasks = component.tasks or {}
    only = next(iter(tasks)) if len(tasks) == 1 else None
    return _ENCODER.encode(
        PackedComponent(
            _packed(component, with_times=True),
            {name: (each.emitted, each.transferred) for name, each in component.streams.items()},
            {}
            if only is not None
            else {id: _packed(each, with_times=detailed) for id, each in tasks.items()},
            only,
        )
    )
