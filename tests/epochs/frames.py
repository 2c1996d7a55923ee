"""A DataFrame of words, as a source that is killed together with its process; the JVM ends by itself then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests import jvm

PARTS = 3


def source_of(words: Sequence[msgspec.Struct], folder: Path) -> Callable[[], Any]:
    """Start Spark, and return the source: the words, in a file for each part."""
    from stormlet.spark import DataFrameSpout, spark_session

    jvm.use_in_spark()
    if not folder.exists():
        _write(words, folder)
    return DataFrameSpout(spark_session("local[1]").read.parquet(str(folder)), as_=type(words[0]))


def _write(words: Sequence[msgspec.Struct], folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    half = folder.with_suffix(".half")  # of a life that was killed while it wrote
    half.mkdir(exist_ok=True)
    rows = [msgspec.structs.asdict(each) for each in words]
    size = len(rows) // PARTS + 1
    for part in range(PARTS):
        table: Any = pa.Table.from_pylist(rows[part * size : (part + 1) * size])
        parquet.write_table(table, half / f"part-{part}.parquet")
    half.rename(folder)
