"""A drawing as text, as a Mermaid flowchart for Markdown files, and in the language of Graphviz.

The text has every component, and under it the arrows of its streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from stormlet.core.shortened import printable
from stormlet.drawing.drawing import Drawing, Edge, Node

MARKS = "▷●├└│─╌▶↺"
PLAIN_MARKS = str.maketrans(dict(zip(MARKS, [">", "*", "|", "`", "|", "-", ".", ">", "(back)"], strict=True)))
"""For output that cannot show the others."""


def as_text(drawing: Drawing, width: int) -> str:
    """The drawing, in lines that are no wider than ``width`` columns where names allow it."""
    leaving: dict[str, list[Edge]] = {node.id: [] for node in drawing.nodes}
    for edge in drawing.edges:
        leaving[edge.source].append(edge)
    blocks = ["\n".join(_block(node, leaving[node.id], width)) for node in drawing.nodes]
    return "\n\n".join((f"{printable(drawing.name)}: {drawing.counts}", *blocks, _legend(drawing))) + "\n"


def without_marks(text: str) -> str:
    """The same in ASCII, as far as the names are."""
    return text.translate(PLAIN_MARKS)


def _block(node: Node, edges: Sequence[Edge], width: int) -> Iterator[str]:
    yield f"{'▷' if node.is_spout else '●'} {printable(node.id)}  {', '.join(node.details)}".rstrip()
    longest = max((cell_len(printable(edge.label)) for edge in edges), default=0)
    for edge in edges:
        yield from _arrow(edge, longest, width, is_last=edge is edges[-1])


def _arrow(edge: Edge, longest: int, width: int, *, is_last: bool) -> Sequence[str]:
    line = "─" if edge.is_tracked else "╌"
    label = printable(edge.label)
    shaft = line * (longest - cell_len(label) + 2)
    target = printable(edge.target) + (" ↺" if edge.closes_cycle else "")
    arrow = f"  {'└' if is_last else '├'}{line} {label} {shaft}▶"
    if cell_len(arrow) + 1 + cell_len(target) <= width:
        return [f"{arrow} {target}"]
    return [
        f"  {'└' if is_last else '├'}{line} {label} {line * 2}▶",
        f"  {' ' if is_last else '│'}    {target}",
    ]


def _legend(drawing: Drawing) -> str:
    tracked = {edge.is_tracked for edge in drawing.edges}
    marks = ["▷ spout", "● bolt"]
    if True in tracked:
        marks.append("──▶ anchored")
    if False in tracked:
        marks.append("╌╌▶ not tracked")
    if any(edge.closes_cycle for edge in drawing.edges):
        marks.append("↺ closes a cycle")
    return "   ".join(marks)


_MERMAID_SPECIAL = re.compile(r"(?<![A-Za-z])[-_.,]|[^\w .,-]|(?<=[A-Za-z])[-_.,](?=[-_.,])")
"""Characters that may mean something to Mermaid, to Markdown or to HTML, or do so unless they follow a letter."""


def as_mermaid(drawing: Drawing) -> str:
    """The drawing in Mermaid's language; names are nodes' labels only, so that they may be any text."""
    return "\n".join(_mermaid_lines(drawing)) + "\n"


def _mermaid_lines(drawing: Drawing) -> Iterator[str]:
    yield "---"
    yield f"title: {json.dumps(printable(drawing.name))}"
    yield "---"
    yield "flowchart LR"
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    for node in drawing.nodes:
        opening, closing = ("([", "])") if node.is_spout else ("[", "]")
        yield f'    {numbers[node.id]}{opening}"{escaped(node.id)}<br>{escaped(", ".join(node.details))}"{closing}'
    for (source, target, is_tracked), labels in _mermaid_arrows(drawing).items():
        arrow = "-->" if is_tracked else "-.->"
        yield f'    {numbers[source]} {arrow}|"{"<br>".join(labels)}"| {numbers[target]}'
    if not all(edge.is_tracked for edge in drawing.edges):
        yield "    %% dotted: not tracked"


def _mermaid_arrows(drawing: Drawing) -> dict[tuple[str, str, bool], list[str]]:
    """The labels between two components are one arrow's: of several loops, Mermaid draws one."""
    arrows: dict[tuple[str, str, bool], list[str]] = {}
    for edge in drawing.edges:
        arrows.setdefault((edge.source, edge.target, edge.is_tracked), []).append(escaped(edge.label))
    return arrows


def escaped(text: str) -> str:
    """The text with everything special as a character code, in Mermaid's notation. It would still take an escaped
    backslash with an ``n`` for a new line, so that something without width stands between them."""
    coded = _MERMAID_SPECIAL.sub(lambda match: f"#{ord(match[0])};", printable(text))
    return coded.replace("#92;", "#92;#8203;")


def as_dot(drawing: Drawing) -> str:
    """The drawing in DOT; names are nodes' labels only, so that they may be any text."""
    return "\n".join(_dot_lines(drawing)) + "\n"


def _dot_lines(drawing: Drawing) -> Iterator[str]:
    name = f'"{_dot_escaped(drawing.name)}"'
    yield f"digraph {name} {{"
    yield f"    label={name}; labelloc=t; labeljust=l; rankdir=LR; fontname=Helvetica; fontsize=16"
    yield '    node [shape=box, style="rounded,filled", fillcolor="#f5f6f8", fontname=Helvetica, fontsize=12]'
    yield "    edge [fontname=Helvetica, fontsize=10]"
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    for node in drawing.nodes:
        label = f'label="{_dot_escaped(node.id)}\\n{_dot_escaped(", ".join(node.details))}"'
        style = ', shape=ellipse, style=filled, fillcolor="#e3f2ef"' if node.is_spout else ""
        yield f"    {numbers[node.id]} [{label}{style}]"
    for edge in drawing.edges:
        style = "" if edge.is_tracked else ", style=dashed"
        ends = f"{numbers[edge.source]} -> {numbers[edge.target]}"
        yield f'    {ends} [label="{_dot_escaped(edge.label)}"{style}]'
    if not all(edge.is_tracked for edge in drawing.edges):
        yield "    // dashed: not tracked"
    yield "}"


def _dot_escaped(text: str) -> str:
    """Graphviz reads backslash sequences in labels, and HTML entities too."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
