"""A topology as text, for terminals and logs: every component, and under it where its streams go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from stormlet.cli.inspecting.graphs.drawing import Drawing, Edge, Node
from stormlet.core.shortened import printable

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
