"""Paths that cannot hold a state file, and files that may only be read."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Final

from stormlet.errors import StateUnusable

MOUNTS = Path("/proc/mounts")
"""Linux says here what is mounted, and as what; elsewhere network file systems are not recognised."""
NETWORK = re.compile(
    r"(9p|afs|ceph|cifs|coda|davfs|glusterfs|gpfs|lustre|ncpfs|nfs\d?|smb\d?|smbfs"
    r"|fuse\.(davfs2?|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|smbnetfs|sshfs))"
)
"""File systems of other machines. What one of these maps into memory, as sqlite's write-ahead log needs it, the others
do not see, and locks and fsync are often not what they say."""

ROCKSDB: Final = ".rocksdb"
"""The end of the name of a directory of RocksDB; any other path is that of a file of sqlite."""

BESIDE: Final = ("-wal", "-shm", "-journal", ".lock")
"""The endings of what sqlite and a run have beside a file."""

DATABASE: Final = b"SQLite format 3\0"
"""The first bytes of a database of SQLite, such as a state file."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """The one path of a file, whatever becomes of the current directory, and by whichever link it is found. Raises
    :class:`~stormlet.errors.StateUnusable` for a text that is no path."""
    try:
        return Path(path).resolve()
    except ValueError as error:  # a null byte, or half of a character
        raise StateUnusable(f"{str(path)!r} cannot be kept: {error}; give another path") from error


def is_rocksdb(path: str | os.PathLike[str]) -> bool:
    """Return True for the path of a directory of RocksDB."""
    return Path(path).suffix == ROCKSDB


def belongs_to(path: str | os.PathLike[str], state: str | os.PathLike[str]) -> bool:
    """Return True for the path of a state, or of another database, for what stands beside it, and for what is in the
    directory that it may be."""
    # ``realpath`` takes a link that leads to itself, too.
    given, place = Path(os.path.realpath(path)), Path(os.path.realpath(state))
    return (
        given == place or place in given.parents or given in (Path(f"{place}{ending}") for ending in BESIDE)
    )


def check_name(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a path that no file can have, or that this user may not look
    at."""
    try:
        path.lstat()
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.EACCES):
            raise StateUnusable(f"{path} cannot be kept: {error.strerror}; give another path") from error


def check_place(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` where there can be no state file."""
    check_name(path)
    if path.is_dir():
        raise StateUnusable(
            f"{path} is a directory; give the path of a file, such as {path / 'topology.state'}"
        )
    if path.exists() and not path.is_file():
        raise StateUnusable(f"{path} is a pipe or a device, which keeps nothing; give the path of a file")
    check_surroundings(path)


def check_alone(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for a file whose other name would hide what stands beside this one:
    neither of two runs would know of the other, nor of epochs that are in the log of one that was killed."""
    if not path.exists():
        return
    if path.stat().st_nlink > 1:
        raise StateUnusable(
            f"{path} has {path.stat().st_nlink} names (hard links), of which each would have a lock and a log of its "
            "own; remove the others. For a copy there is `stormlet state save`"
        )
    if path in _mounts():
        raise StateUnusable(
            f"{path} is mounted by itself, without the lock and the log that stand beside it; mount its directory"
        )


def check_surroundings(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` where there can be no state at all."""
    if not path.parent.is_dir():
        raise StateUnusable(f"{path} cannot be kept, as there is no directory {path.parent}; make that first")
    kind = file_system_of(path)
    if NETWORK.fullmatch(kind):
        raise StateUnusable(
            f"{path} is on a network file system ({kind}), where it could be damaged; keep it on a disk of this machine"
        )


def is_database(path: Path) -> bool:
    """Return True for a file that begins as a database of SQLite does. Raises :class:`OSError`."""
    with path.open("rb") as file:
        return file.read(len(DATABASE)) == DATABASE


def may_be_written(path: Path) -> bool:
    """Return True if this user may write a file and its directory, and nobody has marked it as one to be read."""
    # By its mode, too: root may write what is marked so.
    return (
        os.access(path, os.W_OK)
        and os.access(path.parent, os.W_OK)
        and bool(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    )


def file_system_of(path: Path) -> str:
    """The type of the file system that the path is on; empty where that cannot be told."""
    found = Path(), ""
    for point, kind in _mounts().items():
        if path.is_relative_to(point) and len(point.parts) >= len(found[0].parts):
            found = point, kind
    return found[1]


def _mounts() -> dict[Path, str]:
    """The mounts of this machine with their types; none where that cannot be told."""
    try:
        mounts = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    fields = (mount.split(" ") for mount in mounts)
    # The later one of two at one place hides the other.
    return {Path(_plain(place)): kind for _, place, kind, *_ in fields}


def _plain(place: str) -> str:
    r"""A path in which a space is written ``\040``, likewise others."""
    return re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), place)
