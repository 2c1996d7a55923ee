"""A run that is killed at any moment: reads files under a checkpoint, and notes each row that it got and each
checkpoint that it has written, and when."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stormlet import Reject, Topology
from stormlet.spark import DataFrameSpout, spark_session
from stormlet.spark.source import reader
from stormlet.spark.source.reader import ResumingReader

SAVE_EVERY = 0.1
"""Seconds between two checkpoints."""


@contextmanager
def noted_saves(folder: Path) -> Generator[None]:
    """Has ``saves`` tell of each checkpoint when it was begun, and when it was written."""
    save = ResumingReader._save

    async def noted(reader: ResumingReader) -> None:
        began = time.time()
        await save(reader)
        print(began, time.time(), file=saves)

    with (folder / "saves").open("a", buffering=1) as saves:
        ResumingReader._save = noted  # type: ignore[method-assign]
        yield


async def main(folder: Path, *, in_order: bool) -> None:
    """Read everything that is not done, slowly; ``in_order`` reads a DataFrame that has no order of its own."""
    spark = spark_session("local[2]", **{"spark.sql.shuffle.partitions": "3"})
    frame = spark.read.parquet(str(folder / "rows"))
    seen = (folder / "seen").open("a", buffering=1)

    async def note(row: tuple[int]) -> None:
        if row[0] % 100 == 13:
            raise Reject("unlucky")
        await asyncio.sleep(0.001)
        print(row[0], time.time(), file=seen)

    reader.SAVE_EVERY = SAVE_EVERY
    topology = Topology("killed", max_spout_pending=50)
    ways: dict[str, Any] = {"checkpoint": folder / "checkpoint", "order_by": "id" if in_order else ()}
    rows = topology.spout("rows", DataFrameSpout(frame.distinct() if in_order else frame, **ways))
    topology.bolt("note", note, rows.shuffle())
    with noted_saves(folder):
        async with topology.run(dead_letters=folder / "letters.jsonl") as running:
            await running.finished()
    seen.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), in_order="in-order" in sys.argv))
