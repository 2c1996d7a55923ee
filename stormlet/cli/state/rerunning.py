"""The ``state rerun`` command."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import time
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.errors import FAILED
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Target, TargetOptions, Whole
from stormlet.cli.state.comparing import differences, write_differences
from stormlet.cli.state.files import LISTED, File, Seen, check_there
from stormlet.cli.state.programs import inspected
from stormlet.core.shortened import counted, printable
from stormlet.core.state.commits import Stored
from stormlet.errors import TargetError
from stormlet.state.stores import reader
from stormlet.testing.rerunning import Rerun
from stormlet.testing.rerunning import rerun as run_again

EXAMPLES = {
    "rerun": """\
stormlet state rerun topology.py counts.state
stormlet state rerun topology.py counts.state --epoch 121"""
}


def rerun(
    target: Target,
    path: File,
    /,
    *,
    epoch: Annotated[Whole | None, Parameter(validator=Number(gte=1), show_default=False)] = None,
    options: TargetOptions = DEFAULTS,
) -> int:
    """Run one epoch again, on simulated time: from the state before it, with its messages alone, and with the code as
    it is now.

    The file stays as it is. Committers are not opened and get no rows; other bolts do what they do, also to the world
    outside. Sources must give the messages again: not those of brokers, nor those that a host has emitted. Timers see
    the time at which the epoch was committed.

    The exit code is 1 if the run crashes, or if the state after the epoch is not that of the file.

    Parameters
    ----------
    epoch
        The epoch; "list" says which are kept, and the one before it must be. By default the one after the last: what a
        run had not committed when it crashed.
    """
    settings = options.layered()
    topology = options.topology(target)
    inspection = inspected(topology, path, settings)
    check_there(path)
    with closing(reader(path)) as found:
        found.check_topology(inspection.description.name)
        last = found.load().epoch
        number = last + 1 if epoch is None else epoch
        if number > last + 1:
            raise TargetError(
                f"{path} has no epoch {number:,}; its last is {last:,}, and the next one is {last + 1:,}"
            )
        before = found.at(number - 1).in_memory()
        after = found.at(number).in_memory() if number <= last else None
    closed_at = time() if after is None or after.closed_at is None else after.closed_at
    again = run_again(topology, before, after, time=closed_at, **settings.values)
    write_text(f"epoch {number:,} of {printable(str(path))} again: {_events(again)}\n")
    return _compare(path, again, before, after)


def _events(again: Rerun) -> str:
    commit = again.commit
    if commit is None:
        return "nothing has happened"
    rows = sum(len(msgspec.msgpack.decode(each.blob, type=list[msgspec.Raw])) for each in commit.outbox)
    rows += sum(len(each.rows) for each in commit.tables)
    found = [counted(again.messages, "message")]
    found += [counted(len(commit.letters), "dead letter")] if commit.letters else []
    found += [f"{counted(rows, 'row')} that no committer gets"] if rows else []
    return ", ".join(found)


def _compare(path: Path, again: Rerun, before: Stored, after: Stored | None) -> int:
    ran = Seen(path, again.after)
    if after is None:
        write_differences(differences(Seen(path, before), ran), LISTED, "by this epoch")
        return 0
    found = write_differences(differences(Seen(path, after), ran), LISTED, "from what is in the file")
    return FAILED if found else 0
