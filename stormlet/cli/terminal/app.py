"""The terminal view: a line about the topology, what limits it, and its components."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import ContentSwitcher, DataTable, Footer, Input, Static

from stormlet.cli.terminal.asking import Server
from stormlet.cli.terminal.columns import COLUMNS, legend, short_legend
from stormlet.cli.terminal.component import Component
from stormlet.cli.terminal.picture import Row
from stormlet.cli.terminal.table import MOST, Line, Table
from stormlet.cli.terminal.watch import WINDOWS, Watch
from stormlet.cli.terminal.wiring import HEADINGS, branches, cells
from stormlet.core.shortened import counted, cut, printable

WINDOW_WORDS: Final = {"1m": "1 min", "10m": "10 min", "1h": "1 h", "all": "all"}
SMALL: Final = 16
"""Lines up to which the table needs those of others."""


class Top(App[None]):
    """A run, watched by the REST of its page."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; background: $panel; padding: 0 1; }
    #sentence { height: auto; max-height: 3; padding: 0 1; text-style: bold; }
    #trouble { height: auto; padding: 0 1; background: $error; color: $text; }
    #filter { height: 3; }
    #note { height: auto; padding: 0 1; color: $text-muted; }
    ContentSwitcher { height: 1fr; }
    #facts { height: auto; padding: 0 1 1 1; }
    #component .heading { height: auto; padding: 0 1; }
    #tasks { height: auto; max-height: 35%; margin-bottom: 1; }
    #errors { height: auto; max-height: 30%; }
    .small #sentence { max-height: 2; }
    .small #note { max-height: 1; }
    .small #filter { height: 1; border: none; }
    .small DataTable { scrollbar-size-horizontal: 0; }
    #trace { height: 1fr; min-height: 4; padding: 0 1; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("space", "pause", "Pause"),
        Binding("g", "graph", "Graph/table"),
        Binding("greater_than_sign,full_stop", "sort(1)", "Sort by next", key_display=">"),
        Binding("less_than_sign,comma", "sort(-1)", "previous", key_display="<"),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("w", "window", "Window"),
        Binding("y", "system", "System"),
        Binding("t", "topology", "Topology"),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.seen = Watch(server)
        self.paused = False
        self.as_graph = False
        self.with_system = False
        self.sorted_by: tuple[int, bool] | None = None
        """The column, and True if the largest come first."""
        self._is_small = False
        self._wake = asyncio.Event()
        self._table, self._component = Table("components"), Component()
        self._head, self._sentence, self._trouble = (
            Static(id="head"),
            Static(id="sentence"),
            Static(id="trouble"),
        )
        self._note = Static(id="note")
        self._filter = Input(id="filter", placeholder="Filter by name; Enter keeps it, Escape drops it")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._head
        yield self._sentence
        yield self._trouble
        yield self._filter
        with ContentSwitcher(initial="components"):
            yield self._table
            yield self._component
        yield self._note
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask."""
        self._filter.display = False
        self._table.focus()
        self.draw()
        self.run_worker(self._keep_looking())

    def on_resize(self, event: Resize) -> None:
        """Give the table the lines that it needs."""
        self._is_small = event.size.height <= SMALL
        self.screen.set_class(self._is_small, "small")
        self.draw()

    async def _keep_looking(self) -> None:
        while True:
            self._wake.clear()
            if not self.paused or self.seen.turned:
                await self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), None if self.paused else self.seen.poll)

    async def look(self) -> None:
        """Ask once, and show the answer."""
        if self.as_graph:
            await self.seen.draw_graph()
        await self.seen.look()
        self.draw()

    # Drawing.

    def draw(self) -> None:
        """Show the last picture."""
        about = self.seen.picture.get("about")
        self._head.update(self._headline(about))
        self._draw_sentence(about)
        self._trouble.update(Text(printable(self.seen.trouble)))
        self._trouble.display = bool(self.seen.trouble)
        opened = self.seen.component
        if opened:
            self._component.show(opened, self.seen.picture)
            self._note.update(Text("Tab goes to the other table, Escape back to all components"))
        elif self.seen.picture:
            self._draw_components()

    def _headline(self, about: Any) -> Text:
        if about is None:
            return Text("stormlet top", "bold")
        parts = [
            (cut(printable(about["name"]), 40), "bold"),
            (about["state"], "bold red" if about["crash"] else ""),
            (f"since {datetime.fromisoformat(about['began']).astimezone():%Y-%m-%d %H:%M:%S}", ""),
            (f"{about['pending']:,} pending", ""),
            (counted(about["dead_letters"], "dead letter"), ""),
            (f"window {WINDOW_WORDS[self.seen.window]}", ""),
        ]
        if len(self.seen.others) > 1:
            # Of two with one name the id tells which it is.
            which = "" if about["id"] == about["name"] else f"{about['id']}, "
            parts.insert(1, (f"{which}one of {len(self.seen.others)}", ""))
        if self.paused:
            parts.append((" PAUSED ", "reverse"))
        return Text("   ").join(Text(*each) for each in parts)

    def _draw_sentence(self, about: Any) -> None:
        words = "" if about is None else about["crash"] or about["sentence"] or "nothing limits it"
        self._sentence.update(Text(cut(words, 500), "red" if about and about["crash"] else ""))

    def _draw_components(self) -> None:
        graph = self.seen.graph if self.as_graph else None
        if graph and not graph["missing"]:
            lines = self._branches(graph)
            self._table.show(HEADINGS, lines[:MOST])
            shown, total = min(len(lines), MOST), len(lines)
            words = ""
        else:
            rows = self._rows()
            columns = [(self._title(place), each.width) for place, each in enumerate(COLUMNS)]
            lines = [(each["id"], [column.show(each) for column in COLUMNS]) for each in rows[:MOST]]
            self._table.show(columns, lines)
            shown, total = len(lines), len(rows)
            words = printable(graph["missing"]) if graph else self._sort_words()
        more = "" if shown == total else f"{shown} of {total:,} shown; sort or filter to see others."
        if not total and self._filter.value:
            more = cut(f"No component has {self._filter.value!r} in its name.")
        self._note.update(self._note_of(more, words))

    def _note_of(self, *words: str) -> Text:
        said = [each for each in words if each]
        if self._is_small:
            return Text(said[0], no_wrap=True, overflow="ellipsis") if said else short_legend()
        return Text("  ").join([*map(Text, said), legend()])

    def _branches(self, graph: Any) -> list[Line]:
        picture = self.seen.picture
        found = branches([each["id"] for each in graph["nodes"]], graph["edges"])
        return [(each.key, cells(each, picture.component(each.component), picture)) for each in found]

    def _rows(self) -> Sequence[Row]:
        wanted = self._filter.value.lower()
        rows = [
            row
            for row in self.seen.picture.rows("c/")
            if wanted in row["id"].lower() and (self.with_system or row["kind"] != "acker")
        ]
        if self.sorted_by is not None:
            column, down = self.sorted_by
            rows.sort(key=COLUMNS[column].order, reverse=down)
        return rows

    def _title(self, place: int) -> Text:
        column = COLUMNS[place]
        mark = (
            "" if self.sorted_by is None or self.sorted_by[0] != place else "▼" if self.sorted_by[1] else "▲"
        )
        return Text(
            f"{mark}{column.title}",
            "reverse" if mark else "",
            justify="right" if column.is_number else "left",
        )

    def _sort_words(self) -> str:
        if self.sorted_by is None:
            return ""
        column = COLUMNS[self.sorted_by[0]]
        return f"{column.title}: {column.meaning}."

    # Keys.

    @on(DataTable.RowSelected, "#components")
    def open_chosen(self) -> None:
        """Open a component."""
        chosen = self._table.chosen
        if chosen is None:
            return
        graph = self.seen.graph if self.as_graph else None
        if graph and not graph["missing"]:
            chosen = next((each["target"] for each in graph["edges"] if each["id"] == chosen), chosen)
        self._open(chosen)

    @on(DataTable.HeaderSelected, "#components")
    def sort_by_heading(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; once more, the other way round."""
        if not self.as_graph:
            self._sort(event.column_index)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what has that name."""
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on with the table."""
        self._filter.display = bool(self._filter.value)
        self._table.focus()

    def action_pause(self) -> None:
        """Let the picture stand, or go on."""
        self.paused = self.seen.stands = not self.paused
        self._redraw()

    def action_graph(self) -> None:
        """Show the streams, or the table."""
        if not self.seen.component:
            self.as_graph = not self.as_graph
            self._redraw()

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or the one before."""
        if not self.seen.component:
            at = (0 if step > 0 else len(COLUMNS)) if self.sorted_by is None else self.sorted_by[0]
            self.as_graph, self.sorted_by = False, None
            self._sort((at + step) % len(COLUMNS))

    def action_reverse(self) -> None:
        """Sort the other way round."""
        if self.sorted_by is not None:
            self._sort(self.sorted_by[0])

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        if not self.seen.component:
            self.as_graph, self._filter.display = False, True
            self._filter.focus()
            self.draw()

    def action_window(self) -> None:
        """Look at another span of time."""
        self.seen.turn(window=WINDOWS[(WINDOWS.index(self.seen.window) + 1) % len(WINDOWS)])
        self._redraw()

    def action_system(self) -> None:
        """Show the ackers, or hide them."""
        self.with_system = not self.with_system
        self.draw()

    async def action_topology(self) -> None:
        """Look at the next topology of the page."""
        await self.seen.turn_to_next()
        self._open(self.seen.component)

    def action_leave(self) -> None:
        """Leave the filter or the component."""
        if self._filter.has_focus or (self._filter.value and not self.seen.component):
            self._filter.value, self._filter.display = "", False
            self._table.focus()
        elif self.seen.component:
            self._open("")

    def _open(self, component: str) -> None:
        if component != self.seen.component:
            self.seen.turn(component=component)
        self.query_one(ContentSwitcher).current = "component" if component else "components"
        if component:
            self._component.focus_first()
        else:
            self._table.focus()
        self._redraw()

    def _sort(self, column: int) -> None:
        same = self.sorted_by is not None and self.sorted_by[0] == column
        # Of numbers the largest first.
        self.sorted_by = (column, not self.sorted_by[1] if same and self.sorted_by else column > 0)
        self.draw()

    def _redraw(self) -> None:
        self._wake.set()
        self.draw()
