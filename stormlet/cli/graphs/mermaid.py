"""A topology as a Mermaid flowchart, for Markdown files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stormlet.cli.graphs.drawing import Drawing, Node
from stormlet.cli.inspection import printable

_SPECIAL = re.compile(r"(?<![A-Za-z])[-_.,]|[^\w .,-]|(?<=[A-Za-z])[-_.,](?=[-_.,])", re.ASCII)
"""What may mean something to Mermaid, to Markdown or to HTML, or does so after something else than a letter."""


def as_mermaid(drawing: Drawing) -> str:
    """The drawing in Mermaid's language; names are nodes' labels only, so that they may be any text."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield "---"
    yield f"title: {json.dumps(printable(drawing.name))}"
    yield "---"
    yield "flowchart LR"
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    for node in drawing.nodes:
        opening, closing = ("([", "])") if node.is_spout else ("[", "]")
        yield f'    {numbers[node.id]}{opening}"{_label(node)}"{closing}'
    for edge in drawing.edges:
        arrow = "-->" if edge.is_tracked else "-.->"
        yield f'    {numbers[edge.source]} {arrow}|"{escaped(edge.label)}"| {numbers[edge.target]}'
    if not all(edge.is_tracked for edge in drawing.edges):
        yield "    %% dotted: not tracked"


def _label(node: Node) -> str:
    return "<br>".join((escaped(node.id), escaped(", ".join(node.details))))


def escaped(text: str) -> str:
    """The text with everything special as a character code, in Mermaid's notation."""
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", printable(text))
