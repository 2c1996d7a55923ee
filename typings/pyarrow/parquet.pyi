"""Parquet files: the part that the engine on Spark uses."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from pyarrow import RecordBatch, Schema

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
