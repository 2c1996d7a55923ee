"""The places of everything in a drawing, in columns from left to right, after Sugiyama; and the paths of its lines.

``fast_sugiyama`` ranks, orders and places. Three things are done around it. Cycles are opened beforehand, as it
takes none. Every edge gets a vertex of its own, for its label: so no label lies on a component or on another
label. And as it knows one size for all vertices, it gets the distance of the rows alone, while the columns
become as wide as what stands in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TypeAlias

from fast_sugiyama import from_edges

COLUMN_GAP = 36.0


@dataclass(frozen=True, slots=True)
class Wire:
    """An edge to be laid out: from and to which component, by number, and how wide its label is."""

    source: int
    target: int
    width: float

    @property
    def is_loop(self) -> bool:
        """True if it leads to where it came from."""
        return self.source == self.target


@dataclass(frozen=True, slots=True)
class Place:
    """Room in a row, for a component, for a label, or for an edge that passes; and the column it is part of."""

    left: float
    right: float
    y: float
    """The middle."""
    column_left: float
    column_right: float

    @property
    def x(self) -> float:
        """The middle."""
        return (self.left + self.right) / 2


@dataclass(slots=True)
class Layout:
    """The places of everything, in pixels from the top left."""

    components: dict[int, Place] = field(default_factory=dict[int, Place])
    """By number. Those of one column are equally wide."""
    labels: dict[int, Place] = field(default_factory=dict[int, Place])
    """By the number of the wire; loops have none."""
    routes: dict[int, list[Place]] = field(default_factory=dict[int, list[Place]])
    """By the number of the wire: what it passes on its way, its label among that."""
    width: float = 0.0
    height: float = 0.0


def lay_out(widths: Sequence[float], wires: Sequence[Wire], pitch: float) -> Layout:
    """Lay out components of these widths, in rows that are at least ``pitch`` apart.

    The components come upstream first: a wire to one that comes earlier leads back, from right to left.
    """
    layout = Layout()
    for members in islands(len(widths), wires):
        inside = [n for n, wire in enumerate(wires) if wire.source in members and not wire.is_loop]
        _Island(members, inside, widths, wires, pitch).add_to(layout)
    return layout


def islands(count: int, wires: Sequence[Wire]) -> list[list[int]]:
    """The components that hang together."""
    island_of = [[number] for number in range(count)]
    for wire in wires:
        mine, other = island_of[wire.source], island_of[wire.target]
        if mine is not other:
            mine.extend(other)
            for number in other:
                island_of[number] = mine
    unique = {id(island): sorted(island) for island in island_of}
    return sorted(unique.values())


@dataclass(frozen=True, slots=True)
class _Island:
    """Components that hang together. Its vertices: the members, then the labels of its wires, then what the
    library adds where an edge passes a column."""

    members: Sequence[int]
    inside: Sequence[int]
    """The numbers of its wires."""
    widths: Sequence[float]
    wires: Sequence[Wire]
    pitch: float

    def add_to(self, layout: Layout) -> None:
        """Put it below what is there."""
        first_label = len(self.members)
        grid = _Grid(*_solve(self._edges(), self.pitch)) if self.inside else _Grid({0: (0, 0.0)}, {})
        places = grid.upright(first_label).places(self._sizes(), first_label, self.pitch, layout.height)
        layout.components |= {number: places[vertex] for vertex, number in enumerate(self.members)}
        for label, number in enumerate(self.inside, first_label):
            route = [places[vertex] for vertex in grid.way_through(label, first_label)]
            leads_back = self.wires[number].target < self.wires[number].source
            layout.routes[number] = route[::-1] if leads_back else route
            layout.labels[number] = places[label]
        layout.width = max(layout.width, *(place.column_right for place in places.values()))
        layout.height = max(place.y for place in places.values()) + self.pitch / 2

    def _edges(self) -> list[tuple[int, int]]:
        vertex_of = {number: vertex for vertex, number in enumerate(self.members)}
        edges: list[tuple[int, int]] = []
        for label, number in enumerate(self.inside, len(self.members)):
            ends = sorted((vertex_of[self.wires[number].source], vertex_of[self.wires[number].target]))
            edges += [(ends[0], label), (label, ends[1])]
        return edges

    def _sizes(self) -> list[float]:
        return [
            *(self.widths[number] for number in self.members),
            *(self.wires[number].width for number in self.inside),
        ]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The places that the library found."""

    positions: Mapping[int, tuple[int, float]]
    """Column and y of every vertex."""
    links: Mapping[int, int]
    """The successor of each vertex that has one."""

    def way_through(self, label: int, first: int) -> list[int]:
        """The vertices that an edge passes, from its source to its target; ``first`` is the first label."""
        before = {successor: vertex for vertex, successor in self.links.items() if vertex >= first}
        way = [label]
        while way[0] in before:
            way.insert(0, before[way[0]])
        while self.links[way[-1]] >= first:
            way.append(self.links[way[-1]])
        return way

    def upright(self, components: int) -> _Grid:
        """Upside down if more of the components would then stand in the order of their numbers."""
        order = 0
        for (column, y), (other, other_y) in combinations([self.positions[n] for n in range(components)], 2):
            if column == other:
                order += 1 if y < other_y else -1
        if order >= 0:
            return self
        return _Grid({vertex: (column, -y) for vertex, (column, y) in self.positions.items()}, self.links)

    def places(
        self, sizes: Sequence[float], components: int, pitch: float, height: float
    ) -> dict[int, Place]:
        """Turn columns and rows into room below this height; the first vertices are the components."""
        places: dict[int, Place] = {}
        top = min(y for _, y in self.positions.values()) - pitch / 2
        left = 0.0
        for column in range(1 + max(column for column, _ in self.positions.values())):
            vertices = [vertex for vertex, (own, _) in self.positions.items() if own == column]
            widths = {vertex: sizes[vertex] if vertex < len(sizes) else 0.0 for vertex in vertices}
            common = max((width for vertex, width in widths.items() if vertex < components), default=0.0)
            right = left + max(widths.values())
            for vertex, width in widths.items():
                half = (common if vertex < components else width) / 2
                middle = (left + right) / 2
                y = self.positions[vertex][1] - top + height
                places[vertex] = Place(middle - half, middle + half, y, left, right)
            left = right + COLUMN_GAP
        return places


