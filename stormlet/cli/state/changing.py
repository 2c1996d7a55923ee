"""The ``state rename``, ``forget``, ``save`` and ``rewind`` commands."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.output import write_text
from stormlet.cli.parameters import Whole
from stormlet.cli.state.files import File, Named, check_there, moment, opened
from stormlet.core.shortened import counted, cut, printable
from stormlet.errors import TargetError
from stormlet.model.checks.components import check_id
from stormlet.state.interfaces import PlacedStore, Rewound
from stormlet.state.stores import owned, reader

EXAMPLES = {
    "rename": """\
stormlet state rename counts.state count word_count""",
    "forget": """\
stormlet state forget counts.state count.total
stormlet state forget counts.state lines""",
    "save": """\
stormlet state save counts.state before-upgrade.state""",
    "rewind": """\
stormlet state rewind counts.state --epoch 120
stormlet state rewind counts.state --at 2026-11-23T18:30""",
}


def rename(path: File, old: str, new: str, /) -> int:
    """Give all that is kept of a component another id: its states, positions and rows.

    No run may have the file. The topology has to give the component that id, too.

    Parameters
    ----------
    old
        The id in the file.
    new
        The id that the component has in the topology now.
    """
    check_id(f"the new id {new!r}", new)
    with closing(_owned(path)) as file:
        file.rename(old, new)
    write_text(f"{cut(old)} is {cut(new)} now, in all epochs of {_name(path)}\n")
    return 0


def forget(path: File, name: Named, /) -> int:
    """Remove one state, or all that is kept of a component, from all epochs of the file.

    A source that is forgotten begins with its first message. A state goes before a component that is called like it.
    No run may have the file; "state save" keeps a copy before.
    """
    with opened(path) as found:
        states = [each for each in found.states if str(each) == name]
    with closing(_owned(path)) as file:
        if states:
            file.drop_state(states[0])
        else:
            file.drop(name)
    write_text(f"{cut(name)} is forgotten, in all epochs of {_name(path)}\n")
    return 0


def save(path: File, copy: Annotated[Path, Parameter(show_default=False)], /) -> int:
    """Copy a state file as it is after its last epoch, also while a run writes it.

    Parameters
    ----------
    copy
        A new file.
    """
    check_there(path)
    with closing(reader(path)) as found:
        found.backup(str(copy))
    with opened(copy) as saved:
        write_text(f"{_name(copy)} has epoch {saved.stored.epoch:,} of {_name(path)}\n")
    return 0


def rewind(
    path: File,
    /,
    *,
    epoch: Annotated[Whole | None, Parameter(validator=Number(gte=0), show_default=False)] = None,
    at: Annotated[str | None, Parameter(metavar="TIME", show_default=False)] = None,
) -> int:
    """Go back to an earlier epoch: state and positions are as they were after it, and what came later is lost.

    The next run gives the messages since then again. Another line of epochs begins, by which those whom rows were
    delivered to can tell the new epochs from the lost ones of the same number. Nothing is asked; "state save" keeps a
    copy before. No run may have the file. Tables that a topology writes to in the file keep their rows: remove those of
    the lost epochs, as they come again.

    Parameters
    ----------
    epoch
        The epoch to go back to.
    at
        The last epoch of this time, such as 2026-11-23T18:30; by the clock of this machine, if it names no zone.
    """
    if (epoch is None) == (at is None):
        raise TargetError("name the epoch to go back to, either by --epoch or by --at")
    with closing(_owned(path)) as file:
        chosen = file.epoch_at(_seconds(at)) if at is not None else epoch
        assert chosen is not None
        rewound = file.rewind(chosen)
        closed_at = file.load().closed_at
    at_epoch = "its beginning" if closed_at is None else f"epoch {rewound.epoch:,} of {moment(closed_at)}"
    write_text(f"{_name(path)} is back at {at_epoch}; {_lost(rewound)}\n")
    if rewound.lost and rewound.tables:
        named = ", ".join(map(cut, rewound.tables))
        write_text(f"tables in the file stay as they are ({named}): remove the rows that will come again\n")
    return 0


def _owned(path: Path) -> PlacedStore:
    check_there(path)
    return owned(path)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise TargetError(f"--at {cut(text)} is no time; write it as 2026-11-23T18:30") from None


def _lost(rewound: Rewound) -> str:
    if not rewound.lost:
        return "nothing is lost, and another line of epochs begins"
    also = [
        *([f"{counted(rewound.undelivered, 'delivery')}"] if rewound.undelivered else []),
        *([f"{counted(rewound.letters, 'dead letter')}"] if rewound.letters else []),
    ]
    beside = f", with {' and '.join(also)} that nobody has had" if also else ""
    return f"{counted(rewound.lost, 'epoch')} lost{beside}"


def _name(path: Path) -> str:
    return printable(str(path))
