"""The ``dead-letters`` command, and its table."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table

from stormlet.cli.errors import FAILED
from stormlet.cli.output import encodable, encoding, write_text, write_utf8
from stormlet.cli.parameters import Flag, Whole
from stormlet.core.outcomes import FailureKind
from stormlet.core.shortened import counted, printable
from stormlet.errors import TargetError
from stormlet.report.letter_records import LetterRecord, NoLetter
from stormlet.runtime.dead_letters import Line, read_lines

EXAMPLES = """\
stormlet dead-letters given-up.jsonl
stormlet dead-letters given-up.jsonl --component orders --cause timeout --last 5
stormlet dead-letters given-up.jsonl --cause timeout --json > timeouts.jsonl
stormlet dead-letters given-up.jsonl --json | jq -r .exception | sort | uniq -c"""

LISTED = 50
"""Letters in a table, unless more are asked for."""
REPORTED = 10
"""Broken lines that are named; a file that holds something else would be repeated as errors."""


def dead_letters(
    file: Annotated[Path, Parameter(show_default=False)],
    /,
    *,
    component: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    cause: Annotated[tuple[FailureKind, ...], Parameter(negative=(), show_default=False)] = (),
    replayable: Flag = False,
    last: Annotated[Whole | None, Parameter(validator=Number(gte=1), show_default=False)] = None,
    json: Flag = False,
) -> int:
    """List the messages that a run gave up, from the file that run --dead-letters wrote.

    The exit code is 1 if a line of the file cannot be read; the others are listed. To emit them again, see
    run --replay-dead-letters.

    Parameters
    ----------
    file
        A JSONL file of dead letters.
    component
        Letters of this spout only. May be repeated.
    cause
        Letters with this cause only. May be repeated.
    replayable
        Leave out letters that lack the type of their value, without which it cannot be rebuilt.
    last
        Number of letters, from the end; a table shows 50 by default.
    json
        Print the lines of the file as they are, instead of a table.
    """
    causes = {each.name for each in cause}

    def is_wanted(record: LetterRecord) -> bool:
        return (
            (not component or record.component in component)
            and (not causes or record.cause in causes)
            and not (replayable and None in (record.value_type, record.origin_type))
        )

    reading = _Reading(file, is_wanted)
    if json:
        for line, _ in deque(reading.letters(), last) if last else reading.letters():
            write_utf8(f"{line.text.decode()}\n")
    else:
        shown = deque(reading.letters(), last or LISTED)
        letter_table(shown)
        write_text(f"{reading.totals(len(shown))}\n")
    return FAILED if reading.broken else 0


class _Reading:
    """One way through a file."""

    def __init__(self, path: Path, is_wanted: Callable[[LetterRecord], bool]) -> None:
        self.broken = 0
        self._path = path
        self._is_wanted = is_wanted
        self._all = 0
        self._causes = Counter[str]()

    def letters(self) -> Iterator[tuple[Line, LetterRecord]]:
        """Those that are asked for; lines that are none are reported."""
        try:
            for line in read_lines(self._path):
                yield from self._letter(line)
        except OSError as error:
            raise TargetError(f"the dead letters of {self._path} cannot be read: {error.strerror}") from None
        if self.broken > REPORTED:
            self._complain(f"{counted(self.broken - REPORTED, 'more line')} cannot be read")

    def totals(self, shown: int) -> str:
        """The last line."""
        if not self._all:
            return f"no dead letters in {self._path}"
        found = self._causes.total()
        if not found:
            if self._all == 1:
                return f"the one dead letter in {self._path} is not like that"
            return f"none of {self._all:,} dead letters in {self._path} is like that"
        causes = ", ".join(f"{count:,} {in_words(cause)}" for cause, count in self._causes.most_common())
        of = "" if found == self._all else f" of {self._all:,}"
        letters = "dead letter" if self._all == 1 else "dead letters"
        rest = f"; these are the last {shown:,}" if shown < found else ""
        return f"{found:,}{of} {letters}: {causes}{rest}"

    def _letter(self, line: Line) -> Iterator[tuple[Line, LetterRecord]]:
        try:
            record = line.record()
        except NoLetter as error:
            self.broken += 1
            if self.broken <= REPORTED:
                self._complain(f"line {line.number}: {error}")
            return
        self._all += 1
        if self._is_wanted(record):
            self._causes[record.cause] += 1
            yield line, record

    def _complain(self, what: str) -> None:
        print(f"stormlet: {self._path}, {what}", file=sys.stderr)


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
        id, value = (
            bytes(each)[:LONGEST].decode("utf-8", "replace") for each in (record.message_id, record.value)
        )
        cause, reason = in_words(record.cause), _reason(record)
        cells = line.number, record.component, id, record.attempts, cause, reason, value
        table.add_row(*(printable(str(each)[:LONGEST]) for each in cells))
    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(table)
    write_text(encodable(shown.get(), encoding()))


def in_words(cause: str) -> str:
    """A cause as everywhere else in messages; a file may have others."""
    return FailureKind[cause].value if cause in FailureKind.__members__ else cause


def _reason(record: LetterRecord) -> str:
    if record.held_by:
        return f"held by {', '.join(record.held_by)}"
    why = record.exception or record.reason
    return f"{record.failed_in}: {why}" if record.failed_in else why