def _solve(
    edges: Sequence[tuple[int, int]], pitch: float
) -> tuple[dict[int, tuple[int, float]], dict[int, int]]:
    (solved,) = from_edges(edges, vertex_spacing=pitch, dummy_vertices=True, dummy_size=pitch)
    placed, _, _, links = solved
    bottom = max(y for _, (_, y) in placed)
    positions = {int(vertex): (round((bottom - y) / pitch), float(x)) for vertex, (x, y) in placed}
    return positions, {int(source): int(target) for source, target in links or ()}


NODE_HEIGHT = 46.0
PORT_GAP = 9.0
MOST_PORTS = 4
LOOP_RISE = 30.0

Ends: TypeAlias = dict[tuple[int, bool], float]
"""By wire and whether it is its target: at which height it touches the component."""


def ports(wires: Sequence[Wire], layout: Layout) -> Ends:
    """Spread the wires along the sides of the components, in the order of where they come from or go to; many
    meet in one point."""
    sides = defaultdict[tuple[int, bool], list[tuple[float, int, bool]]](list)
    for number, route in layout.routes.items():
        wire = wires[number]
        forward = wire.source < wire.target
        sides[wire.source, forward].append((route[0].y, number, False))
        sides[wire.target, not forward].append((route[-1].y, number, True))
    ends: Ends = {}
    for (component, _), touching in sides.items():
        gap = PORT_GAP if len(touching) <= MOST_PORTS else 0.0
        first = layout.components[component].y - gap * (len(touching) - 1) / 2
        for place, (_, number, is_target) in enumerate(sorted(touching)):
            ends[number, is_target] = first + gap * place
    return ends


def line_of(number: int, wire: Wire, layout: Layout, ends: Ends) -> str:
    """Straight through columns, curved between them."""
    source, target = layout.components[wire.source], layout.components[wire.target]
    stops = [(source, ends[number, False]), *((place, place.y) for place in layout.routes[number])]
    forward = wire.source < wire.target
    x = source.right if forward else source.left
    steps = [f"M{x:.1f} {ends[number, False]:.1f}"]
    for (before, from_y), (after, to_y) in pairwise([*stops, (target, ends[number, True])]):
        start = before.column_right if forward else before.column_left
        end = after.column_left if forward else after.column_right
        middle = (start + end) / 2
        steps.append(_straight(x, start))
        steps.append(f"C{middle:.1f} {from_y:.1f} {middle:.1f} {to_y:.1f} {end:.1f} {to_y:.1f}")
        x = end
    steps.append(_straight(x, target.left if forward else target.right))
    return " ".join(filter(None, steps))


def _straight(start: float, end: float) -> str:
    """Nothing where there is no way to go: a line without length has no direction for the arrow head."""
    return f"H{end:.1f}" if abs(end - start) >= 0.1 else ""


def loop_over(place: Place, height: float = NODE_HEIGHT) -> str:
    """Out of the top and back into it."""
    top = place.y - height / 2
    peak = top - LOOP_RISE * 4 / 3
    half = min(26.0, (place.right - place.left) / 4)
    out, bend_out, bend_in, back = (place.x + half * factor for factor in (1, 2, -2, -1))
    return f"M{out:.1f} {top:.1f} C{bend_out:.1f} {peak:.1f} {bend_in:.1f} {peak:.1f} {back:.1f} {top:.1f}"
