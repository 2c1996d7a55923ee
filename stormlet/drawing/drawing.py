"""A drawing, whatever its format: components and the subscriptions between them, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Any, cast

from stormlet.core.groupings import Custom, Fields, Grouping, PartialKey
from stormlet.core.shortened import counted
from stormlet.drawing.anchoring import anchors, tracks
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.planning import Plan
from stormlet.model.streams import StreamId, Subscription


@dataclass(frozen=True, slots=True)
class Node:
    """A component."""

    id: str
    is_spout: bool
    details: tuple[str, ...]
    """The number of its tasks, and the way in which they run if that is not the default."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A subscription."""

    source: str
    target: str
    stream: str | None
    """None for the default stream."""
    grouping: str
    is_tracked: bool
    """True if tuples can belong to a tree here (laws L8, L9, L10)."""
    closes_cycle: bool = False
    """True if it leads back, or to where it came from."""

    @property
    def label(self) -> str:
        """The grouping, after the stream if that is not the default one."""
        return self.grouping if self.stream is None else f"{self.stream}: {self.grouping}"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A topology, ready to be drawn."""

    name: str
    counts: str
    """The numbers of spouts, bolts, tasks and ackers."""
    nodes: Sequence[Node]
    """Upstream first, otherwise as declared; what forms a cycle stands together."""
    edges: Sequence[Edge]


def draw(plan: Plan) -> Drawing:
    """The drawing of a topology as it runs, or would run."""
    description = plan.description
    order = declared_order(description)
    places = {id: place for place, id in enumerate(order)}
    tracked = tracked_streams(description)
    edges = [
        _edge(each, bolt, each.source in tracked, places[bolt.id] <= places[each.source.component])
        for bolt in description.bolts.values()
        for each in bolt.inputs
    ]
    edges.sort(key=lambda edge: (places[edge.source], places[edge.target]))
    nodes = [node_of(description.components[id]) for id in order]
    return Drawing(description.name, counts_of(plan), nodes, edges)


def counts_of(plan: Plan) -> str:
    """The numbers of spouts, bolts, tasks and ackers in words."""
    numbers = {
        "spout": len(plan.description.spouts),
        "bolt": len(plan.description.bolts),
        "task": sum(map(len, plan.tasks.values())),
        "acker": len(plan.ackers),
    }
    return ", ".join(counted(number, noun) for noun, number in numbers.items())


def declared_order(description: Description) -> list[str]:
    """The components as they were declared, except that nothing stands before what is upstream of it."""
    declared = {id: place for place, id in enumerate(description.components)}
    groups = [sorted(group, key=declared.__getitem__) for group in description.in_order()]
    group_of = {id: number for number, group in enumerate(groups) for id in group}
    sorter = TopologicalSorter[int]()
    for number, group in enumerate(groups):
        sorter.add(number, *({group_of[id] for id in description.sources_of(group)} - {number}))
    sorter.prepare()
    order: list[str] = []
    ready: list[tuple[int, int]] = []
    while sorter:
        for number in sorter.get_ready():
            heappush(ready, (declared[groups[number][0]], number))
        _, following = heappop(ready)
        sorter.done(following)
        order += groups[following]
    return order


def tracked_streams(description: Description) -> set[StreamId]:
    """The streams whose tuples can belong to a tree: of spouts that track, and of bolts that anchor to such."""
    if not description.configuration.ackers:
        return set()
    consumers: dict[StreamId, list[BoltSpec]] = {}
    for bolt in description.bolts.values():
        for each in bolt.inputs:
            consumers.setdefault(each.source, []).append(bolt)
    found = {
        StreamId(spout.id, stream)
        for spout in description.spouts.values()
        for stream in spout.outputs
        if tracks(spout, stream)
    }
    waiting = list(found)
    while waiting:
        for bolt in consumers.pop(waiting.pop(), ()):
            anchored = {StreamId(bolt.id, stream) for stream in bolt.outputs if anchors(bolt, stream)}
            waiting += anchored - found
            found |= anchored
    return found


def grouping_words(grouping: Grouping) -> str:
    """``shuffle``, ``fields word, day``, ``fields by route()``, ``custom ByRegion``."""
    match grouping:
        case Custom(own):
            return f"{grouping.name} {type(own).__name__}"
        case Fields() | PartialKey() if grouping.names:
            return f"{grouping.name} {', '.join(map(str, grouping.names))}"
        case Fields() | PartialKey() if grouping.key is not None:
            return f"{grouping.name} by {_function_name(grouping.key)}"
        case _:
            return grouping.name


def _function_name(key: Callable[[object], object]) -> str:
    """The name of the function that it wraps: the topology guards key functions."""
    name = cast("Any", getattr(key, "__wrapped__", key))
    name = getattr(name, "__name__", type(name).__name__)
    return "a lambda" if name == "<lambda>" else f"{name}()"


def node_of(spec: SpoutSpec | BoltSpec) -> Node:
    """A component, with the number of its tasks and the way in which they run."""
    details = [counted(spec.parallelism, "task")]
    if isinstance(spec, BoltSpec):
        if spec.concurrency > 1:
            details.append(f"{spec.concurrency:,} at a time")
        if spec.executor == "thread":
            details.append("in threads")
        if spec.keyed:
            details.append("keeps state")
    return Node(spec.id, isinstance(spec, SpoutSpec), tuple(details))


def _edge(each: Subscription[object], bolt: BoltSpec, is_tracked: bool, closes_cycle: bool) -> Edge:
    stream = None if each.source.stream == DEFAULT_STREAM else each.source.stream
    return Edge(
        each.source.component, bolt.id, stream, grouping_words(each.grouping), is_tracked, closes_cycle
    )
