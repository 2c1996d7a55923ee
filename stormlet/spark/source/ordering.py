"""Reads a DataFrame in the order of a unique key, as one sequence, and goes on after any of its rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from stormlet.errors import InvalidTopology, SparkFailed
from stormlet.spark.arrow.conversion import Conversion, conversion
from stormlet.spark.arrow.refiners import Refining
from stormlet.spark.source.reading import ALL, PACKED, Chunk, Done, by_place, naming_rows, packer, unpacked

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

Key: TypeAlias = tuple[str, ...]
"""Key of one row: for each column a text that Spark casts to the same value again. It outlives the process."""

KEY_TYPES = frozenset(
    {
        "ByteType",
        "ShortType",
        "IntegerType",
        "LongType",
        "DecimalType",
        "StringType",
        "DateType",
        "TimestampType",
        "TimestampNTZType",
    }
)
"""Types whose values and texts correspond one to one; those of floating-point numbers do not."""
BINARY_ORDER = "UTF8_BINARY"
"""The collation in which different texts are never equal."""

WHOLE = 0
"""The partition that all rows count as: Spark may cut them differently each time, but their order stays."""


def check_key(schema: StructType, columns: Sequence[str]) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for columns that cannot be a key."""
    for name in columns:
        if name not in schema.names:
            raise InvalidTopology(
                f"order_by= wants a column {name!r}, which the DataFrame lacks; it has {', '.join(schema.names)}"
            )
        kind = schema[name].dataType
        if type(kind).__name__ not in KEY_TYPES or getattr(kind, "collation", BINARY_ORDER) != BINARY_ORDER:
            raise InvalidTopology(
                f"order_by= takes whole numbers, decimals, texts and times, and column {name!r} is "
                f"{kind.simpleString()}; order by another unique key, or by a cast of it"
            )


def key_of(values: Sequence[object]) -> Key:
    """The key of a row, from the values of its columns."""
    return tuple(map(_text, values))


def _text(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def from_key_on(columns: Sequence[Column], types: Sequence[DataType], key: Key) -> Column:
    """A condition: a row has this key, or comes after it."""
    from pyspark.sql import functions

    values = [functions.lit(text).cast(kind) for text, kind in zip(key, types, strict=True)]
    parts = list(zip(columns, values, strict=True))
    last, value = parts.pop()

    def within(later: Column, part: tuple[Column, Column]) -> Column:
        column, value = part
        return (column > value) | ((column == value) & later)

    return reduce(within, reversed(parts), last >= value)


class KeyTrail:
    """The keys of the rows read, after which a later read may have to go on. One thread adds, another asks.

    With ``until_forgotten`` all are kept, for a checkpoint; otherwise only the last ones, to read on after a loss.
    """

    def __init__(self, *, until_forgotten: bool) -> None:
        self._until_forgotten = until_forgotten
        self._lock = Lock()
        self._parts = deque[tuple[int, Sequence[Sequence[object]]]]()
        self._start: tuple[int, Key] = (0, ())

    def keep(self) -> None:
        """Keep all from now on."""
        self._until_forgotten = True

    def begin(self, rows: int, key: Key) -> None:
        """Go on from another run, which has read ``rows`` rows, the last one with this key."""
        self._start = (rows, key)

    def add(self, first_row: int, keys: Sequence[Sequence[object]]) -> None:
        """Add the keys of the rows from ``first_row`` on."""
        with self._lock:
            if not self._until_forgotten:
                self._parts.clear()
            self._parts.append((first_row, keys))

    def last_of(self, rows: int) -> Key:
        """The key of the last one of the first ``rows`` rows; empty if there are none."""
        if rows == self._start[0]:
            return self._start[1]
        with self._lock:
            first_row, keys = next(part for part in reversed(self._parts) if part[0] < rows)
        return key_of(keys[rows - 1 - first_row])

    def forget(self, rows: int) -> None:
        """Drop the keys that only fewer than ``rows`` rows need."""
        with self._lock:
            while self._parts and self._parts[0][0] + len(self._parts[0][1]) < rows:
                self._parts.popleft()


class KeyedBatch(NamedTuple):
    """Rows in order, with their keys."""

    rows: pa.RecordBatch
    keys: list[tuple[object, ...]]


class OrderedRead:
    """A :data:`~stormlet.spark.source.reading.Read` in the order of a key. With ``resumes`` it keeps the keys that a
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
        """Read the rows that are not done. Raises :class:`~stormlet.errors.SparkFailed` for a key that is null or not
        unique, and if the last row done is missing."""
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
        """The batches without their first row, which is the last one done. It is read again because it must be there:
        otherwise the DataFrame has changed."""
        first = next(batches, None)
        if first is None or key_of(first.keys[0]) != last:
            raise SparkFailed(
                f"the DataFrame has changed: it was read up to {self._said(last)}, and has no such row now; remove the "
                f"checkpoint, or run with another state=, to begin anew"
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
        """The emitted columns and then those of the key, sorted, from a key on."""
        from pyspark.sql import functions

        columns = {name: functions.col(f"c{place}") for place, name in enumerate(self._frame.columns)}
        key = [columns[name] for name in self.order_by]
        rows = by_place(self._frame)
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
