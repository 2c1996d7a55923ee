"""Reads a DataFrame in the order of a unique key, as one sequence, and goes on after any of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple, cast

from stormlet.errors import SparkFailed
from stormlet.spark.conversion import Conversion, conversion
from stormlet.spark.keys import Key, KeyTrail, check_key, from_key_on, key_of
from stormlet.spark.packing import ALL, PACKED, packer, unpacked
from stormlet.spark.reading import Chunk, Done, naming_rows
from stormlet.spark.refining import Refining

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

WHOLE = 0
"""The partition that all rows count as: where Spark cuts them may differ each time, their order does not."""


class KeyedBatch(NamedTuple):
    """Rows in order."""

    rows: pa.RecordBatch
    keys: list[tuple[object, ...]]


class OrderedRead:
    """A :data:`~stormlet.spark.reading.Read` in the order of a key; one that ``resumes`` keeps the keys that a
    checkpoint may need.

    Raises :class:`~stormlet.errors.InvalidTopology` for columns that cannot be a key.
    """

    def __init__(
        self,
        frame: DataFrame,
        emitted: Conversion,
        order_by: Sequence[str],
        *,
        batches: bool,
        resumes: bool,
    ) -> None:
        self._frame = frame
        self._emitted = emitted
        self._in_batches = batches
        check_key(frame.schema, order_by)
        # In UTC, as an hour of autumn has the same local times as the one before it.
        self._key = conversion(frame.schema, Refining(UTC, "arrow"), record=None, columns=order_by)
        self.trail = KeyTrail(until_forgotten=resumes)
        """The keys of the rows read."""

    @property
    def order_by(self) -> tuple[str, ...]:
        """The columns of the key."""
        return self._key.names

    def __call__(self, done: Done) -> Iterator[Chunk]:
        """Raises :class:`~stormlet.errors.SparkFailed` for a key that is null or not unique, and for a row to
        go on from that is there no more."""
        row = done.get(WHOLE, 0)
        if row == ALL:
            return
        last = self.trail.last_of(row)
        batches = self._checked(self._batches(last))
        for batch in self._after(last, batches) if last else batches:
            rows = len(batch.keys)
            self.trail.add(row, batch.keys)
            with naming_rows(WHOLE, row, rows):
                values: list[object] = (
                    [batch.rows] if self._in_batches else self._emitted.of_batch(batch.rows)
                )
            yield Chunk(WHOLE, row, rows, values)
            row += rows

    def _after(self, last: Key, batches: Iterator[KeyedBatch]) -> Iterator[KeyedBatch]:
        """Without the row that was read last. It was asked for, too, because it must be there: else the DataFrame is
        not what it was."""
        first = next(batches, None)
        if first is None or key_of(first.keys[0]) != last:
            raise SparkFailed(
                f"the DataFrame has changed: it was read up to {self._said(last)}, and has no such row now; remove the "
                f"checkpoint to begin anew"
            )
        if len(first.keys) > 1:
            yield KeyedBatch(first.rows.slice(1), first.keys[1:])
        yield from batches

    def _checked(self, batches: Iterator[KeyedBatch]) -> Iterator[KeyedBatch]:
        previous: tuple[object, ...] | None = None
        for batch in batches:
            for key in batch.keys:
                if None in key:
                    name = self.order_by[key.index(None)]
                    raise SparkFailed(
                        f"order_by= needs a key that all rows have, and a row's {name!r} is null; leave such rows out"
                    )
                if key == previous:
                    raise SparkFailed(
                        f"order_by= needs a unique key, and there are two rows with {self._said(key_of(key))}; order "
                        f"by more columns, or leave one of them out"
                    )
                previous = key
            yield batch

    def _batches(self, start: Key) -> Iterator[KeyedBatch]:
        packed = self._sorted(start).mapInArrow(packer({}), PACKED)
        for row in packed.toLocalIterator(prefetchPartitions=True):
            batch = unpacked(cast("bytes", row[3]))
            read = len(self._emitted.names)
            keys = self._key.of_batch(_renamed(batch.columns[read:], self.order_by))
            rows = _renamed(batch.columns[:read], self._emitted.names)
            yield KeyedBatch(rows, cast("list[tuple[object, ...]]", keys))

    def _sorted(self, start: Key) -> DataFrame:
        """What is emitted and then the key, from a key on. Columns are found by place, as names may need quotes."""
        from pyspark.sql import functions

        columns = {name: functions.col(f"c{place}") for place, name in enumerate(self._frame.columns)}
        key = [columns[name] for name in self.order_by]
        rows = self._frame.toDF(*(f"c{place}" for place in range(len(self._frame.columns))))
        if start:
            types = [self._frame.schema[name].dataType for name in self.order_by]
            rows = rows.where(from_key_on(key, types, start))
        emitted = (columns[name] for name in self._emitted.names)
        return rows.orderBy(*key).select(*emitted, *(each.alias(f"k{n}") for n, each in enumerate(key)))

    def _said(self, key: Key) -> str:
        return " and ".join(f"{name}={text}" for name, text in zip(self.order_by, key, strict=True))


def _renamed(columns: Sequence[pa.Array], names: Sequence[str]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, list(names))
