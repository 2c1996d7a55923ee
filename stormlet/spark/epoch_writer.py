"""Writes epochs with Spark: each into a directory of its own, which is replaced as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stormlet.core.schema import Schema
from stormlet.errors import InvalidTopology
from stormlet.spark.epochs import SourceKey
from stormlet.spark.folders import Folder
from stormlet.spark.tables import Batch
from stormlet.spark.writers import SparkWriter

if TYPE_CHECKING:
    from pyarrow import Table

SOURCE, EPOCH = "source", "epoch"
"""The columns that a reader finds beside the sink's own: Spark reads them from the names of directories."""
ROWS_PER_FILE = 1_000_000


class SparkEpochWriter(SparkWriter):
    """Has the directory ``source=<key>/epoch=<number>`` stand for an epoch."""

    destination = ""
    """See :attr:`stormlet.spark.epoch_sink.EpochWriter.destination`."""
    _folder: Folder

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """See :meth:`stormlet.spark.writers.SparkWriter.open`."""
        super().open(inputs, first=first)
        taken = [name for name in self._schema.names if name.lower() in (SOURCE, EPOCH)]
        if taken:
            raise InvalidTopology(
                f"exactly_once=True writes to directories source=.../epoch=..., which are columns to a reader, and "
                f"there is a column {taken[0]!r} already; rename it"
            )
        path = self._destination.path
        assert path is not None, "a table is refused before"
        self._folder = Folder(self._session, path)
        self.destination = f"{self._destination.format} at {self._folder}"

    def convert(self, values: Sequence[object]) -> Batch:
        """See :meth:`stormlet.spark.epoch_sink.EpochWriter.convert`."""
        return self._tables.of(values)

    def check(self, source: SourceKey) -> None:
        """Raises :class:`~stormlet.errors.InvalidTopology` if the same source was written there in other epochs: its
        rows would be there twice."""
        ours = f"{SOURCE}={source}"
        for other in self._folder.names():
            if other.startswith(f"{SOURCE}={source.name}-") and other != ours:
                raise InvalidTopology(
                    f"{self._folder}/{other} has rows of the same DataFrame in epochs of another size, and they would "
                    f"be there twice; give the same epoch_rows= as then, write elsewhere, or remove it"
                )

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.write`."""
        import pyarrow as pa

        rows = sum(table.num_rows for table in tables)
        names = (f"{SOURCE}={source}", f"{EPOCH}={epoch}")
        folder = self._destination.below(*names)

        def replace() -> None:
            frame = self._frame(pa.concat_tables(tables) if rows else [], self._schema)
            folder.replace(frame.coalesce(1 + rows // ROWS_PER_FILE))
            self._folder.sync(*names)

        self._in_turn(f"writing {rows:,} rows to {folder}", replace)
