"""Directories of the file systems that Spark writes to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stormlet.spark.disks import sync, sync_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Folder:
    """A directory, which need not be there. Raises what the file system does."""

    def __init__(self, session: SparkSession, path: str) -> None:
        untyped = cast("Any", session)
        given = untyped._jvm.org.apache.hadoop.fs.Path(path)
        self._system = given.getFileSystem(untyped._jsparkSession.sessionState().newHadoopConf())
        self._path = self._system.makeQualified(given)

    def __str__(self) -> str:
        """The path with its file system, the same wherever the process runs."""
        return str(self._path.toString())

    @property
    def local_path(self) -> Path | None:
        """The path on this machine, if it is there."""
        uri = self._path.toUri()
        return Path(str(uri.getPath())) if uri.getScheme() == "file" else None

    def names(self) -> Sequence[str]:
        """What is in it."""
        if not self._system.exists(self._path):
            return ()
        return [str(status.getPath().getName()) for status in self._system.listStatus(self._path)]

    def sync(self, *below: str) -> None:
        """Have the disk hold what is in a directory below this one, if it is a disk of this machine."""
        if self._path.toUri().getScheme() != "file":
            return
        here = Path(str(self._path.toUri().getPath()))
        sync_tree(here.joinpath(*below))
        for place in range(len(below)):
            sync(here.joinpath(*below[:place]))
