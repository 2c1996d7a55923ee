"""The file and the states that a command line names."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.parameters import Whole
from stormlet.core.shortened import cut
from stormlet.core.state.commits import StateId, Stored
from stormlet.errors import TargetError
from stormlet.state.entries import Entry, entries_of
from stormlet.state.sqlite.reading import StateReader

File: TypeAlias = Annotated[Path, Parameter(name="PATH", show_default=False, help="A state file.")]
Named: TypeAlias = Annotated[
    str,
    Parameter(
        name="COMPONENT[.STATE]", show_default=False, help="A component, or one of its states: count.total."
    ),
]
EpochNumber: TypeAlias = Annotated[
    Whole | None,
    Parameter(
        name="--epoch",
        validator=Number(gte=0),
        show_default=False,
        help='As it was after this epoch; "list" says which are kept. The last one by default.',
    ),
]
Limit: TypeAlias = Annotated[Whole | None, Parameter(validator=Number(gte=1), show_default=False)]
LISTED = 50
"""Lines of a table, unless more are asked for."""


class Opened:
    """A state file as it was after one epoch."""

    def __init__(self, path: Path, reader: StateReader, epoch: int | None) -> None:
        self.path = path
        self.reader = reader
        self.stored: Stored = reader.load() if epoch is None else reader.at(epoch)

    @property
    def states(self) -> Sequence[StateId]:
        """All states that have a type or a value."""
        return sorted({*self.stored.shapes, *self.stored.states})

    def named(self, name: str) -> Sequence[StateId]:
        """The states of a component, or one state; raises :class:`~stormlet.errors.TargetError` if there is none."""
        found = [each for each in self.states if each.component == name]
        found = found or [each for each in self.states if str(each) == name]
        if not found:
            known = ", ".join(cut(str(each)) for each in self.states) or "none at all"
            raise TargetError(f"{self.path} has no state {cut(name)!r}; it has {known}")
        return found

    def kind(self, state: StateId) -> str:
        """``value``, ``map`` or ``list``, with its ``ttl``."""
        shape = self.stored.shapes.get(state)
        return "value" if shape is None else shape.kind

    def entries(self, state: StateId) -> list[Entry]:
        """The entries of a state, oldest first."""
        return entries_of(state, self.stored.shapes.get(state), self.stored.states.get(state, ()))


@contextmanager
def opened(path: Path, epoch: int | None = None) -> Generator[Opened]:
    """Read a file while others may write it. Raises :class:`~stormlet.errors.StateUnusable`, and
    :class:`~stormlet.errors.TargetError` where there is none."""
    check_there(path)
    with closing(StateReader(path)) as reader:
        yield Opened(path, reader, epoch)


def check_there(path: Path) -> None:
    """Raise :class:`~stormlet.errors.TargetError` if there is no such file."""
    try:
        is_there, is_file = path.exists(), path.is_file()
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from None
    if not is_there:
        raise TargetError(f"there is no file {path}; a run with state= makes it")
    if not is_file:
        raise TargetError(f"{path} is no file; give the path of a state file")


def moment(seconds: float | None) -> str:
    """``2026-11-23 19:47:01``, by the clock of this machine."""
    return "never" if seconds is None else datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
