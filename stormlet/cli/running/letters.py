"""``stormlet run --dead-letters FILE``: the file, and what a run has appended to it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stormlet.core.outcomes import DeadLetter, FailureKind
from stormlet.errors import TargetError
from stormlet.model.description import Description
from stormlet.model.state.committers import CommitterFactory
from stormlet.runtime.dead_letters import LetterFile
from stormlet.state.places import belongs_to, is_database


class Written(NamedTuple):
    """The letters that a run has appended to the file."""

    letters: int
    left_over: int
    """Those among them that are no dead letters of the statistics, as the end of the run came first (law C3)."""


class Letters:
    """The file of a run, and the number of its letters there."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`~stormlet.errors.TargetError` for a file that cannot be used."""
        self._file = letter_file(path)
        self.written = Written(0, 0)

    def write(self, letter: DeadLetter) -> None:
        """Append one letter; raises :class:`~stormlet.errors.StormletError` naming the file."""
        self._file.write(letter)
        letters, left_over = self.written
        self.written = Written(letters + 1, left_over + (letter.failure.kind is FailureKind.SHUTDOWN))


def refuse_files_of(description: Description, state: Path | None, letters: Path) -> None:
    """Raise :class:`~stormlet.errors.TargetError` for the file of the topology's state, or of a table that it writes,
    which a run may be about to make; ``state`` is the one of this run, if it is another one."""
    place = description.state if state is None else state
    if place and belongs_to(letters, place):
        raise TargetError(
            f"--dead-letters {letters} belongs to the topology's state; name another file for the letters"
        )
    for bolt in description.bolts.values():
        file = bolt.logic.file if isinstance(bolt.logic, CommitterFactory) else None
        if file is not None and belongs_to(letters, file):
            raise TargetError(
                f"--dead-letters {letters} is the database that bolt {bolt.id!r} writes; name another file for the "
                f"letters"
            )


def letter_file(path: Path) -> LetterFile:
    """The file, made if it is missing. Raises :class:`~stormlet.errors.TargetError` if it cannot be written, or is a
    database."""
    try:
        if path.is_file() and is_database(path):  # which would overwrite letters that are appended to it
            raise TargetError(f"--dead-letters {path} is a database of SQLite; name another file")
        if path.is_fifo():
            raise TargetError(f"--dead-letters {path} is a pipe, which keeps nothing; name a file")
        return LetterFile(path)
    except OSError as error:
        raise TargetError(f"--dead-letters {path} cannot be written: {error.strerror}") from None
