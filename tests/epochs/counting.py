"""A word count with durable state and two tables, to be killed: ``python -m tests.epochs.counting FILE WORDS``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import stormlet
from stormlet import Collector, KeyedBolt, SqliteTable, Topology, Tuple, Value


class Count(KeyedBolt[str, str, str]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1
        out.emit(tup.value)


class Unlucky:
    """Fails each thousandth word once, after it was counted."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, word: str) -> str:
        self.seen += 1
        if self.seen % 1000 == 0:
            raise ValueError("unlucky")
        return word


def words(count: int) -> Iterator[str]:
    """Some words."""
    for number in range(count):
        yield f"word {number * 7919 % 501}"


def topology(path: str, count: int) -> Topology:
    """The word count."""

    def source() -> Iterator[str]:
        yield from words(count)

    counting = Topology("counting", state=path, epoch_messages=500, replay_delay=0.001)
    counted = counting.bolt("count", Count, counting.spout("words", source).fields(), parallelism=2)
    passed = counting.bolt("unlucky", Unlucky(), counted.shuffle())
    counting.bolt("own table", SqliteTable("passed", str), passed.shuffle())
    counting.bolt("other table", SqliteTable("passed", str, path=f"{path}.rows"), passed.shuffle())
    return counting


if __name__ == "__main__":
    stormlet.run(topology(sys.argv[1], int(sys.argv[2])))
