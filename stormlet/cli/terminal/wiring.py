"""Components in the order of the streams between them: each below what it takes from, as branches of trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from stormlet.cli.terminal.columns import level, name_of, percent, shares_of, shown_name
from stormlet.cli.terminal.picture import Picture, Row
from stormlet.cli.units import rate
from stormlet.core.shortened import cut

HEADINGS: Final = (
    (Text("Components below what they take from"), None),
    (Text("Stream"), None),
    (Text("Rate", justify="right"), 8),
    (Text("Queue"), 11),
    (Text("Waited", justify="right"), 7),
    (Text("Time"), 10),
)


@dataclass(frozen=True, slots=True)
class Branch:
    """One line: a component, by the stream that leads to it."""

    key: str
    component: str
    lines: str
    """The lines that lead to it."""
    edge: Mapping[str, Any] | None
    """None for a component that takes from nobody."""
    again: bool
    """True if its own branches are drawn elsewhere."""


def branches(components: Sequence[str], edges: Sequence[Mapping[str, Any]]) -> list[Branch]:
    """Return a line for each stream. A component that takes from several is drawn with its branches once, the first
    time. ``components`` are in the order of the streams."""
    below: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in edges:
        below[each["source"]].append(each)
    takers = {each["target"] for each in edges if each["source"] != each["target"]}
    drawn = set[str]()
    found = list[Branch]()
    # What is left when all roots are drawn stands in circles alone.
    for root in sorted(components, key=lambda id: id in takers):
        if root not in drawn:
            found += _drawn(root, below, drawn)
    return found


def _drawn(root: str, below: Mapping[str, Sequence[Mapping[str, Any]]], drawn: set[str]) -> Iterator[Branch]:
    # Without recursion, as a chain of a thousand bolts is legal.
    todo: list[tuple[str, str, str, Mapping[str, Any] | None]] = [(root, "", "", None)]
    while todo:
        id, lines, margin, edge = todo.pop()
        again = id in drawn
        yield Branch(id if edge is None else str(edge["id"]), id, lines, edge, again)
        if not again:
            drawn.add(id)
            further = below.get(id, ())
            last = len(further) - 1
            todo += reversed(
                [
                    (
                        str(each["target"]),
                        margin + ("└─ " if place == last else "├─ "),
                        margin + ("   " if place == last else "│  "),
                        each,
                    )
                    for place, each in enumerate(further)
                ]
            )


def cells(branch: Branch, row: Row | None, picture: Picture) -> list[Text]:
    """Return the line of a component."""
    lines = (branch.lines if len(branch.lines) < 60 else f"… {branch.lines[-3:]}", "bright_black")
    name = Text(shown_name(branch.component)) if row is None else name_of(row)
    if branch.again:
        name.append("  (its branches: see above)", "bright_black")
    head = Text.assemble(lines, name)
    own = row or {}
    if branch.edge is None:
        return [head, Text(), _rate(own.get("rate")), Text(), Text(), shares_of(own)]
    edge = picture.edge(str(branch.edge["id"]))
    waited = Text(
        percent(edge.get("waited")), "red" if (edge.get("waited") or 0) > 0.5 else "", justify="right"
    )
    stream = Text(cut(str(branch.edge["label"]), 30))
    return [head, stream, _rate(edge.get("rate")), level(edge.get("fill")), waited, shares_of(own)]


def _rate(value: float | None) -> Text:
    return Text("" if value is None else rate(value), justify="right")
