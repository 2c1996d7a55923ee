"""One component: its figures, tasks, and errors with the traceback of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import DataTable, Static

from stormlet.cli.terminal.columns import (
    COLUMNS,
    MOODS,
    SHARES,
    Column,
    level,
    name_of,
    percent,
    shares_of,
    shown_name,
)
from stormlet.cli.terminal.picture import Picture, Row
from stormlet.cli.terminal.table import MOST, Table
from stormlet.cli.units import latency, rate, short_count
from stormlet.core.shortened import counted, cut, escaped, printable

TASKS: Final = [each for each in COLUMNS if each.name not in ("tasks", "lag", "dead_letters")]
ERRORS: Final = (
    (Text("Count", justify="right"), 8),
    (Text("Last"), 19),
    (Text("Task"), None),
    (Text("In"), None),
    (Text("Error"), None),
)
NO_FACTS: Final[Mapping[str, Any]] = {"inputs": ()}
KINDS: Final = {"spout": ("complete",), "bolt": ("execute", "process"), "acker": ("execute", "process")}


class Component(Vertical):
    """The part of the screen that shows one component."""

    def __init__(self) -> None:
        super().__init__(id="component")
        self._failures: Sequence[Mapping[str, Any]] = ()
        self._tasks, self._errors = Table("tasks"), Table("errors")
        self._facts, self._traceback = Static(id="facts"), Static(id="traceback")
        self._count = Static(id="failures", classes="heading")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._facts
        yield self._tasks
        yield self._count
        yield self._errors
        yield VerticalScroll(self._traceback, id="trace")

    def focus_first(self) -> None:
        """Let the keys go to the errors, or to the tasks of what has none."""
        (self._errors if self._failures else self._tasks).focus()

    def show(self, id: str, picture: Picture) -> None:
        """Show the last values of a component: of one whose own were not told yet, those that all components have."""
        row, is_told = picture.component(id), picture.opened == id
        facts = picture.get("facts", NO_FACTS) if is_told else NO_FACTS
        self._facts.update(Text(shown_name(id)) if row is None else facts_of(row, facts))
        rows = picture.rows("t/") if is_told else ()
        tasks = [(each["id"], [column.show(each) for column in TASKS]) for each in rows]
        self._tasks.show([heading_of(each) for each in TASKS], tasks[:MOST])
        had, self._failures = self._failures, picture.get("failures", ()) if is_told else ()
        # A spout whose messages have failed elsewhere has none.
        none = "No errors of its own." if is_told else "Its tasks and errors were not told yet."
        self._count.update(Text("Errors, the latest first" if self._failures else none, "bold"))
        self._errors.display = bool(self._failures)
        self._errors.show(ERRORS, [(_key(each), _cells(each)) for each in self._failures])
        self._show_traceback()
        if bool(had) != bool(self._failures) and self.has_focus_within:
            self.focus_first()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another error was chosen."""
        self._show_traceback()

    def _show_traceback(self) -> None:
        chosen = self._errors.chosen
        found = next((each for each in self._failures if _key(each) == chosen), None)
        self._traceback.update(Text() if found is None else traceback_of(found))


def heading_of(column: Column) -> tuple[Text, int | None]:
    """Return the heading of a column of tasks, with its width."""
    title = "Task" if column.name == "id" else column.title
    return Text(title, justify="right" if column.is_number else "left"), column.width


def facts_of(row: Row, facts: Mapping[str, Any]) -> Text:
    """Return what one component is and does now."""
    _, colour, words = MOODS.get(row["mood"], ("?", "", row["mood"]))
    spout = row["kind"] == "spout"
    done = "emitted" if spout else "executed"
    numbers = [f"{rate(row['rate'])}/s"]
    numbers += [f"{short_count(row[each])} {each}" for each in (done, "acked", "failed", "pending")]
    numbers += [counted(row["restarts"], "restart", show=short_count)] if row["restarts"] else []
    lines = [Text.assemble(name_of(row), "  ", (words, colour)), Text("   ".join(numbers))]
    if row["fill"] is not None:
        lines.append(
            Text.assemble("queue  ", level(row["fill"], 20), f"   capacity {percent(row['capacity'])}")
        )
    if row["idle"] is not None:
        shares = ", ".join(f"{percent(row[each])} {each}" for each in SHARES if row[each])
        lines.append(Text.assemble("time   ", shares_of(row, 20), f"   {shares}"))
    lines += [_latencies(row, kind) for kind in KINDS.get(row["kind"], ()) if row[f"{kind}_mean"] is not None]
    inputs = [f"{each['component']} ({each['grouping']})" for each in facts["inputs"]]
    lines += [Text(cut(f"takes  {', '.join(inputs)}"))] if inputs else []
    return Text("\n").join(lines)


def _latencies(row: Row, kind: str) -> Text:
    times = [f"{each} {latency(row[f'{kind}_{each}'])}" for each in ("mean", "p50", "p90", "p99", "max")]
    return Text(f"{kind:<9}{'   '.join(times)}")


def traceback_of(failure: Mapping[str, Any]) -> Text:
    """Return all that is known of a kind of failures."""
    value = failure.get("value")
    last = f"last on {cut(str(value))}\n" if value else ""
    trace = escaped(failure["traceback"]) or "Nothing was raised, so there is no traceback."
    return Text(f"{last}{trace}")


def _key(failure: Mapping[str, Any]) -> str:
    return "\n".join(str(failure[each]) for each in ("task", "what", "kind", "place"))


def _cells(failure: Mapping[str, Any]) -> list[Text]:
    last = datetime.fromisoformat(failure["last"]).astimezone()
    place = f", {failure['place']}" if failure["place"] else ""
    return [
        Text(f"{short_count(failure['count'])}", justify="right"),
        Text(f"{last:%Y-%m-%d %H:%M:%S}"),
        Text(printable(failure["task"])),
        Text(printable(f"{failure['what']}{place}")),
        Text(cut(failure["error"])),
    ]
