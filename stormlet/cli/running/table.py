"""The table of components: aligned, and as much of it as there is room for.

Its lines are composed directly: rich's own tables take ten times as long, and this one is drawn four times a
second in the loop of the topology.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from stormlet.cli.output import bar, fitted
from stormlet.cli.running.meter import Row
from stormlet.cli.units import latency, rate, short_count
from stormlet.core.shortened import printable

BAR = 4
"""Cells of a queue's bar."""

Count = Callable[[float], str]
"""The way in which counts are written: exact or short."""


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


CELLS: Mapping[str, Callable[[Row, Count], Text]] = {
    "emitted": lambda row, count: Text(count(row.emitted)),
    "executed": lambda row, count: Text("" if row.is_spout else count(row.executed)),
    "per s": lambda row, count: Text(rate(row.per_second)),
    "acked": lambda row, count: Text(count(row.acked)),
    "failed": lambda row, count: Text(count(row.failed), style="bold red" if row.failed else ""),
    "queue": _queue,
    "latency": lambda row, count: Text(latency(row.latency)),
}
"""The figures of a component, by the title of their column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures: one of :data:`CELLS`."""

    title: str
    rank: int
    """The columns of the highest ranks are left out if there is no room for all."""
    least: int = 6
    """Its width in characters at least, so that it does not move while figures grow."""


LIVE = (
    Column("executed", 4),
    Column("per s", 0),
    Column("acked", 5),
    Column("failed", 1),
    Column("queue", 2, BAR + 7),
    Column("latency", 3, 7),
)
CLOSING = tuple(
    map(Column, ("emitted", "executed", "acked", "failed", "per s", "latency"), (3, 2, 1, 0, 4, 5))
)

GAP = 2
LEAST_NAME = 10
NAMES = "component"


def live_table(rows: Sequence[Row], width: int) -> list[Text]:
    """The table while the topology runs."""
    return _Table(rows, LIVE, short_count).within(width)


def closing_table(rows: Sequence[Row], width: int | None) -> list[Text]:
    """The table at the end; the counts are exact where there is room for that. A ``width`` of None is any."""
    exact = _Table(rows, CLOSING, "{:,.0f}".format)
    if width is None or exact.width <= width:
        return exact.within(exact.width)
    return _Table(rows, CLOSING, short_count).within(width)


class _Table:
    def __init__(self, rows: Sequence[Row], columns: Sequence[Column], count: Count) -> None:
        self._names = [printable(row.id) for row in rows]
        self._longest = max(map(cell_len, (NAMES, *self._names)))
        self._cells = {column: [CELLS[column.title](row, count) for row in rows] for column in columns}
        self._widths = {
            column: max(column.least, len(column.title), *(cell.cell_len for cell in cells))
            for column, cells in self._cells.items()
        }

    @property
    def width(self) -> int:
        """Of the whole table."""
        return self._longest + self._taken_by(self._widths)

    def within(self, width: int) -> list[Text]:
        """Its lines with the columns for which there is room, the header first."""
        columns = self._those_with_room(width - min(self._longest, LEAST_NAME))
        name_width = min(self._longest, max(width - self._taken_by(columns), 1))
        header = self._line(NAMES, name_width, [(column, Text(column.title)) for column in columns])
        header.stylize("dim")
        lines = [
            self._line(name, name_width, [(column, self._cells[column][number]) for column in columns])
            for number, name in enumerate(self._names)
        ]
        return [header, *lines]

    def _those_with_room(self, width: int) -> Sequence[Column]:
        columns = list(self._cells)
        while columns and self._taken_by(columns) > width:
            columns.remove(max(columns, key=lambda column: column.rank))
        return columns

    def _taken_by(self, columns: Collection[Column]) -> int:
        return sum(GAP + self._widths[column] for column in columns)

    def _line(self, name: str, name_width: int, cells: Iterable[tuple[Column, Text]]) -> Text:
        """The name to the left, figures to the right."""
        line = Text(set_cell_size(fitted(name, name_width), name_width), no_wrap=True)
        for column, cell in cells:
            line.append(" " * (GAP + self._widths[column] - cell.cell_len))
            line.append_text(cell)
        return line
