"""The bookmark of a source of files: how far each of them is done, in one file that is replaced as a whole.

A file is known by its device and inode and by its first bytes: an inode is given to another file when the first is
deleted, and a copy of a file begins as that does.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from stormlet.errors import BrokerRefused
from stormlet.files import Claimed, FileClaim, sync

HEAD = 1024
"""First bytes by which a file is known."""
TELLING = 64
"""Fewer of them do not tell a file from another one whose inode differs."""


class Mark(msgspec.Struct, frozen=True):
    """One file, as far as it is done."""

    device: int
    inode: int
    head_size: int
    head: str
    """The hash of its first ``head_size`` bytes."""
    offset: int
    """All before this byte is done."""
    path: str
    """Where it was, for people."""

    @property
    def key(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode

    def begins(self, head: bytes) -> bool:
        """True if a file with these first bytes begins as this one does."""
        return len(head) >= self.head_size and hash_of(head[: self.head_size]) == self.head


def hash_of(head: bytes) -> str:
    """Return the hash of first bytes."""
    return sha256(head).hexdigest()


class Bookmark:
    """The marks of all files of one source."""

    def __init__(self, path: Path) -> None:
        """Read it, if it is there. Raises :class:`~stormlet.errors.BrokerRefused` if another source has it, or it is
        none."""
        self._path = path
        self._claim = FileClaim(path)
        try:
            self._claim.take()
        except Claimed as error:
            raise BrokerRefused(f"{error.by} has the bookmark {path}: give each source its own") from None
        self.is_new = not path.exists()
        """True before the very first start."""
        self.marks = {mark.key: mark for mark in self._read()}

    def _read(self) -> list[Mark]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Mark])
        except FileNotFoundError:
            return []  # it is new
        except msgspec.DecodeError as error:
            self.close()
            raise BrokerRefused(f"{self._path} is no bookmark: {error}") from None

    def save(self, marks: Iterable[Mark]) -> None:
        """Replace it; when this returns, it is on disk."""
        self.marks = {mark.key: mark for mark in marks}
        replace(self._path, msgspec.json.encode(list(self.marks.values())))

    def close(self) -> None:
        """Let another source have it."""
        self._claim.release()


def replace(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all; when this returns, it is on disk."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    sync(part)
    part.replace(path)
    sync(path.parent)
