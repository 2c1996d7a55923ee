"""The ``state show``, ``get`` and ``export`` commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from stormlet.cli.errors import FAILED
from stormlet.cli.output import encodable, encoding, write_text, write_utf8
from stormlet.cli.parameters import Flag
from stormlet.cli.state.files import LISTED, EpochNumber, File, Limit, Named, Opened, opened
from stormlet.core.shortened import counted, cut, printable
from stormlet.core.state.commits import StateId
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.errors import InvalidConfiguration, TargetError
from stormlet.state.entries import KEY_TYPES, Entry, as_json, by_key, line_of, plain
from stormlet.state.places import belongs_to

EXAMPLES = {
    "show": """\
stormlet state show counts.state count
stormlet state show counts.state count.total --epoch 120 --limit 1000
stormlet state show counts.state count --json | jq 'select(.value > 100)'""",
    "get": """\
stormlet state get counts.state count moon
stormlet state get orders.state carts.items '["eu", 7]'""",
    "export": """\
stormlet state export counts.state > counts.jsonl
stormlet state export counts.state count.total --output counts.jsonl""",
}
LONGEST = 1000
"""Characters of a cell at most, whatever the terminal; a value may be megabytes."""
WRITTEN_AT_ONCE = 1000
"""Lines."""


def show(
    path: File,
    name: Named,
    /,
    *,
    epoch: EpochNumber = None,
    limit: Limit = None,
    json: Flag = False,
) -> int:
    """Show the entries of a state, or of all states of a component, as a table.

    An entry of a map or a list has the pair of its key and its own key. Values that are too old by a ttl are among
    them until the file is rid of them.

    Parameters
    ----------
    limit
        Number of entries; 50 by default.
    json
        Print them as JSON lines, as export does.
    """
    with opened(path, epoch) as file:
        states = file.named(name)
        entries = (each for state in states for each in file.entries(state))
        shown = list(islice(entries, limit or LISTED))
        if json:
            _write_lines(shown, write_utf8)
            return 0
        _write_table(shown)
        write_text(_totals(states, len(shown), len(shown) + sum(1 for _ in entries), file))
    return 0


def _totals(states: Sequence[StateId], shown: int, total: int, file: Opened) -> str:
    names = ", ".join(cut(str(each)) for each in states)
    some = f"; these are the first {shown:,}, --limit shows more" if shown < total else ""
    return f"{counted(total, 'entry', 'entries')} of {names} after epoch {file.stored.epoch:,}{some}\n"


def _write_table(entries: Sequence[Entry]) -> None:
    if not entries:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="bold")
    table.add_column("state", no_wrap=True, max_width=24)
    table.add_column("key", no_wrap=True, ratio=1)
    table.add_column("value", no_wrap=True, ratio=2)
    for each in entries:
        cells = each.state, as_json(plain(each.key)), as_json(plain(each.value))
        table.add_row(*(printable(cell[:LONGEST]) for cell in cells))
    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(table)
    write_text(encodable(captured.get(), encoding()))


def get(path: File, name: Named, key: str, /, *, epoch: EpochNumber = None) -> int:
    """Print the value of one key as JSON: of a map an object, of a list its items.

    The exit code is 1 if the state does not have the key.

    Parameters
    ----------
    key
        The key: a text as it is, any other as JSON, such as 7, null or '["eu", 7]'.
    """
    with opened(path, epoch) as file:
        state = _single(file, name)
        wanted = _keys(key, _type_of_keys(file, state))
        for found, value in by_key(file.entries_of_key(state, wanted), file.kind(state)):
            if any(found == each and isinstance(found, bool) == isinstance(each, bool) for each in wanted):
                write_text(f"{as_json(value)}\n")
                return 0
    print(f"stormlet: {cut(str(state))} has no key {cut(key)}", file=sys.stderr)
    return FAILED


def _single(file: Opened, name: str) -> StateId:
    states = file.named(name)
    states = [each for each in states if each.state != TIMERS] or states
    if len(states) > 1:
        listed = ", ".join(cut(str(each)) for each in states)
        raise TargetError(f"{cut(name)!r} has several states; name one of {listed}")
    return states[0]


def _type_of_keys(file: Opened, state: StateId) -> str:
    shape = file.stored.shapes.get(state)
    return "Any" if shape is None else shape.key


def _keys(text: str, words: str) -> list[Any]:
    """The keys that a text may mean. Raises :class:`~stormlet.errors.TargetError` for one that cannot be of this
    type."""
    if words == "str":
        return [text]
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = text
    if words not in ("int", "float", "bool", "None"):
        return [text, value]
    if not _fits(value, KEY_TYPES.get(words)):
        raise TargetError(
            f"the keys of this state are of type {words}, and {cut(text)} is none; write it as JSON"
        )
    return [value]


def _fits(value: Any, kind: type | None) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, TypeError, ValueError):
        return False
    return True


def export(
    path: File,
    name: Annotated[
        str | None,
        Parameter(
            name="COMPONENT[.STATE]",
            show_default=False,
            help="A component, or one of its states: count.total. All states by default.",
        ),
    ] = None,
    /,
    *,
    epoch: EpochNumber = None,
    output: Annotated[Path | None, Parameter(metavar="FILE", show_default=False)] = None,
) -> int:
    """Write the entries of a state, of all states of a component, or of the file, as JSON lines.

    A line is {"state": "count.total", "key": "moon", "value": 7}, one for each entry; "state import" takes them. An
    entry of a map or a list has the pair of its key and its own key. Bytes are in base64, and "written" is the time of
    an entry with a ttl.

    Parameters
    ----------
    output
        A file to write instead of standard output.
    """
    if output is not None and belongs_to(output, path):
        raise TargetError(
            f"--output {printable(str(output))} belongs to the state that is exported; name another file"
        )
    with opened(path, epoch) as file:
        states = file.states if name is None else file.named(name)
        entries = (each for state in states for each in file.entries(state))
        if output is None:
            _write_lines(entries, write_utf8)
        else:
            count = _write_file(output, entries)
            print(f"{counted(count, 'line')} in {printable(str(output))}", file=sys.stderr)
    return 0


def _write_lines(entries: Iterator[Entry] | Sequence[Entry], write: Callable[[str], object]) -> int:
    count = 0
    lines = (f"{line_of(each)}\n" for each in entries)
    while part := list(islice(lines, WRITTEN_AT_ONCE)):
        write("".join(part))
        count += len(part)
    return count


def _write_file(path: Path, entries: Iterator[Entry]) -> int:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            return _write_lines(entries, file.write)
    except OSError as error:
        raise InvalidConfiguration(f"--output {path}: {error.strerror}") from None
