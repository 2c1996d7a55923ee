"""The position of a DataFrame's source in a topology with ``state=``, which keeps it with each epoch (law X8): there is
no checkpoint then."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from stormlet.errors import InvalidTopology
from stormlet.spark.frames import Origin
from stormlet.spark.source.ordering import Key, OrderedRead
from stormlet.spark.source.plans import (
    CHECKPOINT,
    Fingerprint,
    check_repeatable,
    check_resumable,
    differences,
    fingerprint_in_order,
    fingerprint_of,
)
from stormlet.spark.source.reading import ALL, Done, Read, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FramePosition(msgspec.Struct, frozen=True):
    """The rows of a DataFrame that are durable: those of all partitions before this one, and its first ``rows``."""

    fingerprint: Fingerprint
    partition: int
    rows: int
    key: Key = ()
    """With ``order_by``, the key of the last of these rows."""
    sinks: tuple[str, ...] | None = None
    """The places that exactly-once sinks have written to, where the state is the checkpoint of this source."""

    @property
    def done(self) -> Done:
        """The rows that need not be read again."""
        return {**dict.fromkeys(range(self.partition), ALL), self.partition: self.rows}


class FramePositions:
    """The positions of one run in a DataFrame. :meth:`load` comes first, and blocks."""

    def __init__(self, frame: DataFrame, read: Read, columns: Sequence[str]) -> None:
        self._frame = frame
        self._ordered = read if isinstance(read, OrderedRead) else None
        self._columns = columns
        self.sinks: tuple[str, ...] | None = None
        """The places that exactly-once sinks write to, where the state is the checkpoint of this source."""
        self._fingerprint: Fingerprint | None = None
        self._rows: dict[Origin, int] = {}
        """Rows of the messages that are not durable and have more than one."""

    def load(self, resume: Mapping[Hashable, object]) -> Done:
        """Return the rows that are durable. Raises :class:`~stormlet.errors.InvalidTopology` for a DataFrame whose rows
        may be others in another run, and for another one than that of the run before."""
        needed_by = "state=" if self.sinks is None else CHECKPOINT
        if self._ordered is None:
            check_resumable(self._frame, needed_by)
            self._fingerprint = fingerprint_of(self._frame, self._columns)
        else:
            check_repeatable(self._frame, needed_by)
            self._fingerprint = fingerprint_in_order(self._frame, self._columns, self._ordered.order_by)
            self._ordered.trail.keep()
        if None not in resume:
            return {}
        found = _read(resume[None])
        self._check(found, differences(found.fingerprint, self._fingerprint))
        if self._ordered is not None:
            self._ordered.trail.begin(found.rows, found.key)
        return found.done

    def _check(self, found: FramePosition, differs: Sequence[str]) -> None:
        if differs:
            other = "run with another state=" if self.sinks is None else "take another checkpoint"
            raise InvalidTopology(
                f"the state has the position of another DataFrame, in its {' and '.join(differs)}; read the same "
                f"files in the same way (partitions depend on the number of cores, too), or {other}"
            )
        if found.sinks != self.sinks and self.sinks is not None:
            raise InvalidTopology(
                f"the checkpoint has rows that were written to {_said(found.sinks)}, and this topology writes to "
                f"{_said(self.sinks)}, where they would be missing; write to the same places, or take another "
                f"checkpoint"
            )

    def emitted(self, values: Sequence[object], origins: Sequence[Origin]) -> None:
        """Note messages of many rows each."""
        if self._fingerprint is not None:
            self._rows.update(zip(origins, map(rows_of, values), strict=True))

    def after(self, origin: Origin) -> object:
        """Return the position after a message; its origin, where nothing is kept."""
        if self._fingerprint is None:
            return origin
        rows = origin.row + self._rows.get(origin, 1)
        for each in [each for each in self._rows if (each.partition, each.row) < (origin.partition, rows)]:
            del self._rows[each]
        return FramePosition(self._fingerprint, origin.partition, rows, self._key_of(rows), self.sinks)

    def _key_of(self, rows: int) -> Key:
        if self._ordered is None:
            return ()
        self._ordered.trail.forget(rows)
        return self._ordered.trail.last_of(rows)


def _read(position: object) -> FramePosition:
    try:
        return msgspec.convert(position, FramePosition)
    except msgspec.ValidationError as error:
        raise InvalidTopology(
            f"the state has the position of another source, which is no DataFrame ({error}); give the spout the source "
            f"that it had, or run with another state="
        ) from error


def _said(destinations: tuple[str, ...] | None) -> str:
    return " and ".join(destinations or ()) or "no exactly-once sink"
