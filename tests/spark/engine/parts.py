"""A batch that replaces what the run before it has written: its classes are imported by Spark's tasks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

from stormlet import BasicBolt, Collector, Reject, Topology, Tuple
from stormlet.spark import DataFrameSink

NUMBERS = 20_000
KEYS = 30
REJECTED = range(14, NUMBERS, 1000)
"""The numbers that are rejected."""


class Part(msgspec.Struct, frozen=True):
    """A number that one of the runs has taken."""

    run: int
    key: int
    number: int


class Total(msgspec.Struct, frozen=True):
    """How many numbers of a key one of the runs has taken."""

    run: int
    key: int
    parts: int


class Count(BasicBolt[Part, Total]):
    """Counts the parts of each key."""

    def __init__(self) -> None:
        self.totals: dict[tuple[int, int], int] = {}

    def execute(self, tup: Tuple[Part], out: Collector[Total]) -> None:
        """Count one."""
        key = (tup.value.run, tup.value.key)
        self.totals[key] = self.totals.get(key, 0) + 1

    def finish(self, out: Collector[Total]) -> None:
        """Emit all counts."""
        for (run, key), parts in self.totals.items():
            out.emit(Total(run, key, parts))


def part(run: int, number: int) -> Part:
    """A part, unless it is rejected."""
    if number in REJECTED:
        raise Reject("unlucky")
    return Part(run, number % KEYS, number)


def topology(folder: Path, run: int) -> Topology:
    """Has two sinks, of which the first writes many files."""
    made = Topology("killed")
    numbers = made.spout("numbers", range(NUMBERS), outputs=int)
    parts = made.bolt("part", partial(part, run), numbers.shuffle(), outputs=Part)
    totals = made.bolt("count", Count, parts.fields("key"), parallelism=2, outputs=Total)
    for name, rows, by in (("parts", parts, "key"), ("totals", totals, ())):
        sink = DataFrameSink(folder / "out" / name, mode="overwrite", partition_by=by)
        made.bolt(f"write {name}", sink, rows.shuffle())
    return made
