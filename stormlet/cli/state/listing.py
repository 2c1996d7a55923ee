"""The ``state list`` command."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag
from stormlet.cli.state.files import EpochNumber, File, Opened, moment, opened
from stormlet.cli.units import duration, size
from stormlet.core.shortened import counted, cut, printable
from stormlet.core.state.commits import StateId
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.state.entries import as_json, plain

EXAMPLES = {
    "list": """\
stormlet state list counts.state
stormlet state list counts.state --json | jq '.states[] | select(.entries > 1000000)'"""
}
LONGEST = 40
"""Characters of a cell."""


class StateRecord(msgspec.Struct, frozen=True):
    """One state of a bolt."""

    component: str
    state: str
    kind: str
    key: str
    value: str
    entries: int
    """The number of its keys; of a map or a list, of its entries."""
    bytes: int
    """The exact size of their keys and values, of which the summary of a run has an estimate. The file is larger: it
    has earlier changes, and indexes."""


class SourceRecord(msgspec.Struct, frozen=True):
    """A task of a source."""

    task: str
    position: Any


class FileRecord(msgspec.Struct, frozen=True):
    """A state file."""

    path: str
    topology: str
    line: str
    epoch: int
    committed_at: float | None
    """Seconds since 1970; None before the first epoch."""
    first_epoch: int
    """The first one that can be read."""
    size: int
    """Bytes on the disk: of the file and its log, or of all files of a directory."""
    states: Sequence[StateRecord]
    sources: Sequence[SourceRecord]
    undelivered: dict[str, int]
    """The number of epochs whose rows a committer may not have had."""
    dead_letters: int
    """Those that their sink may not have."""


def list_(path: File, /, *, epoch: EpochNumber = None, json: Flag = False) -> int:
    """List what a state file has: its states with types and sizes, the positions of its sources, its epochs, and what
    was not delivered yet.

    A run may write it meanwhile; whole epochs alone are seen.

    Parameters
    ----------
    json
        Print it as JSON, for scripts.
    """
    with opened(path, epoch) as file:
        record = _record(file)
    if json:
        write_utf8(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")
    else:
        write_text("".join(f"{line.rstrip()}\n" for line in _lines(record, time.time())))
    return 0


def _record(file: Opened) -> FileRecord:
    stored = file.stored
    undelivered: dict[str, int] = {}
    for rows in stored.outbox:
        undelivered[rows.committer] = undelivered.get(rows.committer, 0) + 1
    return FileRecord(
        str(file.reader.path),
        file.reader.topology(),
        stored.line,
        stored.epoch,
        stored.closed_at,
        file.reader.first_epoch(),
        file.reader.size,
        [_state(file, each) for each in file.states],
        [SourceRecord(task, _position(stored.positions[task])) for task in sorted(stored.positions)],
        undelivered,
        len(stored.letters),
    )


def _state(file: Opened, id: StateId) -> StateRecord:
    shape = file.stored.shapes.get(id)
    entries = taken = 0
    for each in file.entries(id):
        entries += 1
        taken += each.size
    kind, key, value = ("", "", "") if shape is None else (shape.kind, shape.key, shape.value)
    return StateRecord(
        id.component, id.state, "timers" if id.state == TIMERS else kind, key, value, entries, taken
    )


def _position(position: bytes) -> Any:
    """The number of values of a generator or an iterable, what a source calls the last epoch that it has cut, or the
    last message id of each partition."""
    try:
        found: Any = msgspec.msgpack.decode(position)
        match found:
            case [int(count), _]:
                return count
            case {"line": str(), "number": int()}:
                return found
            case [[None, last]]:
                return plain(last)
            case _:
                return {as_json(plain(partition)): plain(last) for partition, last in found}
    except (msgspec.MsgspecError, TypeError, ValueError):  # of a newer version, or of another program
        return plain(position)


def _lines(record: FileRecord, now: float) -> Iterator[str]:
    yield printable(f"{record.path}: topology {record.topology!r}, {size(record.size)} on the disk")
    yield f"epoch {record.epoch:,}, {_committed(record, now)}; epochs from {record.first_epoch:,} can be read"
    if record.states:
        yield ""
        yield from _table(
            ("state", "kind", "keys are", "values are", "entries", "bytes"), map(_cells, record.states), 4
        )
    if record.sources:
        yield ""
        yield from _table(("source", "after"), ((each.task, _after(each)) for each in record.sources), 2)
    waiting = [
        *(f"rows of {counted(count, 'epoch')} for {id}" for id, count in record.undelivered.items()),
        *([counted(record.dead_letters, "dead letter")] if record.dead_letters else []),
    ]
    if waiting:
        yield ""
        yield printable(f"not delivered yet: {', '.join(waiting)}; the next run begins with that")


def _committed(record: FileRecord, now: float) -> str:
    if record.committed_at is None:
        return "before the first commit"
    return f"committed at {moment(record.committed_at)}, {duration(max(now - record.committed_at, 0.0))} ago"


def _cells(state: StateRecord) -> tuple[str, ...]:
    name = f"{state.component}.{state.state}"
    return name, state.kind, state.key, state.value, f"{state.entries:,}", size(state.bytes)


def _after(source: SourceRecord) -> str:
    if isinstance(source.position, int):
        return f"{source.position:,}"
    return as_json(source.position)


def _table(titles: Sequence[str], rows: Iterator[tuple[str, ...]], left: int) -> Iterator[str]:
    """Lines of columns; those from ``left`` on are figures."""
    lines = [tuple(titles), *(tuple(cut(cell, LONGEST) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            f"{cell:{width}}" if place < left else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells)
