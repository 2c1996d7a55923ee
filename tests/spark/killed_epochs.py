"""A run that writes exactly once and is killed again and again: failures, rejects, a join, and two sinks.

Its epochs are those of a state, or of a checkpoint, which is a state as well."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import msgspec

from stormlet import Bolt, Collector, Reject, Topology, Tuple
from stormlet.spark import DataFrameSink, DataFrameSpout, spark_session

EPOCH_ROWS = 40
CHECKPOINT = "checkpoint"
STATE = "killed.state"
"""The file of the state, where there is one; as an argument it says so."""
ROCKSDB = "killed.rocksdb"
"""The same for a directory of RocksDB."""
STARTED = "started"
"""What it prints before the topology starts: from then on it is worth killing."""

REJECTS = "id % 50 = 14"
"""Of which orders some are rejected."""
LINES = f"""
    SELECT id, part, id * part AS amount FROM orders LATERAL VIEW explode(array(1, 2)) AS part
    WHERE id % 7 <> 3 AND NOT ({REJECTS})
"""
"""What must be in ``lines`` in the end."""
SUMS = f"SELECT id, 0 AS part, sum(amount) AS amount FROM ({LINES}) GROUP BY id"
"""What must be in ``sums`` in the end."""
REJECTED = f"SELECT id FROM orders WHERE id % 7 <> 3 AND {REJECTS}"
"""What must be among the dead letters in the end."""


class Order(msgspec.Struct, frozen=True):
    id: int


class Line(msgspec.Struct, frozen=True):
    id: int
    part: int
    amount: int


class Lines:
    """The two lines of an order; in between, one order of so many fails, of ``error``."""

    def __init__(self, random: Random, error: type[Exception] = OSError, one_of: int = 200) -> None:
        self.random = random
        self.error = error
        self.one_of = one_of

    async def __call__(self, order: Order) -> AsyncIterator[Line]:
        if order.id % 7 == 3:
            return
        yield Line(order.id, 1, order.id)
        if order.id % 50 == 14:
            raise Reject("unlucky")
        if self.random.random() < 1 / self.one_of:
            raise self.error("flaky")
        await asyncio.sleep(0.002)
        yield Line(order.id, 2, order.id * 2)


class Sum(Bolt[Line, Line]):
    """Joins the lines of an order."""

    def __init__(self) -> None:
        self.waiting: dict[int, Tuple[Line]] = {}

    def execute(self, tup: Tuple[Line], out: Collector[Line]) -> None:
        other = self.waiting.pop(tup.value.id, None)
        if other is None:
            self.waiting[tup.value.id] = tup
            return
        out.emit(Line(tup.value.id, 0, tup.value.amount + other.value.amount), anchors=(tup, other))
        out.ack(tup)
        out.ack(other)

    def flush(self, out: Collector[Line]) -> None:
        while self.waiting:
            out.fail(self.waiting.popitem()[1], "its other line has not come")


def topology(folder: Path, seed: int, state: str = "") -> Topology:
    """All of it; ``seed`` is of the failures, and ``state`` the name of one or empty."""
    frame = spark_session("local[2]").read.parquet(str(folder / "orders"))
    if state:
        made = Topology("killed", state=folder / state, epoch_messages=EPOCH_ROWS, epoch_seconds=60.0)
        source = DataFrameSpout(frame, as_=Order)
    else:
        made = Topology("killed")
        source = DataFrameSpout(frame, as_=Order, checkpoint=folder / CHECKPOINT, epoch_rows=EPOCH_ROWS)
    orders = made.spout("orders", source)
    lines = made.bolt("lines", Lines(Random(seed)), orders.shuffle(), outputs=Line)
    sums = made.bolt("sum", Sum, lines.fields("id"), parallelism=2)
    for name, rows, options in (("lines", lines, {}), ("sums", sums, {"partition_by": "part"})):
        sink = DataFrameSink(folder / "out" / name, exactly_once=True, **options)
        made.bolt(f"write {name}", sink, rows.shuffle())
    return made


async def main(folder: Path, seed: int, state: str = "") -> None:
    """Do what is left to do."""
    made = topology(folder, seed, state)
    print(STARTED, flush=True)
    async with made.run(
        dead_letters=folder / "letters.jsonl", max_attempts=1000, replay_delay=0.01, replay_delay_max=0.5
    ) as running:
        await running.finished()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
