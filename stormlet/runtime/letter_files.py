"""Files of dead letters: JSONL, one letter a line (law S6)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from stormlet.core.letter_records import LetterRecord, read_record, record_of
from stormlet.core.outcomes import DeadLetter
from stormlet.errors import StormletError


class LetterFile:
    """A file that letters are appended to.

    A letter is handed to the operating system before its message is released: it outlives the process, but not
    the machine. An ``fsync`` for each would hold the loop up for milliseconds; :meth:`sync` does one for all
    that were written before. The file is opened for each letter, so that it may be moved away at any time.
    """

    def __init__(self, path: Path) -> None:
        """Create the file if it is missing, and end a last line that a killed process left open. Raises
        :class:`OSError` if it cannot be written."""
        self._path = path.absolute()  # whatever becomes of the current directory
        with self._path.open("ab") as file:
            if _is_open_ended(self._path):
                file.write(b"\n")

    def write(self, letter: DeadLetter) -> None:
        """Append one letter; raises :class:`~stormlet.errors.StormletError` naming the file."""
        self.append(record_of(letter, datetime.now(UTC)))

    def append(self, record: LetterRecord) -> None:
        """Append one record; raises :class:`~stormlet.errors.StormletError` naming the file."""
        self.append_line(msgspec.json.encode(record))

    def append_line(self, text: bytes) -> None:
        """Append one line as it is; raises :class:`~stormlet.errors.StormletError` naming the file."""
        try:
            with self._path.open("ab") as file:
                file.write(text + b"\n")
        except OSError as error:
            raise _not_written(self._path, error) from None

    def sync(self) -> None:
        """Have the device hold what was appended, against a loss of power. It blocks: call it from a thread.
        A file that was moved away meanwhile is not synced."""
        try:
            with self._path.open("ab") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise _not_written(self._path, error) from None


class Line(msgspec.Struct, frozen=True):
    """One line of a file of dead letters."""

    number: int
    """From 1."""
    text: bytes
    """Without the newline."""

    def record(self) -> LetterRecord:
        """Raises :class:`~stormlet.core.letter_records.NoLetter`."""
        return read_record(self.text)


def read_lines(path: Path, size: int | None = None) -> Iterator[Line]:
    """The lines of a file that are not blank, up to ``size`` bytes, as it may grow meanwhile. Raises
    :class:`OSError`."""
    with path.open("rb") as file:
        for number, text in enumerate(_up_to(size, file), 1):
            if text.strip():
                yield Line(number, text.rstrip(b"\r\n"))


def _up_to(size: int | None, file: BinaryIO) -> Iterator[bytes]:
    read = 0
    for line in file:
        read += len(line)
        if size is not None and read > size:
            return
        yield line


def _is_open_ended(path: Path) -> bool:
    """Whether the last line lacks its newline; a pipe or device has no last line."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


def _not_written(path: Path, error: OSError) -> StormletError:
    """An error of ours, as no line of the user's has to do with it."""
    return StormletError(f"{path} cannot be written: {error.strerror}")
