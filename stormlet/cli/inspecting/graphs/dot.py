"""A topology in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from stormlet.cli.inspecting.graphs.drawing import Drawing, Edge, Node
from stormlet.core.shortened import printable


def as_dot(drawing: Drawing) -> str:
    """The drawing in DOT; names are nodes' labels only, so that they may be any text."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    name = _quoted(drawing.name)
    yield f"digraph {name} {{"
    yield f"    label={name}; labelloc=t; labeljust=l; rankdir=LR; fontname=Helvetica; fontsize=16"
    yield '    node [shape=box, style="rounded,filled", fillcolor="#f5f6f8", fontname=Helvetica, fontsize=12]'
    yield "    edge [fontname=Helvetica, fontsize=10]"
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    for node in drawing.nodes:
        yield f"    {numbers[node.id]} [{_look(node)}]"
    for edge in drawing.edges:
        yield f"    {numbers[edge.source]} -> {numbers[edge.target]} [{_line(edge)}]"
    if not all(edge.is_tracked for edge in drawing.edges):
        yield "    // dashed: not tracked"
    yield "}"


def _look(node: Node) -> str:
    label = f'label="{_escaped(node.id)}\\n{_escaped(", ".join(node.details))}"'
    return f'{label}, shape=ellipse, style=filled, fillcolor="#e3f2ef"' if node.is_spout else label


def _line(edge: Edge) -> str:
    label = f"label={_quoted(edge.label)}"
    return label if edge.is_tracked else f"{label}, style=dashed"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Graphviz reads backslash sequences in labels, and HTML entities too."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
