"""Files that must survive: fsync, also of dead letters, directories of Spark's file systems, locks on checkpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stormlet.errors import InvalidTopology
from stormlet.files import Claimed, FileClaim, NotLockable, sync
from stormlet.model.components import TaskContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sync_tree(top: Path) -> None:
    """Fsync a file, or a directory with everything in it. Raises :class:`OSError`."""
    if top.is_file():
        sync(top)
    for directory, _, files in os.walk(top):
        for name in files:
            sync(Path(directory, name))
        sync(Path(directory))


def sync_of_letters(context: TaskContext, needed_by: str, otherwise: str = "") -> Callable[[], None]:
    """The function that fsyncs the run's dead letters. Raises :class:`~stormlet.errors.InvalidTopology` if they would
    be lost with the process: a row among them counts as done, and no later run reads it again."""
    if context.sync_dead_letters is None:
        raise InvalidTopology(
            f"{needed_by} needs a place where dead letters outlive the process; run with dead_letters=...{otherwise}"
        )
    return context.sync_dead_letters


def literally(path: str) -> str:
    """Return a path that Spark reads, in which no character stands for others."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def is_seen(session: SparkSession, path: str) -> bool:
    """True if Spark's driver finds a file or a directory there. It reads nothing."""
    from pyspark.errors import AnalysisException

    try:
        return bool(session.read.text(literally(path)).columns)
    except AnalysisException:
        return False


class Folder:
    """A directory that need not exist. Raises what its file system raises.

    Files on this machine are looked at without the JVM where that is the same: a call of it takes milliseconds beside a
    loop that is busy.
    """

    def __init__(self, session: SparkSession, path: str) -> None:
        untyped = cast("Any", session)
        self._new_path = untyped._jvm.org.apache.hadoop.fs.Path  # looked up once: these are five calls
        given = self._new_path(path)
        self._system = given.getFileSystem(untyped._jsparkSession.sessionState().newHadoopConf())
        self._path = self._system.makeQualified(given)
        uri = self._path.toUri()
        self.local_path = Path(str(uri.getPath())) if uri.getScheme() == "file" else None
        """The path, if it is on this machine."""

    def __str__(self) -> str:
        """The path with its file system, the same wherever the process runs."""
        return str(self._path.toString())

    def names(self) -> Sequence[str]:
        """The names of the entries."""
        if not self._system.exists(self._path):
            return ()
        return [str(status.getPath().getName()) for status in self._system.listStatus(self._path)]

    def lengths(self) -> Mapping[str, int]:
        """The bytes of each file in it, by name."""
        if (here := self.local_path) is not None:
            return {path.name: path.stat().st_size for path in here.glob("*") if path.is_file()}
        if not self._system.exists(self._path):
            return {}
        found = [each for each in self._system.listStatus(self._path) if each.isFile()]
        return {str(each.getPath().getName()): int(each.getLen()) for each in found}

    def below(self, *names: str) -> str:
        """The path of an entry, as text."""
        return "/".join((str(self).rstrip("/"), *names))

    def remove(self, name: str) -> None:
        """Remove an entry with everything in it, if it is there."""
        if self.local_path is None or os.path.lexists(self.local_path / name):
            self._system.delete(self._at(name), True)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        if not self._system.exists(self._at(name)):
            return None
        stream = self._system.open(self._at(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file that is there whole or not at all, in the place of an earlier one."""
        new = f"{name}.new"
        stream = self._system.create(self._at(new), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        self.sync(new)
        self.remove(name)
        self._system.rename(self._at(new), self._at(name))
        self.sync()

    def _at(self, name: str) -> Any:
        return self._new_path(self._path, name)

    def sync(self, *below: str) -> None:
        """Fsync a directory ``below`` this one with everything in it, if it is on this machine."""
        here = self.local_path
        if here is None:
            return
        sync_tree(here.joinpath(*below))
        for place in range(len(below)):
            sync(here.joinpath(*below[:place]))


class Claim(FileClaim):
    """A lock on a checkpoint, so that no other source, of this process or another, uses it meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._checkpoint = path

    def take(self) -> None:
        """Take the lock. Raises :class:`~stormlet.errors.InvalidTopology` if another source has it, or if the file
        cannot be locked."""
        try:
            super().take()
        except Claimed as error:
            raise InvalidTopology(f"{self._checkpoint} {_why_not(error)}") from error
        except NotLockable as error:
            raise InvalidTopology(str(error)) from error
        except OSError as error:
            raise InvalidTopology(f"{self._checkpoint} cannot be a checkpoint: {error}") from error


def _why_not(claimed: Claimed) -> str:
    if claimed.is_ours:
        return "is the checkpoint of another source of this process; give each a file of its own"
    return f"is in use by {claimed.by}; wait for its end, or give this run a checkpoint of its own"
