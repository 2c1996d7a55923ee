"""A topology as a Mermaid flowchart, for Markdown files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stormlet.cli.inspecting.graphs.drawing import Drawing, Node
from stormlet.core.shortened import printable

_SPECIAL = re.compile(r"(?<![A-Za-z])[-_.,]|[^\w .,-]|(?<=[A-Za-z])[-_.,](?=[-_.,])")
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
    for (source, target, is_tracked), labels in _arrows(drawing).items():
        arrow = "-->" if is_tracked else "-.->"
        yield f'    {numbers[source]} {arrow}|"{"<br>".join(labels)}"| {numbers[target]}'
    if not all(edge.is_tracked for edge in drawing.edges):
        yield "    %% dotted: not tracked"


def _arrows(drawing: Drawing) -> dict[tuple[str, str, bool], list[str]]:
    """The labels between two components are one arrow's: of several loops, Mermaid draws one."""
    arrows: dict[tuple[str, str, bool], list[str]] = {}
    for edge in drawing.edges:
        arrows.setdefault((edge.source, edge.target, edge.is_tracked), []).append(escaped(edge.label))
    return arrows


def _label(node: Node) -> str:
    return "<br>".join((escaped(node.id), escaped(", ".join(node.details))))


def escaped(text: str) -> str:
    """The text with everything special as a character code, in Mermaid's notation. It would still take an escaped
    backslash with an ``n`` for a new line, so that something without width stands between them."""
    coded = _SPECIAL.sub(lambda match: f"#{ord(match[0])};", printable(text))
    return coded.replace("#92;", "#92;#8203;")
