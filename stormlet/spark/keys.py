"""A unique key: how far rows have been read in its order, as text that outlives the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from stormlet.errors import InvalidTopology

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

Key: TypeAlias = tuple[str, ...]
"""The key of one row: of each of its columns, what Spark casts to the same value again."""

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
"""Types of which one text is one value, and equal values are one. Of floating-point numbers neither holds."""
BINARY_ORDER = "UTF8_BINARY"
"""The collation in which texts that differ are not equal."""


def check_key(schema: StructType, columns: Sequence[str]) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for columns that cannot be a key."""
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
    """The key of a row, of the values of its columns."""
    return tuple(map(_text, values))


def _text(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def from_key_on(columns: Sequence[Column], types: Sequence[DataType], key: Key) -> Column:
    """Whether a row has this key, or comes after it."""
    from pyspark.sql import functions

    values = [functions.lit(text).cast(kind) for text, kind in zip(key, types, strict=True)]
    parts = list(zip(columns, values, strict=True))
    last, value = parts.pop()

    def within(later: Column, part: tuple[Column, Column]) -> Column:
        column, value = part
        return (column > value) | ((column == value) & later)

    return reduce(within, reversed(parts), last >= value)


class KeyTrail:
    """The keys of the rows that were read and may have to be gone on from. One thread adds to it, another asks.

    ``until_forgotten`` keeps them for a checkpoint; otherwise the last ones are enough, to read on after a loss.
    """

    def __init__(self, *, until_forgotten: bool) -> None:
        self._until_forgotten = until_forgotten
        self._lock = Lock()
        self._parts = deque[tuple[int, Sequence[Sequence[object]]]]()
        self._start: tuple[int, Key] = (0, ())

    def begin(self, rows: int, key: Key) -> None:
        """So many rows were read by another run, the last one with this key."""
        self._start = (rows, key)

    def add(self, first_row: int, keys: Sequence[Sequence[object]]) -> None:
        """These are the keys of the rows from ``first_row`` on."""
        with self._lock:
            if not self._until_forgotten:
                self._parts.clear()
            self._parts.append((first_row, keys))

    def last_of(self, rows: int) -> Key:
        """The key of the last one of so many rows; empty if there are none."""
        if rows == self._start[0]:
            return self._start[1]
        with self._lock:
            first_row, keys = next(part for part in reversed(self._parts) if part[0] < rows)
        return key_of(keys[rows - 1 - first_row])

    def forget(self, rows: int) -> None:
        """Nobody will ask for less than so many rows any more."""
        with self._lock:
            while self._parts and self._parts[0][0] + len(self._parts[0][1]) < rows:
                self._parts.popleft()
