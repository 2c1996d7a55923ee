"""Topologies whose session is stopped while a stream runs; prints what they crash with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from stormlet import Topology, TopologyCrashed
from stormlet.spark import spark_session, stream


async def run(folder: Path, seconds: float) -> None:
    """Stop the session when the first row has been seen; each takes so many seconds."""
    (folder / "input").mkdir()
    (folder / "input" / "rows.json").write_text('{"id": 1}\n' * 100)
    spark, seen = spark_session("local[2]"), asyncio.Event()
    topology = Topology("stopped", drain_timeout=1.0)
    rows = topology.spout("rows")

    async def look(row: object) -> None:
        seen.set()
        await asyncio.sleep(seconds)

    topology.bolt("look", look, rows.shuffle())
    frame = spark.readStream.schema("id bigint").json(str(folder / "input"))
    stream(frame, topology, into=rows, checkpoint=folder / "checkpoint")
    async with topology.run(dead_letters=lambda letter: None) as running:
        await seen.wait()
        commits = folder / "checkpoint" / "commits" / "0"
        while not seconds and not commits.exists():  # noqa: ASYNC110 Spark tells nobody
            await asyncio.sleep(0.01)
        await asyncio.to_thread(spark.stop)
        await running.finished()


def crash(when: str, seconds: float) -> None:
    """Print what it crashes with."""
    with TemporaryDirectory() as folder:
        try:
            asyncio.run(run(Path(folder), seconds))
        except TopologyCrashed as crashed:
            print(f"{when} {type(crashed.__cause__).__name__}: {crashed.__cause__}", flush=True)


if __name__ == "__main__":
    crash("between batches", 0.0)
    crash("within a batch", 0.5)
