"""A topology as an SVG image: laid out from left to right, for light and for dark pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from stormlet.core.shortened import printable
from stormlet.drawing.drawing import Drawing, Edge, Node
from stormlet.drawing.layout import (
    LOOP_RISE,
    NODE_HEIGHT,
    Layout,
    Place,
    Wire,
    lay_out,
    line_of,
    loop_over,
    ports,
)


def shortened(text: str, length: int) -> str:
    """The text without its middle, if it is longer."""
    text = printable(text)
    return text if len(text) <= length else f"{text[: length - length // 2 - 1]}…{text[-(length // 2) :]}"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is, in pixels, whatever sans serif font it is drawn in; rather more than less."""
    narrow, wide = "iljtfrI.,:;'|()[]! ", "mwMWABCDGHKNOQRUVXYZ@%_"
    widths = {**dict.fromkeys(narrow, 0.38), **dict.fromkeys(wide, 0.84)}
    ems = sum(1.05 if east_asian_width(each) in "WF" else widths.get(each, 0.63) for each in text)
    return ems * size * (1.12 if bold else 1.0)


PITCH = 66.0
LOOP_PITCH = 118.0
"""Rows are further apart where a loop stands above a component."""
MARGIN = 32.0
TITLE_HEIGHT = 62.0
LEGEND_HEIGHT = 48.0
LEAST_NODE_WIDTH = 92.0
LONGEST_TITLE = 72
LONGEST_NAME = 32
LONGEST_LABEL = 30
LABEL_SIZE = 11.5

STYLE = """
.stormlet text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
.stormlet .page { fill: #ffffff }
.stormlet .title { fill: #111827; font-size: 17px; font-weight: 600 }
.stormlet .name { fill: #111827; font-size: 14px; font-weight: 600 }
.stormlet .detail { fill: #5b6472; font-size: 11.5px }
.stormlet .label { fill: #414a58; font-size: 11.5px }
.stormlet .spout { fill: #e2f3ef; stroke: #0f8276; stroke-width: 1.5px }
.stormlet .bolt { fill: #f4f6f9; stroke: #9aa5b4; stroke-width: 1.5px }
.stormlet .edge { fill: none; stroke: #6b7686; stroke-width: 1.5px }
.stormlet .untracked { stroke-dasharray: 5 4 }
.stormlet .head { fill: #6b7686 }
@media (prefers-color-scheme: dark) {
.stormlet .page { fill: #0f1318 }
.stormlet .title, .stormlet .name { fill: #eef1f5 }
.stormlet .detail { fill: #9aa5b4 }
.stormlet .label { fill: #bcc5d1 }
.stormlet .spout { fill: #10322e; stroke: #3ec9b6 }
.stormlet .bolt { fill: #1b212a; stroke: #5b6778 }
.stormlet .edge { stroke: #8592a3 }
.stormlet .head { fill: #8592a3 }
}
"""
"""Scoped, as an image may be part of a page. Colours are no variables: some renderers know neither those nor media
queries."""


def as_svg(drawing: Drawing) -> str:
    """The drawing as an SVG document."""
    numbers = {node.id: number for number, node in enumerate(drawing.nodes)}
    wires = [
        Wire(numbers[edge.source], numbers[edge.target], text_width(_label(edge), LABEL_SIZE) + 12)
        for edge in drawing.edges
    ]
    pitch = LOOP_PITCH if any(wire.is_loop for wire in wires) else PITCH
    layout = lay_out([_node_width(node) for node in drawing.nodes], wires, pitch)
    svg, body = _page(drawing, layout)
    _draw_edges(body, drawing, wires, layout)
    for number, node in enumerate(drawing.nodes):
        _draw_node(body, node, layout.components[number])
    indent(svg)
    return tostring(svg, encoding="unicode") + "\n"


def _page(drawing: Drawing, layout: Layout) -> tuple[Element, Element]:
    """An empty page with title and legend, and the part of it where the topology goes."""
    legend = _legend(drawing)
    title = shortened(drawing.name, LONGEST_TITLE)
    width = max(layout.width, text_width(title, 17, bold=True), legend[-1][1]) + 2 * MARGIN
    height = MARGIN + TITLE_HEIGHT + layout.height + LEGEND_HEIGHT + MARGIN / 2
    svg = Element(
        "svg", xmlns="http://www.w3.org/2000/svg", role="img", width=f"{width:.0f}", height=f"{height:.0f}"
    )
    svg.set("class", "stormlet")
    svg.set("viewBox", f"0 0 {width:.0f} {height:.0f}")
    SubElement(svg, "title").text = f"{printable(drawing.name)}: {drawing.counts}"
    SubElement(svg, "style").text = STYLE
    _define_arrow_head(svg)
    SubElement(svg, "rect", {"class": "page", "width": "100%", "height": "100%"})
    _write(svg, title, MARGIN, MARGIN + 12, "title")
    _write(svg, drawing.counts, MARGIN, MARGIN + 33, "detail")
    foot = SubElement(svg, "g", transform=f"translate({MARGIN:g} {height - MARGIN:g})")
    for element, _ in legend:
        foot.append(element)
    return svg, SubElement(svg, "g", transform=f"translate({MARGIN:g} {MARGIN + TITLE_HEIGHT:g})")


