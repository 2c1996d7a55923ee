"""One file that is read: its lines or rows, each with the position behind it."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from stormlet.connect.files.bookmark import HEAD, Mark, hash_of
from stormlet.core.settlement.prefix import Prefix

PIECE = 1 << 18
"""Bytes that are read at a time."""

Parts: TypeAlias = Iterator[tuple[bytes, int]]
"""Bodies, each with the bytes that it takes in the file."""
Split: TypeAlias = Callable[[bytes, bool], Parts]
"""Makes bodies of the content of a file; the second argument says that no more will come."""


class Opened:
    """A file from a position on."""

    def __init__(self, path: Path, split: Split) -> None:
        """Raises :class:`OSError`."""
        self.path = path
        self._file = path.open("rb", buffering=0)
        status = os.fstat(self._file.fileno())
        self.key = (status.st_dev, status.st_ino)
        self.head = os.pread(self._file.fileno(), HEAD, 0)
        self.position = 0
        """The end of what was given out."""
        self.done = 0
        """The end of what is settled."""
        self.last = 0
        """The end of the last body that was given out: behind it may be empty lines."""
        self.is_over = False
        """True if all was given out, and no more will come."""
        self.place: Prefix | None = None
        self._split = split
        self._rest = b""

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def changed(self) -> int:
        """The time of its last change, in ns since 1970."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def begin_at(self, position: int) -> None:
        """Go on behind what is done."""
        self.position = self.done = self.last = position

    def read(self) -> bool:
        """Read on; return False if there is nothing now, or it was emptied."""
        piece = os.pread(self._file.fileno(), PIECE, self.position + len(self._rest))
        if self.was_emptied:  # asked afterwards: what was read may be the middle of something else
            return False
        if len(self.head) < HEAD:
            self.head = os.pread(self._file.fileno(), HEAD, 0)
        self._rest += piece
        return bool(piece)

    def take(self, most: int, *, at_end: bool) -> list[tuple[bytes, int]]:
        """Give out bodies, each with the position behind it; ``at_end``: a half line is a line."""
        taken: list[tuple[bytes, int]] = []
        used = 0
        for body, size in self._split(self._rest, at_end):
            used += size
            if body:
                self.last = self.position + used
                taken.append((body, self.last))
                if len(taken) == most:
                    break
        self._rest = self._rest[used:]
        self.position += used
        return taken

    @property
    def was_emptied(self) -> bool:
        """True if it was truncated or overwritten since it was opened."""
        now = os.pread(self._file.fileno(), len(self.head), 0)
        return now != self.head or self.size < self.position + len(self._rest)

    def mark(self) -> Mark:
        """Return how far it is done."""
        offset = self.position if self.done == self.last else self.done
        return Mark(*self.key, len(self.head), hash_of(self.head), offset, str(self.path))

    def forget(self) -> None:
        """Give out nothing more of what was read."""
        self._rest = b""

    def move_to(self, copy: Opened) -> None:
        """Go on in a copy of it, where this was emptied."""
        self.close()
        self.path, self._file, self.key = copy.path, copy._file, copy.key

    def close(self) -> None:
        """Read no more."""
        self._file.close()


def lines(content: bytes, at_end: bool) -> Parts:
    """Split content into lines, without their ends. Empty ones are passed over."""
    *whole, half = content.split(b"\n")
    for line in whole:
        yield line.removesuffix(b"\r"), len(line) + 1
    if half and at_end:
        yield half, len(half)


def rows(names: list[str]) -> Split:
    """Return what splits content into the rows of a CSV file, as JSON objects of texts. A row may have line ends within
    quotes."""

    def split(content: bytes, at_end: bool) -> Parts:
        row = b""
        *whole, half = content.split(b"\n")
        for line in whole:
            row += line + b"\n"
            if row.count(b'"') % 2 == 0:
                yield _object(names, row), len(row)
                row = b""
        row += half
        if row and at_end:
            yield _object(names, row), len(row)

    return split


def cells(row: bytes) -> list[str]:
    """Return the cells of a row of a CSV file."""
    return next(csv.reader([row.decode("utf-8", "backslashreplace")]), list[str]())


def _object(names: list[str], row: bytes) -> bytes:
    values = cells(row)
    return msgspec.json.encode(dict(zip(names, values, strict=False))) if values else b""
