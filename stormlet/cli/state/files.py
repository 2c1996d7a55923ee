"""The file and the states that a command line names."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.parameters import Whole
from stormlet.core.shortened import cut
from stormlet.core.state.blobs import PAIR, bytes_of_key
from stormlet.core.state.commits import StateId, Stored
from stormlet.errors import TargetError
from stormlet.state.entries import Entry, each_entry, entries_of
from stormlet.state.interfaces import PlacedReader
from stormlet.state.places import is_rocksdb
from stormlet.state.stores import reader

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


class Seen:
    """State as it was after one epoch."""

    def __init__(self, path: Path, stored: Stored) -> None:
        self.path = path
        self.stored = stored

    @property
    def states(self) -> Sequence[StateId]:
        """All states that have a type or a value."""
        return sorted({*self.stored.shapes, *self.stored.states})

    def named(self, name: str) -> Sequence[StateId]:
        """One state, or the states of a component; raises :class:`~stormlet.errors.TargetError` if there is none."""
        # A component may be called as a state of another one; its own states have longer names.
        found = [each for each in self.states if str(each) == name]
        found = found or [each for each in self.states if each.component == name]
        if not found:
            known = ", ".join(cut(str(each)) for each in self.states) or "none at all"
            raise TargetError(f"{self.path} has no state {cut(name)!r}; it has {known}")
        return found

    def kind(self, state: StateId) -> str:
        """``value``, ``map`` or ``list``, with its ``ttl``."""
        shape = self.stored.shapes.get(state)
        return "value" if shape is None else shape.kind

    def entries(self, state: StateId) -> Iterator[Entry]:
        """The entries of a state: those of a file oldest first, those of RocksDB by their keys."""
        read = entries_of if self.stored.entries is None else each_entry
        return read(state, self.stored.shapes.get(state), self.stored.blobs(state))

    def entries_of_key(self, state: StateId, keys: Sequence[Any]) -> Iterator[Entry]:
        """The entries of a key that may be any of these; others may be among them."""
        if self.stored.entries is None:
            return self.entries(state)
        is_single, shape = self.kind(state).startswith("value"), self.stored.shapes.get(state)
        found = self.stored.entries(state)
        prefixes = dict.fromkeys((b"" if is_single else PAIR) + bytes_of_key(key) for key in keys)
        blobs = [blob for prefix in prefixes for blob in found.scan(prefix)]
        # The bytes of a date, say, are not those of its text.
        return each_entry(state, shape, blobs) if blobs else self.entries(state)


class Opened(Seen):
    """A state file as it was after one epoch."""

    def __init__(self, path: Path, reader: PlacedReader, epoch: int | None) -> None:
        super().__init__(path, reader.load() if epoch is None else reader.at(epoch))
        self.reader = reader


@contextmanager
def opened(path: Path, epoch: int | None = None) -> Generator[Opened]:
    """Read a file while others may write it. Raises :class:`~stormlet.errors.StateUnusable`, and
    :class:`~stormlet.errors.TargetError` where there is none."""
    check_there(path)
    with closing(reader(path)) as found:
        yield Opened(path, found, epoch)


def check_there(path: Path) -> None:
    """Raise :class:`~stormlet.errors.TargetError` if there is no such file."""
    try:
        is_there, is_right = path.exists(), path.is_dir() if is_rocksdb(path) else path.is_file()
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from None
    if not is_there:
        raise TargetError(f"there is no file {path}; a run with state= makes it")
    if not is_right:
        kind = "directory" if is_rocksdb(path) else "file"
        raise TargetError(f"{path} is no {kind}; give the path of a state file")


def moment(seconds: float | None) -> str:
    """``2026-11-23 19:47:01``, by the clock of this machine."""
    return "never" if seconds is None else datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
