"""A run that the test of SIGKILL kills: reads files under a checkpoint, and notes each row that it was given."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from stormlet import Reject, Topology
from stormlet.spark import DataFrameSpout, resuming, spark_session


async def main(folder: Path) -> None:
    """Read everything that is not done, slowly."""
    spark = spark_session("local[2]")
    frame = spark.read.parquet(str(folder / "rows"))
    seen = (folder / "seen").open("a", buffering=1)

    async def note(row: tuple[int]) -> None:
        if row[0] % 100 == 13:
            raise Reject("unlucky")
        await asyncio.sleep(0.0005)
        print(row[0], file=seen)

    resuming.SAVE_EVERY = 0.1
    topology = Topology("killed", max_spout_pending=50)
    rows = topology.spout("rows", DataFrameSpout(frame, checkpoint=folder / "checkpoint"))
    topology.bolt("note", note, rows.shuffle())
    async with topology.run(dead_letters=folder / "letters.jsonl") as running:
        await running.finished()
    seen.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
