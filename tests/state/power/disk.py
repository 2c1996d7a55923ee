"""A disk that loses its power: what a recorded process has written, as far as the disk has it.

A disk has what was synced. Of what was written to a file since its last sync it may have any part, in any order, also a
part of one write; of the names in a directory that were made, changed or removed since the directory was synced, the
first few.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import Random

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""
ROCKSDB = ".rocksdb"
HEAD = struct.Struct("=cIIQ")


@dataclass(frozen=True)
class Entry:
    """Something that the process has done to a file, or to the folder: the folder's name is empty.

    ======  ==================================  ==========  =========
    letter  is                                  ``number``  ``rest``
    ======  ==================================  ==========  =========
    ``c``   a file is made
    ``w``   something is written                its place   the data
    ``t``   the file is cut off, or made longer its size
    ``s``   file or folder are synced
    ``u``   the name is removed
    ``r``   the file gets another name                      that name
    ======  ==================================  ==========  =========
    """

    letter: str
    name: str
    number: int
    rest: bytes


def read_record(record: Path, folder: Path) -> Iterator[Entry]:
    """The entries in their order."""
    content, place = record.read_bytes(), 0
    while place < len(content):
        letter, length, size, number = HEAD.unpack_from(content, place)
        place += HEAD.size
        path, rest = content[place : place + length].decode(), content[place + length : place + length + size]
        place += length + size
        yield Entry(letter.decode(), name_in(folder, path), number, rest)


def name_in(folder: Path, path: str) -> str:
    """The name of a file; a directory of RocksDB is the folder, too, as nothing else in it has files of such names."""
    found = PurePath(path)
    return "" if found == folder or found.suffix == ROCKSDB else found.name


@dataclass
class File:
    """One file, by whatever name."""

    content: bytearray = field(default_factory=bytearray)
    """What the process sees."""
    synced: bytes = b""
    open: list[Entry] = field(default_factory=list)
    """Changes since then."""

    def change(self, entry: Entry) -> None:
        apply(self.content, entry)
        self.open.append(entry)

    def sync(self) -> None:
        self.synced = bytes(self.content)
        self.open.clear()

    def after_loss(self, random: Random, share: float) -> bytes:
        """Its content when the power is back: a change since the last sync survives with this probability."""
        content = bytearray(self.synced)
        for entry in self.open:
            for part in parts(entry):
                if random.random() < share:
                    apply(content, part)
        return bytes(content)


def apply(content: bytearray, entry: Entry) -> None:
    end = entry.number + len(entry.rest)
    content.extend(bytes(max(end - len(content), 0)))
    if entry.letter == "w":
        content[entry.number : end] = entry.rest
    else:
        del content[end:]


def parts(entry: Entry) -> Iterator[Entry]:
    """The sectors of a write."""
    yield from [] if entry.rest else [entry]
    place = entry.number
    while place < entry.number + len(entry.rest):
        end = min((place // SECTOR + 1) * SECTOR, entry.number + len(entry.rest))
        yield Entry(entry.letter, entry.name, place, entry.rest[place - entry.number : end - entry.number])
        place = end


class Disk:
    """The folder of a recorded process."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._synced: dict[str, File] = {}
        """The names that are on the disk for certain."""
        self._later: list[dict[str, File]] = []
        """The names after each change of them since then."""

    def do(self, entry: Entry) -> None:
        """Go on by one entry."""
        match entry.letter:
            case "c":
                self._name({**self._files, entry.name: File()})
            case "u":
                self._name({name: file for name, file in self._files.items() if name != entry.name})
            case "r":
                files = dict(self._files)
                files[PurePath(entry.rest.decode()).name] = files.pop(entry.name)
                self._name(files)
            case "s" if not entry.name:
                self._synced, self._later = self._files, []
            case "s":
                self._files[entry.name].sync()
            case _:
                self._files[entry.name].change(entry)

    def _name(self, files: dict[str, File]) -> None:
        self._files = files
        self._later.append(files)

    def after_loss(self, random: Random, share: float) -> dict[str, bytes]:
        """The files when the power is back, of what was not synced this share."""
        names = self._synced
        for later in self._later:
            if random.random() >= share:
                break
            names = later
        return {name: file.after_loss(random, share) for name, file in names.items()}


def losses(entries: Sequence[Entry], random: Random, count: int) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Losses of power at random moments: the number of entries that the disk was given before each, and its files."""
    moments = sorted(random.choices(range(len(entries) + 1), k=count))
    disk, done = Disk(), 0
    for moment in moments:
        for entry in entries[done:moment]:
            disk.do(entry)
        done = moment
        yield moment, disk.after_loss(random, random.choice([0.0, 0.1, 0.5, 0.9]))
