"""How far a DataFrame has been read, in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from stormlet.spark.checkpoint import Checkpoint, CheckpointFile, Fingerprint
from stormlet.spark.fingerprint import fingerprint_in_order, fingerprint_of
from stormlet.spark.keys import Key
from stormlet.spark.ordering import WHOLE, OrderedRead
from stormlet.spark.packing import ALL
from stormlet.spark.reading import Done, Read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Bookmark:
    """The place of one source in its DataFrame. Methods block; :meth:`load` comes first, :meth:`release` last."""

    def __init__(
        self,
        frame: DataFrame,
        read: Read,
        columns: Sequence[str],
        file: CheckpointFile,
        epoch_rows: int | None = None,
    ) -> None:
        self._frame = frame
        self._ordered = read if isinstance(read, OrderedRead) else None
        self._columns = columns
        self._file = file
        self._epoch_rows = epoch_rows
        self.fingerprint: Fingerprint
        """The DataFrame's, once it is loaded."""

    def load(self) -> Checkpoint:
        """What is done. Raises :class:`~stormlet.errors.InvalidTopology`: see :meth:`CheckpointFile.load`."""
        if self._ordered is None:
            fingerprint = fingerprint_of(self._frame, self._columns)
        else:
            fingerprint = fingerprint_in_order(self._frame, self._columns, self._ordered.order_by)
        self.fingerprint = msgspec.structs.replace(fingerprint, epoch_rows=self._epoch_rows)
        found = self._file.load(self.fingerprint)
        if self._ordered is not None:
            self._ordered.trail.begin(found.done.get(WHOLE, 0), found.key)
        return found

    def save(self, done: Done, epochs: int = 0, sinks: tuple[str, ...] = ()) -> None:
        """Have this be done, whatever becomes of the process. Raises :class:`~stormlet.errors.SparkFailed`."""
        self._file.save(Checkpoint(self.fingerprint, dict(done), self._key_of(done), epochs, sinks))

    def release(self) -> None:
        """Another run may have the checkpoint."""
        self._file.release()

    def _key_of(self, done: Done) -> Key:
        """The key of the last row that is done; none where there is no order by a key, or nothing left to read."""
        rows = done.get(WHOLE, 0)
        if self._ordered is None or rows == ALL:
            return ()
        self._ordered.trail.forget(rows)
        return self._ordered.trail.last_of(rows)
