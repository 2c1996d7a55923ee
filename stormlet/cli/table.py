"""The table of components: aligned, and as much of it as there is room for.

Its lines are composed directly: rich's own tables take ten times as long, and this one is drawn four times a
second in the loop of the topology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from stormlet.cli.meter import Row
from stormlet.cli.units import latency, rate, short_count

GAP = 2
LEAST_NAME = 10
BAR = 4

Count = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures."""

    title: str
    cell: Callable[[Row, Count], Text]
    rank: int
    """Where there is no room for all, those of the highest ranks are left out."""
    least: int = 6
    """Its width in characters at least, so that it does not move while figures grow."""


def _emitted(row: Row, count: Count) -> Text:
    return Text(count(row.emitted))


def _executed(row: Row, count: Count) -> Text:
    return Text("" if row.is_spout else count(row.executed))


def _per_second(row: Row, count: Count) -> Text:
    return Text(rate(row.per_second))


def _acked(row: Row, count: Count) -> Text:
    return Text(count(row.acked))


def _failed(row: Row, count: Count) -> Text:
    return Text(count(row.failed), style="bold red" if row.failed else "")


def _queue(row: Row, count: Count) -> Text:
    text = Text(count(row.waiting).rjust(6))
    fill = row.fill
    if fill is None:
        return text
    return Text.assemble(bar(fill, BAR, _colour(row, fill)), " ", text)


def _colour(row: Row, fill: float) -> str:
    """A full queue holds others up; that a spout has as much pending as it may is as it should be."""
    if row.is_spout:
        return "cyan"
    return "green" if fill < 0.5 else "yellow" if fill < 0.95 else "red"


def _latency(row: Row, count: Count) -> Text:
    return Text(latency(row.latency))


LIVE = (
    Column("executed", _executed, 4),
    Column("per s", _per_second, 0),
    Column("acked", _acked, 5),
    Column("failed", _failed, 1),
    Column("queue", _queue, 2, BAR + 7),
    Column("latency", _latency, 3, 7),
)
CLOSING = (
    Column("emitted", _emitted, 3),
    Column("executed", _executed, 2),
    Column("acked", _acked, 1),
    Column("failed", _failed, 0),
    Column("per s", _per_second, 4),
    Column("latency", _latency, 5),
)


def live_table(rows: Sequence[Row], width: int) -> list[Text]:
    """The table while the topology runs."""
    return list(_lines(rows, LIVE, short_count, width))


def closing_table(rows: Sequence[Row], width: int | None) -> list[Text]:
    """The table at the end; the counts are exact where there is room for that. A ``width`` of None is any."""
    if width is None:
        width = 1 << 30
    exact = list(_lines(rows, CLOSING, _exact, width, drop=False))
    if max(map(_width, exact)) <= width:
        return exact
    return list(_lines(rows, CLOSING, short_count, width))


def bar(fraction: float, width: int, colour: str) -> Text:
    """A horizontal bar whose parts differ in shape, not in colour alone."""
    halves = round(fraction * width * 2)
    if 0 < fraction < 1:  # the first and the last bit show
        halves = min(max(halves, 1), width * 2 - 1)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text.assemble((filled, colour), ("─" * (width - len(filled)), "dim"))


def printable(text: str) -> str:
    """One line of it, without what would move a terminal's cursor."""
    return "".join(each if each.isprintable() else " " for each in text)


def fitted(text: str, width: int) -> str:
    """The text in at most so many cells, with an ellipsis where it was longer."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _exact(count: float) -> str:
    return f"{count:,.0f}"


def _width(line: Text) -> int:
    return line.cell_len


def _lines(
    rows: Sequence[Row], columns: Sequence[Column], count: Count, width: int, *, drop: bool = True
) -> Iterator[Text]:
    names = [printable(row.id) for row in rows]
    longest = max(map(cell_len, ("component", *names)))
    cells = {column: [column.cell(row, count) for row in rows] for column in columns}
    widths = {column: _column_width(column, each) for column, each in cells.items()}
    if drop:
        widths = _those_with_room(widths, width - min(longest, LEAST_NAME))
    name_width = min(longest, max(width - sum(widths.values()) - GAP * len(widths), 1)) if drop else longest
    header = _line("component", name_width, [(Text(each.title), widths[each]) for each in widths])
    header.stylize("dim")
    yield header
    for number, name in enumerate(names):
        yield _line(name, name_width, [(cells[each][number], widths[each]) for each in widths])


def _column_width(column: Column, cells: Sequence[Text]) -> int:
    return max(column.least, len(column.title), *(cell.cell_len for cell in cells))


def _those_with_room(widths: dict[Column, int], width: int) -> dict[Column, int]:
    kept = dict(widths)
    while kept and sum(kept.values()) + GAP * len(kept) > width:
        del kept[max(kept, key=lambda column: column.rank)]
    return kept


def _line(name: str, name_width: int, cells: Sequence[tuple[Text, int]]) -> Text:
    """The name to the left, figures to the right."""
    line = Text(set_cell_size(fitted(name, name_width), name_width), no_wrap=True)
    for cell, width in cells:
        line.append(" " * (GAP + width - cell.cell_len))
        line.append_text(cell)
    return line
