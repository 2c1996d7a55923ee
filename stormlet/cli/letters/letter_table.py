"""The table of dead letters: one line each, in as many columns as the terminal has."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console
from rich.table import Table

from stormlet.cli.fitting import encodable
from stormlet.cli.output import encoding, write_text
from stormlet.core.outcomes import FailureKind
from stormlet.core.shortened import printable
from stormlet.report.letter_records import LetterRecord
from stormlet.runtime.dead_letters import Line

LONGEST = 1000
"""Characters of a cell at most, whatever the terminal; a value may be megabytes."""


def letter_table(letters: Collection[tuple[Line, LetterRecord]]) -> None:
    """Print it to standard output; nothing without letters."""
    if not letters:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="bold")
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("spout", no_wrap=True, max_width=14)
    table.add_column("id", no_wrap=True, max_width=10)
    table.add_column("tries", justify="right", no_wrap=True)
    table.add_column("cause", no_wrap=True, style="red")
    table.add_column("reason", no_wrap=True, ratio=3)
    table.add_column("value", no_wrap=True, ratio=2)
    for line, record in letters:
        table.add_row(*map(_cell, (line.number, *_cells(record))))
    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(table)
    write_text(encodable(shown.get(), encoding()))


def in_words(cause: str) -> str:
    """A cause as everywhere else in messages; a file may have others."""
    return FailureKind[cause].value if cause in FailureKind.__members__ else cause


def _cells(record: LetterRecord) -> tuple[object, ...]:
    message_id, value = (_start(bytes(each)) for each in (record.message_id, record.value))
    return (record.component, message_id, record.attempts, in_words(record.cause), _reason(record), value)


def _reason(record: LetterRecord) -> str:
    if record.held_by:
        return f"held by {', '.join(record.held_by)}"
    why = record.exception or record.reason
    return f"{record.failed_in}: {why}" if record.failed_in else why


def _start(text: bytes) -> str:
    return text[:LONGEST].decode("utf-8", "replace")


def _cell(content: object) -> str:
    return printable(str(content)[:LONGEST])
