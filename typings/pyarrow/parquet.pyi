"""Parquet files: the part that stormlet uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import RawIOBase
from pathlib import Path
from types import TracebackType

from pyarrow import RecordBatch, Schema

class FileMetaData:
    num_row_groups: int
    num_rows: int
    def row_group(self, i: int) -> RowGroupMetaData: ...

class RowGroupMetaData:
    num_rows: int
    total_byte_size: int

class ParquetFile:
    def __init__(self, source: Path | RawIOBase) -> None: ...
    def iter_batches(
        self, batch_size: int = ..., *, row_groups: Sequence[int] = ..., use_threads: bool = ...
    ) -> Iterator[RecordBatch]: ...
    @property
    def metadata(self) -> FileMetaData: ...
    def __enter__(self) -> ParquetFile: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class ParquetWriter:
    def __init__(
        self, where: Path, schema: Schema, *, use_dictionary: bool = ..., write_statistics: bool = ...
    ) -> None: ...
    def write_batch(self, batch: RecordBatch) -> None: ...
    def __enter__(self) -> ParquetWriter: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