def _legend(drawing: Drawing) -> list[tuple[Element, float]]:
    """The meaning of the shapes and lines that occur, and the right end of each entry."""
    kinds = [("spout", "spout"), ("bolt", "bolt")]
    tracked = {edge.is_tracked for edge in drawing.edges}
    if True in tracked:
        kinds.append(("edge", "anchored: its spout learns of a failure"))
    if False in tracked:
        kinds.append(("edge untracked", "not tracked: nobody learns of a failure"))
    left = 0.0
    items: list[tuple[Element, float]] = []
    for look, words in kinds:
        item = Element("g", transform=f"translate({left:g} 0)")
        if look.startswith("edge"):
            _line(item, look, "M0 -4 H30")
        else:
            _shape(item, look, 0, -4, 30, 14)
        _write(item, words, 40, 0, "detail")
        left += 40 + text_width(words, LABEL_SIZE) + 22
        items.append((item, left))
    return items


def _define_arrow_head(svg: Element) -> None:
    marker = SubElement(
        SubElement(svg, "defs"), "marker",
        {"id": "stormlet-head", "viewBox": "0 0 10 10", "refX": "9.5", "refY": "5",
         "markerWidth": "9", "markerHeight": "9", "markerUnits": "userSpaceOnUse", "orient": "auto"},
    )  # fmt: skip
    SubElement(marker, "path", {"class": "head", "d": "M0 0.8 L10 5 L0 9.2 L2.4 5 Z"})


def _write(parent: Element, text: str, x: float, y: float, look: str, *, centred: bool = False) -> None:
    attributes = {"class": look, "x": f"{x:.1f}", "y": f"{y:.1f}"}
    if centred:
        attributes["text-anchor"] = "middle"
    SubElement(parent, "text", attributes).text = printable(text)


def _shape(parent: Element, look: str, left: float, middle: float, width: float, height: float) -> None:
    """A spout has round ends."""
    radius = height / 2 if look == "spout" else min(7, height / 4)
    _box(parent, look, x=left, y=middle - height / 2, width=width, height=height, rx=radius)


def _box(parent: Element, look: str, **attributes: float) -> None:
    figures = {name: f"{value:.1f}" for name, value in attributes.items()}
    SubElement(parent, "rect", {"class": look, **figures})


def _line(parent: Element, look: str, path: str, id: str = "") -> None:
    named = {"data-id": id} if id else {}
    SubElement(parent, "path", {"class": look, "d": path, "marker-end": "url(#stormlet-head)", **named})


def _draw_node(parent: Element, node: Node, place: Place) -> None:
    group = SubElement(parent, "g", {"data-id": printable(node.id)})
    SubElement(group, "title").text = printable(node.id)
    look = "spout" if node.is_spout else "bolt"
    _shape(group, look, place.left, place.y, place.right - place.left, NODE_HEIGHT)
    _write(group, shortened(node.id, LONGEST_NAME), place.x, place.y - 3, "name", centred=True)
    _write(group, _detail(node), place.x, place.y + 14, "detail", centred=True)


def _draw_edges(parent: Element, drawing: Drawing, wires: Sequence[Wire], layout: Layout) -> None:
    """All lines first, then all labels, which leave themselves room in the lines."""
    ends = ports(wires, layout)
    for number, (edge, wire) in enumerate(zip(drawing.edges, wires, strict=True)):
        node = layout.components[wire.source]
        line = loop_over(node) if wire.is_loop else line_of(number, wire, layout, ends)
        _line(parent, "edge" if edge.is_tracked else "edge untracked", line, id=_edge_id(edge))
    loops = Counter[int]()
    for number, (edge, wire) in enumerate(zip(drawing.edges, wires, strict=True)):
        if not wire.is_loop:
            _write_label(parent, edge, layout.labels[number].x, layout.labels[number].y)
        else:
            node = layout.components[wire.source]
            peak = node.y - NODE_HEIGHT / 2 - LOOP_RISE
            _write_label(parent, edge, node.x, peak - 9 - 15 * loops[wire.source])
            loops[wire.source] += 1


def _write_label(parent: Element, edge: Edge, x: float, y: float) -> None:
    group = SubElement(parent, "g")
    SubElement(group, "title").text = printable(edge.label)
    width = text_width(_label(edge), LABEL_SIZE)
    _box(group, "page", x=x - width / 2, y=y - 7, width=width, height=14)
    _write(group, _label(edge), x, y + 4, "label", centred=True)


def _node_width(node: Node) -> float:
    name = text_width(shortened(node.id, LONGEST_NAME), 14, bold=True)
    return max(LEAST_NODE_WIDTH, name + 32, text_width(_detail(node), LABEL_SIZE) + 32)


def _detail(node: Node) -> str:
    return " · ".join(("spout" if node.is_spout else "bolt", *node.details))


def _edge_id(edge: Edge) -> str:
    return printable(f"{edge.source} > {edge.target}, {edge.label}")


def _label(edge: Edge) -> str:
    return shortened(edge.label, LONGEST_LABEL)
