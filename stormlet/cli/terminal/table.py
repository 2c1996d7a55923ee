"""A table that keeps its cursor while its rows change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

MOST: Final = 200
"""Rows that a terminal and a reader can cope with."""
Line: TypeAlias = tuple[str, Sequence[Text]]
"""The key of a row, and its cells."""


class Table(DataTable[Text]):
    """Rows by key."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._shown: list[Line] = []
        self._headings: Sequence[tuple[Text, int | None]] = ()

    @property
    def chosen(self) -> str | None:
        """The key of the row at the cursor."""
        return self._shown[self.cursor_row][0] if 0 <= self.cursor_row < len(self._shown) else None

    def show(self, headings: Sequence[tuple[Text, int | None]], lines: Iterable[Line]) -> None:
        """Show these rows; the cursor stays at its key."""
        lines = list(lines)
        if headings != self._headings:
            self._shown = []
            self.clear(columns=True)
            for place, (title, width) in enumerate(headings):
                self.add_column(title, width=width, key=str(place))
            self._headings = headings
        if [key for key, _ in lines] == [key for key, _ in self._shown]:
            self._change(lines)
        else:
            self._replace(lines)
        self._shown = lines

    def _change(self, lines: Sequence[Line]) -> None:
        for row, ((_, before), (_, now)) in enumerate(zip(self._shown, lines, strict=True)):
            for column, (old, new) in enumerate(zip(before, now, strict=True)):
                if old != new or old.spans != new.spans:
                    wide = self._headings[column][1] is None
                    self.update_cell_at(Coordinate(row, column), new, update_width=wide)

    def _replace(self, lines: Sequence[Line]) -> None:
        key, place, scroll = self.chosen, self.cursor_row, self.scroll_offset
        self.clear()
        for name, cells in lines:
            self.add_row(*cells, key=name)
        keys = [name for name, _ in lines]
        # Somebody who has not moved looks at the first ones, whichever they are.
        at = keys.index(key) if key in keys and place > 0 else min(place, len(keys) - 1)
        self.move_cursor(row=max(at, 0), scroll=False)
        self.scroll_to(scroll.x, scroll.y, animate=False)
