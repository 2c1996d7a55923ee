"""A stream that writes exactly once and is killed again and again: its files come one after another while it runs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random

from stormlet import Topology
from stormlet.spark import DataFrameSink, spark_session, stream
from tests.spark.killed_epochs import STARTED, Line, Lines, Order, Sum

PAUSE = 0.3
"""Seconds from one file to the next."""


def topology(folder: Path, seed: int, *, to_end: bool) -> Topology:
    """All of it; ``seed`` is of the failures. ``to_end`` is of a stream that ends when it has done what is there."""
    reader = spark_session("local[2]").readStream.schema("id bigint NOT NULL")
    frame = reader.option("maxFilesPerTrigger", "1").json(str(folder / "input"))
    made = Topology("killed", max_attempts=1000, replay_delay=0.01)
    orders = made.spout("orders", outputs=Order)
    lines = made.bolt("lines", Lines(Random(seed)), orders.shuffle(), outputs=Line)
    sums = made.bolt("sum", Sum, lines.fields("id"), parallelism=2)
    for name, rows in (("lines", lines), ("sums", sums)):
        sink = DataFrameSink(folder / "out" / name, exactly_once=True)
        made.bolt(f"write {name}", sink, rows.shuffle(), parallelism=2)
    checkpoint = folder / "checkpoint"
    if to_end:
        stream(frame, made, into=orders, checkpoint=checkpoint, trigger={"availableNow": True})
    else:
        stream(frame, made, into=orders, checkpoint=checkpoint)
    return made


async def deliver(folder: Path) -> None:
    """Move the files that are waiting to where the stream looks for them."""
    for path in sorted((folder / "waiting").iterdir()):
        path.rename(folder / "input" / path.name)
        await asyncio.sleep(PAUSE)


async def main(folder: Path, seed: int) -> None:
    """Do what is left to do."""
    made = topology(folder, seed, to_end=False)
    print(STARTED, flush=True)
    async with made.run(dead_letters=folder / "letters.jsonl"):
        await deliver(folder)
    async with topology(folder, seed, to_end=True).run(dead_letters=folder / "letters.jsonl") as running:
        await running.finished()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
