"""The columns of tables: what each means and how it is shown, in the words of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from stormlet.cli.terminal.picture import Row
from stormlet.cli.units import latency, rate, short_count
from stormlet.core.shortened import cut, printable

LONGEST: Final = 40
"""Characters of a name."""
FULL: Final = 0.9
"""The part of a queue from which on it is shown as full."""
BAR: Final = 10

MOODS: Final = {
    "well": ("●", "green", "works"),
    "idle": ("○", "bright_black", "has nothing to do"),
    "busy": ("▲", "yellow", "is busy nearly all the time, or its queue is full"),
    "blocked": ("◧", "magenta", "waits for room in the queue of another bolt"),
    "failing": ("✕", "red", "has failed in this window"),
    "restarting": ("↻", "red", "has died, and is being restarted"),
    "lost": ("!", "red", "has lost its broker"),
}
"""The sign, the colour and the meaning of each state, so that no reader depends on one of them."""
SHARES: Final = {
    "executing": ("█", "green"),
    "awaiting": ("▒", "cyan"),
    "blocked": ("\N{BOX DRAWINGS LIGHT DIAGONAL CROSS}", "red"),
    "limited": ("=", "magenta"),
    "idle": ("·", "bright_black"),
}
SHORT: Final = {
    "executing": "exec",
    "awaiting": "await",
    "blocked": "block",
    "limited": "limit",
    "idle": "idle",
}
"""The names of the same where there is little room."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    title: str
    meaning: str
    show: Callable[[Row], Text]
    width: int | None = None
    is_number: bool = False
    """True if its cells stand at the right."""

    def order(self, row: Row) -> Any:
        """Return what rows are sorted by; what is not known comes first."""
        value = row.get("executing" if self.name == "shares" else self.name)
        if self.name == "id":
            return str(value).lower()
        return -1.0 if value is None else value


def name_of(row: Row) -> Text:
    """Return the name behind the sign of its state."""
    sign, colour, _ = MOODS.get(row["mood"], ("?", "", ""))
    return Text.assemble((sign, colour), " ", shown_name(row["id"]))


def shown_name(id: str) -> str:
    """Return a name that moves no cursor."""
    return cut(printable(id), LONGEST)


def shares_of(row: Row, width: int = BAR) -> Text:
    """Return the parts of the time as a bar; a dash where they are not known."""
    if row.get("idle") is None:
        return Text("-", "bright_black")
    bar, drawn, total = Text(), 0, 0.0
    for name, (sign, colour) in SHARES.items():
        total += row[name] or 0.0
        upto = min(round(total * width), width)
        bar.append(sign * (upto - drawn), colour)
        drawn = max(upto, drawn)
    return bar


def legend() -> Text:
    """Return the meaning of the signs in a bar."""
    parts = [((sign, colour), f" {name}   ") for name, (sign, colour) in SHARES.items()]
    return Text.assemble(*(each for pair in parts for each in pair))


def short_legend() -> Text:
    """Return the same for few columns."""
    parts = [((sign, colour), f" {SHORT[name]} ") for name, (sign, colour) in SHARES.items()]
    return Text.assemble(*(each for pair in parts for each in pair))


def level(fill: float | None, width: int = 5) -> Text:
    """Return how full a queue is, as a bar and in percent."""
    if fill is None:
        return Text()
    taken = min(width, round(fill * width + 0.49)) if fill else 0
    return Text.assemble(
        ("━" * taken, "bold red" if fill >= FULL else "blue"),
        ("─" * (width - taken), "bright_black"),
        (f"{percent(fill):>6}", "bold red" if fill >= FULL else ""),
    )


def percent(part: float | None) -> str:
    """Return a part of a whole."""
    if part is None:
        return ""
    return "<1 %" if 0 < part < 0.005 else f"{part:.0%}".replace("%", " %")


def _number(name: str, title: str, meaning: str, show: Callable[[float], str], width: int = 8) -> Column:
    def cell(row: Row) -> Text:
        value = row.get(name)
        bad = name in ("failed", "dead_letters", "restarts") and value
        return Text("" if value is None else show(value), "red" if bad else "", justify="right")

    return Column(name, title, meaning, cell, width, is_number=True)


COLUMNS: Final = (
    Column("id", "Component", "its name; the sign says how it is", name_of),
    _number(
        "rate",
        "Rate",
        "of a spout, emits in a second; of a bolt, executed tuples; mean of the window",
        rate,
    ),
    Column("shares", "Time", "what its tasks do with their time, sorted by executing", shares_of, BAR),
    _number(
        "capacity",
        "Capacity",
        "Storm's: the part of the time in which the busiest task has an input in hand",
        percent,
        9,
    ),
    Column(
        "fill",
        "Queue",
        "how full the fullest queue of its tasks is; a full one holds up everything above it",
        lambda row: level(row["fill"]),
        11,
    ),
    _number("execute_mean", "Execute", "the mean time of one execute, awaits included", latency),
    _number("execute_p99", "p99", "99 of 100 executes took no longer", latency),
    _number("complete_mean", "Complete", "the mean time from the emit of a message to its ack, of samples", latency),
    _number("acked", "Acked", "messages of a spout whose trees are done; inputs that a bolt has acked",
            short_count),
    _number("failed", "Failed", "attempts of a spout's messages that failed; inputs that a bolt has failed",
            short_count),
    _number("pending", "Pending", "now: messages without an outcome; inputs queued, in hand or held",
            short_count),
    _number("emitted", "Emitted", "calls of emit, or values yielded or returned", short_count),
    _number("transferred", "Moved", "tuples delivered: one emit may reach several tasks, or none", short_count),
    _number("executed", "Executed", "inputs that a bolt has executed", short_count),
    _number("process_mean", "Process", "the mean time from execute to the ack of the input", latency),
    _number("complete_p99", "p99", "99 of 100 messages that were measured were acked within this time", latency),
    _number("dead_letters", "Given up", "messages that became dead letters", short_count),
    _number("lag", "Lag", "messages that the broker has and that are not settled", short_count),
    _number("restarts", "Restarts", "restarts of its tasks in the window", short_count),
    _number("tasks", "Tasks", "instances that work side by side: its parallelism", short_count, 6),
)  # fmt: skip
