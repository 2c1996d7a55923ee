"""The columns of figures in the table of components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from stormlet.cli.fitting import bar
from stormlet.cli.running.meter import Row
from stormlet.cli.units import latency, rate

BAR = 4
"""Cells of a queue's bar."""

Count = Callable[[float], str]
"""How counts are written: exact or short."""


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
