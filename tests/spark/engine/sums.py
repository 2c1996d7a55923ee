"""Sums by key, for executors that are killed: their classes are imported there."""

from __future__ import annotations

from random import SystemRandom

import msgspec

from stormlet import BasicBolt, Collector, Tuple

KEYS = 1000


class Pair(msgspec.Struct, frozen=True):
    """A key, and a part of its sum."""

    key: int
    part: int


class Total(msgspec.Struct, frozen=True):
    """A key, the number of its parts, and their sum."""

    key: int
    parts: int
    total: int


class Sum(BasicBolt[Pair, Total]):
    """Adds up the parts of each key."""

    def __init__(self) -> None:
        self.totals: dict[int, list[int]] = {}

    def execute(self, tup: Tuple[Pair], out: Collector[Total]) -> None:
        """Add one."""
        total = self.totals.setdefault(tup.value.key, [0, 0])
        total[0] += 1
        total[1] += tup.value.part

    def finish(self, out: Collector[Total]) -> None:
        """Emit all sums."""
        for key, (parts, total) in self.totals.items():
            out.emit(Total(key, parts, total))


def pair(number: int) -> Pair:
    """The same each time."""
    return Pair(number % KEYS, number)


def by_chance(number: int) -> Pair:
    """Another one each time."""
    return Pair(SystemRandom().randrange(KEYS), number)
