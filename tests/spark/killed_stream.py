"""A stream that writes exactly once and is killed again and again: its files come one after another while it runs.

With "fail_batch" no row is a dead letter: a failed one has its whole batch given back to Spark. With the name of a
state its batches are epochs of that, and lines are joined by it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random
from typing import Any

from stormlet import Collector, KeyedBolt, Reject, Topology, Tuple, Value
from stormlet.spark import DataFrameSink, RestartPolicy, spark_session, stream
from stormlet.spark.stream.reader import OnFailure
from tests.spark.killed_epochs import STARTED, STATE, Line, Lines, Order, Sum

PAUSE = 0.3
"""Seconds from one file to the next."""
PENDING = 10
"""Fewer than a file has, so that most rows that fail do so while others are yet to be emitted."""


class TrustingSum(Sum):
    """Takes lines that are still alone in the end for those of an order that has failed. So it would not notice two
    lines of one kind, if it had kept one of an attempt that has failed."""

    def flush(self, out: Collector[Line]) -> None:
        while self.waiting:
            out.ack(self.waiting.popitem()[1])


class KeyedSum(KeyedBolt[int, Line, Line]):
    """Joins the lines of an order by its state."""

    amount = Value(int, 0)
    lines = Value(int, 0)

    def execute(self, tup: Tuple[Line], out: Collector[Line]) -> None:
        self.amount += tup.value.amount
        self.lines += 1
        if self.lines > 1:  # a third one would bring a sum too many
            out.emit(Line(tup.value.id, 0, self.amount))


def topology(
    folder: Path, seed: int, on_failure: OnFailure, *, to_end: bool, with_state: bool = False
) -> Topology:
    """All of it; ``seed`` is of the failures. ``to_end`` is of a stream that ends when it has done what is there."""
    reader = spark_session("local[2]").readStream.schema("id bigint NOT NULL")
    frame = reader.option("maxFilesPerTrigger", "1").json(str(folder / "input"))
    options: dict[str, Any] = {"state": folder / STATE} if with_state else {}
    made = Topology("killed", max_attempts=1000, replay_delay=0.01, max_spout_pending=PENDING, **options)
    orders = made.spout("orders", outputs=Order)
    failing = (Reject, 50) if on_failure == "fail_batch" else (OSError, 200)
    lines = made.bolt("lines", Lines(Random(seed), *failing), orders.shuffle(), outputs=Line)
    by: Any = KeyedSum if with_state else TrustingSum
    sums = made.bolt("sum", by, lines.fields("id"), parallelism=2, outputs=Line)
    for name, rows in (("lines", lines), ("sums", sums)):
        # A row that waits for others in a sink would have the bolt above flushed before its batch is given back.
        sink = DataFrameSink(folder / "out" / name, rows=1, exactly_once=True)
        made.bolt(f"write {name}", sink, rows.shuffle())
    stream(
        frame,
        made,
        into=orders,
        checkpoint=folder / "checkpoint",
        on_failure=on_failure,
        restarts=RestartPolicy(most=1000, longest_pause=0.5),
        trigger={"availableNow": True} if to_end else None,
    )
    return made


async def deliver(folder: Path) -> None:
    """Move the files that are waiting to where the stream looks for them."""
    for path in sorted((folder / "waiting").iterdir()):
        path.rename(folder / "input" / path.name)
        await asyncio.sleep(PAUSE)


async def main(folder: Path, seed: int, on_failure: OnFailure, *, with_state: bool) -> None:
    """Do what is left to do."""
    made = topology(folder, seed, on_failure, to_end=False, with_state=with_state)
    print(STARTED, flush=True)
    async with made.run(dead_letters=folder / "letters.jsonl"):
        await deliver(folder)
    made = topology(folder, seed, on_failure, to_end=True, with_state=with_state)
    async with made.run(dead_letters=folder / "letters.jsonl") as running:
        await running.finished()


if __name__ == "__main__":
    way: OnFailure = "fail_batch" if "fail_batch" in sys.argv else "dead_letter"
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), way, with_state=STATE in sys.argv))
