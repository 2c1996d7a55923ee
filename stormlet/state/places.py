"""Paths that cannot hold a state file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from stormlet.errors import StateUnusable

MOUNTS = Path("/proc/mounts")
"""Linux says here what is mounted, and as what; elsewhere network file systems are not recognised."""
NETWORK = re.compile(
    r"(9p|afs|ceph|cifs|coda|davfs|glusterfs|gpfs|lustre|ncpfs|nfs\d?|smb\d?|smbfs"
    r"|fuse\.(davfs2?|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|smbnetfs|sshfs))"
)
"""File systems of other machines. What one of these maps into memory, as sqlite's write-ahead log needs it, the others
do not see, and locks and fsync are often not what they say."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """The one path of a file, whatever becomes of the current directory, and by whichever link it is found."""
    return Path(path).resolve()


def check_place(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` where there can be no state file."""
    if path.is_dir():
        raise StateUnusable(
            f"{path} is a directory; give the path of a file, such as {path / 'topology.state'}"
        )
    check_surroundings(path)


def check_surroundings(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` where there can be no state at all."""
    if not path.parent.is_dir():
        raise StateUnusable(f"{path} cannot be kept, as there is no directory {path.parent}; make that first")
    kind = file_system_of(path)
    if NETWORK.fullmatch(kind):
        raise StateUnusable(
            f"{path} is on a network file system ({kind}), where it could be damaged; keep it on a disk of this machine"
        )


def file_system_of(path: Path) -> str:
    """The type of the file system that the path is on; empty where that cannot be told."""
    try:
        mounts = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = Path(), ""
    for mount in mounts:
        _, place, kind, *_ = mount.split(" ")
        point = Path(_plain(place))
        # The later one of two at one place hides the other.
        if path.is_relative_to(point) and len(point.parts) >= len(found[0].parts):
            found = point, kind
    return found[1]


def _plain(place: str) -> str:
    r"""A path in which a space is written ``\040``, likewise others."""
    return re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), place)
