"""The ``state diff`` command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag, Whole
from stormlet.cli.state.files import LISTED, File, Limit, Seen, opened
from stormlet.core.shortened import cut
from stormlet.errors import TargetError
from stormlet.state.entries import as_json, plain

EXAMPLES = {
    "diff": """\
stormlet state diff counts.state --epoch 120 --epoch 140
stormlet state diff counts.state --epoch 120
stormlet state diff counts.state saved.state --json | jq 'select(.change == "removed")'"""
}
MARKS = {"added": "+", "removed": "-", "changed": "~"}
LONGEST = 200
"""Characters of a key or a value."""


class Difference(msgspec.Struct, frozen=True):
    """One entry in which two files or epochs differ."""

    change: str
    """``added``, ``removed`` or ``changed``."""
    state: str
    key: Any
    before: Any
    after: Any


def diff(
    path: File,
    other: Annotated[Path | None, Parameter(name="OTHER", show_default=False)] = None,
    /,
    *,
    epoch: Annotated[
        tuple[Whole, ...], Parameter(validator=Number(gte=0), negative=(), show_default=False)
    ] = (),
    limit: Limit = None,
    json: Flag = False,
) -> int:
    """Show the entries that were added, removed or changed from one epoch to another, or from one file to another.

    Parameters
    ----------
    other
        The file to compare with; without it, two epochs of one file are compared.
    epoch
        The epoch of each side, in this order; the last one by default.
    limit
        Number of entries in the list; 50 by default.
    json
        Print them all as JSON lines.
    """
    if len(epoch) > 2 or (other is None and not epoch):
        raise TargetError("two sides are compared: name one or two epochs by --epoch, or another file")
    first, second = (*epoch, None, None)[:2]
    with opened(path, first) as before, opened(path if other is None else other, second) as after:
        found = differences(before, after)
        if json:
            for each in found:
                write_utf8(f"{as_json(msgspec.to_builtins(each))}\n")
        else:
            write_differences(found, limit or LISTED, f"from {_side(before)} to {_side(after)}")
    return 0


def _side(file: Seen) -> str:
    return f"epoch {file.stored.epoch:,} of {cut(str(file.path))}"


def differences(before: Seen, after: Seen) -> Iterator[Difference]:
    """Iterate over the entries in which they differ."""
    for state in sorted({*before.states, *after.states}):
        old = {each.key: each for each in before.entries(state)}
        for new in after.entries(state):
            was = old.pop(new.key, None)
            if was is None:
                yield Difference("added", new.state, plain(new.key), None, plain(new.value))
            elif plain(was.value) != plain(new.value):
                yield Difference("changed", new.state, plain(new.key), plain(was.value), plain(new.value))
        for gone in old.values():
            yield Difference("removed", gone.state, plain(gone.key), plain(gone.value), None)


def write_differences(differences: Iterator[Difference], limit: int, sides: str) -> int:
    """Print the first ones, and return how many there are."""
    counts = Counter[str]()
    for each in islice(differences, limit):
        counts[each.change] += 1
        write_text(f"{_line(each)}\n")
    shown = counts.total()
    counts.update(each.change for each in differences)
    if not counts:
        write_text(f"no differences {sides}\n")
        return 0
    numbers = ", ".join(f"{counts[each]:,} {each}" for each in MARKS if counts[each])
    more = f"; these are the first {shown:,}" if shown < counts.total() else ""
    write_text(f"{numbers} {sides}{more}\n")
    return counts.total()


def _line(each: Difference) -> str:
    before, after = (cut(as_json(value), LONGEST) for value in (each.before, each.after))
    values = (
        f"{before} -> {after}" if each.change == "changed" else after if each.change == "added" else before
    )
    return f"{MARKS[each.change]} {cut(each.state)} {cut(as_json(each.key), LONGEST)}  {values}"
