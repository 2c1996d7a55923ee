"""A Parquet file that is read: its rows as objects of JSON, each with its number as the position behind it.

The types that JSON has not are written as msgspec writes and reads them, so that a record gets them back: times and
decimals as texts, bytes in base64. Numbers that are none (NaN) and infinite ones are texts, too. Times to the
nanosecond, for which Python has no type, are cut to microseconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from stormlet.connect.files.bookmark import HEAD
from stormlet.connect.files.opened import Opened, lines
from stormlet.errors import BrokerRefused, ConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1000
"""Rows that are made objects at a time."""


def needs_pyarrow() -> None:
    """Raise :class:`~stormlet.errors.BrokerRefused` if the package is missing."""
    try:
        import_module("pyarrow")
    except ImportError:
        raise BrokerRefused("Parquet files need pyarrow: pip install 'stormlet[parquet]'") from None


class OpenedParquet(Opened):
    """The rows of a Parquet file, from a row on. It is known by its end, too, where Parquet has its index."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`OSError`, and :class:`~stormlet.errors.ConnectorError` if it is no Parquet file."""
        from pyarrow.parquet import ParquetFile

        super().__init__(path, lines)
        self._rows: deque[bytes] = deque()
        self._batches: Iterator[pa.RecordBatch] | None = None
        try:
            with _named(path):
                self._parquet = ParquetFile(self._file)
        except BaseException:
            self.close()
            raise
        content = self._file
        content.seek(max(0, super().size - HEAD))
        self.head += content.read(HEAD)

    @property
    def size(self) -> int:
        """Rows that it has."""
        return self._parquet.metadata.num_rows

    def read(self) -> bool:
        """Read a batch; return False if there are no more."""
        with _named(self.path):
            if self._batches is None:
                self._batches = self._behind(self.position)
            batch = next(self._batches, None)
            if batch is None:
                return False
            self._rows.extend(map(msgspec.json.encode, _objects(batch)))
        return True

    def _behind(self, row: int) -> Iterator[pa.RecordBatch]:
        metadata = self._parquet.metadata
        for group in range(metadata.num_row_groups):
            if row >= (rows := metadata.row_group(group).num_rows):
                row -= rows  # it is not decoded
                continue
            for batch in self._parquet.iter_batches(ROWS, row_groups=[group], use_threads=False):
                if row < batch.num_rows:
                    yield batch.slice(row)
                row = max(0, row - batch.num_rows)

    def take(self, most: int, *, at_end: bool) -> list[tuple[bytes, int]]:
        """Give out rows, each with its number."""
        first = self.position + 1
        taken = [(self._rows.popleft(), first + number) for number in range(min(most, len(self._rows)))]
        self.position = self.last = self.position + len(taken)
        return taken


@contextmanager
def _named(path: Path) -> Generator[None]:
    """Say of errors which file it is. Those of the disk are not its own."""
    try:
        yield
    except Exception as error:  # the library has many, one for each thing that can be wrong
        if isinstance(error, OSError) and error.errno is not None:
            raise
        words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ConnectorError(
            f"{path} cannot be read as Parquet: {words}: mend it, or take it out of the folder"
        ) from None


def _objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    import pyarrow as pa

    columns = [_in_microseconds(column) for column in batch.columns]
    rows = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist(maps_as_pydicts="strict")
    with_floats = [field.name for field in batch.schema if _has_floats(field.type)]
    for name in with_floats:
        for row in rows:
            row[name] = _finite(row[name])
    return rows


def _in_microseconds(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return column.cast(pa.duration("us"), safe=False)
    return column


def _has_floats(kind: pa.DataType) -> bool:
    name = str(kind)  # that of a nested type has those of its parts
    return any(word in name for word in ("float", "double"))


def _finite(value: object) -> object:
    """Return a value whose numbers JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else _NAMES.get(value, "NaN")
    if isinstance(value, list):
        return [_finite(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in cast("dict[object, object]", value).items()}
    return value


_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}
