"""The places of components and subscriptions, which never change while a topology runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

import msgspec

from stormlet.core.shortened import printable
from stormlet.drawing.drawing import Drawing, Edge, Node
from stormlet.model.planning import Plan

WIDTH: Final = 164.0
HEIGHT: Final = 78.0
PITCH: Final = 108.0
LOOP_PITCH: Final = 150.0
MARGIN: Final = 26.0
LABEL: Final = 84.0
"""Room for a rate and a grouping."""
LONGEST: Final = 18
"""Characters of a name that fit."""
MOST: Final = 300
"""Components beyond which no picture helps, and its layout takes long."""


class NodePlace(msgspec.Struct, frozen=True):
    """A component, in pixels."""

    id: str
    label: str
    spout: bool
    details: str
    x: float
    y: float


class EdgePlace(msgspec.Struct, frozen=True):
    """A subscription."""

    id: str
    source: str
    target: str
    label: str
    """Stream and grouping."""
    tracked: bool
    path: str
    x: float
    """The middle of its label."""
    y: float


class Graph(msgspec.Struct, frozen=True):
    """The picture; without places if there are too many components."""

    width: float = 0.0
    height: float = 0.0
    node_width: float = WIDTH
    node_height: float = HEIGHT
    nodes: tuple[NodePlace, ...] = ()
    edges: tuple[EdgePlace, ...] = ()
    missing: str = ""
    """The reason why there is none."""


def edge_id(source: str, target: str, label: str) -> str:
    """Return the name of a subscription."""
    return f"{source} > {target}, {label}"


def graph_of(plan: Plan, drawn: Callable[[], Drawing]) -> Graph:
    """Lay a topology out, once ``drawn`` has put it in words; takes a tenth of a second for a hundred components."""
    if len(plan.tasks) > MOST:
        return Graph(missing=f"{len(plan.tasks):,} components are too many for a picture; the table has them")
    if find_spec("fast_sugiyama") is None:
        return Graph(missing="the picture needs fast-sugiyama: pip install 'stormlet[svg]'")
    drawing = drawn()
    from stormlet.drawing.layout import Wire, lay_out, line_of, loop_over, ports

    numbers = {node.id: number for number, node in enumerate(drawing.nodes)}
    wires = [Wire(numbers[edge.source], numbers[edge.target], LABEL) for edge in drawing.edges]
    layout = lay_out(
        [WIDTH] * len(numbers), wires, LOOP_PITCH if any(each.is_loop for each in wires) else PITCH
    )
    ends = ports(wires, layout)
    edges: list[EdgePlace] = []
    loops: dict[int, int] = {}
    for number, (edge, wire) in enumerate(zip(drawing.edges, wires, strict=True)):
        node = layout.components[wire.source]
        if wire.is_loop:
            above = loops[wire.source] = loops.get(wire.source, 0) + 1
            y = node.y - HEIGHT / 2 - 18 - 16 * above
            edges.append(_edge(edge, loop_over(node, HEIGHT), node.x, y))
        else:
            label = layout.labels[number]
            edges.append(_edge(edge, line_of(number, wire, layout, ends), label.x, label.y))
    nodes = [_node(node, layout.components[number].x, layout.components[number].y) for node, number in
             zip(drawing.nodes, numbers.values(), strict=True)]  # fmt: skip
    return Graph(layout.width + 2 * MARGIN, layout.height + MARGIN, nodes=tuple(nodes), edges=tuple(edges))


def _node(node: Node, x: float, y: float) -> NodePlace:
    name = printable(node.id)
    label = name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"
    return NodePlace(node.id, label, node.is_spout, ", ".join(node.details), round(x, 1), round(y, 1))


def _edge(edge: Edge, path: str, x: float, y: float) -> EdgePlace:
    return EdgePlace(
        edge_id(edge.source, edge.target, edge.label),
        edge.source,
        edge.target,
        printable(edge.label),
        edge.is_tracked,
        path,
        round(x, 1),
        round(y, 1),
    )
