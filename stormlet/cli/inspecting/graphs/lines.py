"""The lines of an SVG drawing: where they touch components, and their paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from stormlet.cli.inspecting.graphs.layout import Layout, Place, Wire

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


def loop_over(place: Place) -> str:
    """Out of the top and back into it."""
    top = place.y - NODE_HEIGHT / 2
    peak = top - LOOP_RISE * 4 / 3
    half = min(26.0, (place.right - place.left) / 4)
    out, bend_out, bend_in, back = (place.x + half * factor for factor in (1, 2, -2, -1))
    return f"M{out:.1f} {top:.1f} C{bend_out:.1f} {peak:.1f} {bend_in:.1f} {peak:.1f} {back:.1f} {top:.1f}"
