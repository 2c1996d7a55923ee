"""``run --fresh``: a state file that is moved aside, so that the run begins anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from stormlet.core.shortened import printable
from stormlet.errors import InvalidConfiguration, StateUnusable
from stormlet.files import sync
from stormlet.state.claims import claimed
from stormlet.state.places import absolute, is_rocksdb
from stormlet.state.refusals import NotBegun
from stormlet.state.stores import reader
from stormlet.topology import Topology


def move_aside(topology: Topology, given: Path | None, say: Callable[[str], object]) -> None:
    """Move the state file of a run aside, if it exists, and say so. Raises
    :class:`~stormlet.errors.InvalidConfiguration` where there is no file, and
    :class:`~stormlet.errors.StateUnusable` for one that is not this topology's, or is in use."""
    target = topology.state if given is None else given
    if not isinstance(target, str | os.PathLike):
        raise InvalidConfiguration(
            f"--fresh moves a state file aside, and topology {topology.name!r} has none; leave it out, or add "
            f"--state FILE"
        )
    path = Path(target)
    if not path.exists():
        return
    try:
        kept = put_aside(path, topology.name, datetime.now())
    except NotBegun:  # a run was killed as it began; this one begins with the file
        return
    say(f"{printable(str(path))} is kept as {printable(str(kept))}; this run begins anew")


BESIDE = ("", "-wal", "-shm")
"""The endings of the files that belong together."""


def put_aside(path: str | os.PathLike[str], topology: str, now: datetime) -> Path:
    """Rename the state file of a topology to a name with the time, and return that. Raises
    :class:`NotBegun` for an empty one, and :class:`~stormlet.errors.StateUnusable` for one that is not this topology's,
    or that a run has."""
    file = absolute(path)
    with closing(reader(file)) as found:
        found.check_topology(topology)
    with claimed(file):
        if not is_rocksdb(file):
            _settle(file)
        return _renamed(file, now)


def _settle(file: Path) -> None:
    """Have what is in the write-ahead log go into the file, which is whole then even if the process dies on the way."""
    from stormlet.state.sqlite.database import Database

    with suppress(StateUnusable), closing(Database(file, "rw")) as database:
        database.number("SELECT count(*) FROM epochs")  # which the last connection to close it goes on with


def _renamed(file: Path, now: datetime) -> Path:
    kept = _free(file, now)
    try:
        for ending in BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{file}{ending}").rename(f"{kept}{ending}")
        sync(file.parent)
    except OSError as error:
        raise StateUnusable(
            f"{file} cannot be moved aside: {error}; give this user the right to write in {file.parent}"
        ) from error
    return kept


def _free(file: Path, now: datetime) -> Path:
    """A name with the time that no file has; that of a directory of RocksDB ends as before, by which it is known."""
    name, ending = (file.stem, file.suffix) if is_rocksdb(file) else (file.name, "")
    stem = f"{name}.{now:%Y-%m-%dT%H-%M-%S}"
    kept, number = file.with_name(f"{stem}{ending}"), 1
    while kept.exists():
        number += 1
        kept = file.with_name(f"{stem}-{number}{ending}")
    return kept
