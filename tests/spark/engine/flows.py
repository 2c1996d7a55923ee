"""Topologies for the tests on Spark: their classes are imported by Spark's tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from stormlet import BasicBolt, Bolt, Collector, Reject, Topology, Tuple
from stormlet.model.streams import Stream


class Number(msgspec.Struct, frozen=True):
    """A whole number."""

    n: int


class Double(msgspec.Struct, frozen=True):
    """A number and twice the number."""

    n: int
    twice: int


class Total(msgspec.Struct, frozen=True):
    """How often a word occurs."""

    word: str
    count: int


class Pairs(Bolt[Number, tuple[int, int]]):
    """Joins a number with the next one."""

    def __init__(self) -> None:
        self.held: list[Tuple[Number]] = []

    def execute(self, tup: Tuple[Number], out: Collector[tuple[int, int]]) -> None:
        """Hold one, or emit two."""
        self.held.append(tup)
        if len(self.held) == 2:
            first, second = self.held
            out.emit((first.value.n, second.value.n), anchors=self.held)
            out.ack(first)
            out.ack(second)
            self.held = []


class Checks(BasicBolt[tuple[int, int], None]):
    """Rejects pairs below four, and fails at the first two attempts at others below eight."""

    def execute(self, tup: Tuple[tuple[int, int]], out: Collector[None]) -> None:
        """Check one."""
        if tup.value[0] < 4:
            raise Reject(f"{tup.value} is small")
        if tup.value[0] < 8 and tup.attempt < 3:
            raise ValueError("not yet")


class Fails(BasicBolt[Number, Number]):
    """Fails as many attempts as the number says; too many from five on."""

    def execute(self, tup: Tuple[Number], out: Collector[Number]) -> None:
        """Emit one."""
        if tup.attempt <= tup.value.n:
            raise ValueError(f"attempt {tup.attempt}")
        out.emit(tup.value)


class Wrong(Exception):
    """Cannot be pickled and made again."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} is not {other}")


class Count(BasicBolt[str, Total]):
    """Counts words."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one."""
        self.counts[tup.value] += 1

    def finish(self, out: Collector[Total]) -> None:
        """Emit the totals."""
        for word, count in self.counts.items():
            out.emit(Total(word, count))


class Keep(BasicBolt[object, None]):
    """Keeps what comes to it, in the driver."""

    kept: list[object]

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Keep one."""
        type(self).kept.append(tup.value)


class Unfinished(BasicBolt[Number, None]):
    """Raises at the end."""

    def execute(self, tup: Tuple[Number], out: Collector[None]) -> None:
        """Take one."""

    def finish(self, out: Collector[None]) -> None:
        """Raise."""
        raise OSError("the disk is full")


class Ends(BasicBolt[Number, Number]):
    """Emits one number when it finishes."""

    def execute(self, tup: Tuple[Number], out: Collector[Number]) -> None:
        """Take one."""

    def finish(self, out: Collector[Number]) -> None:
        """Emit."""
        out.emit(Number(0))


class Holds(Bolt[Number, Number]):
    """Settles nothing."""

    def execute(self, tup: Tuple[Number], out: Collector[Number]) -> None:
        """Hold it for ever."""


def split(line: str) -> Iterator[str]:
    """The words of a line."""
    yield from re.findall(r"\w+", line.lower())


def double(number: Number) -> Double:
    """Twice the number; seven is none of ours, and at four the first two attempts fail."""
    if number.n % 10 == 7:
        raise Reject(f"{number.n} ends in seven")
    return Double(number.n, 2 * number.n)


def times(number: Number) -> Double:
    """Twice any number."""
    return Double(number.n, 2 * number.n)


def with_lock(lock: object, number: Number) -> Double:
    """Takes along what cannot be pickled."""
    return double(number)


def unlucky(number: Number) -> Double:
    """Never succeeds for four."""
    if number.n == 4:
        raise Wrong(4, 5)
    return Double(number.n, 2 * number.n)


def word_count(lines: Iterable[str]) -> tuple[Topology, Stream[Total]]:
    """Words by fields."""
    topology = Topology("word-count")
    words = topology.bolt("split", split, topology.spout("lines", lines).shuffle())
    return topology, topology.bolt("count", Count, words.fields(), parallelism=3)


def half(number: Number) -> int:
    """The same for two numbers that follow each other."""
    return number.n // 2


def fails(numbers: Iterable[Number]) -> Topology:
    """Numbers that fail some attempts, in the first stage and in the second."""
    topology = Topology("fails", replay_delay=0)
    source = topology.spout("numbers", numbers, outputs=Number)
    failed = topology.bolt("first", Fails, source.shuffle())
    topology.bolt("second", Fails, failed.fields("n"))
    return topology


def joined(numbers: Iterable[Number]) -> Topology:
    """Pairs of numbers, some of which fail."""
    topology = Topology("joined", replay_delay=0)
    source = topology.spout("numbers", numbers, outputs=Number)
    pairs = topology.bolt("pairs", Pairs, source.fields(half))
    topology.bolt("checks", Checks, pairs.fields(str))
    return topology


def doubles(numbers: object, *, logic: object = double) -> tuple[Topology, Stream[Double]]:
    """Numbers by fields."""
    topology = Topology("doubles", replay_delay=0)
    source = topology.spout("numbers", numbers, outputs=Number)  # type: ignore[call-overload]
    return topology, topology.bolt("double", logic, source.fields("n"), parallelism=2)  # type: ignore[call-overload]


def parity(number: Number) -> Total:
    """One even, or one odd number."""
    return Total("odd" if number.n % 2 else "even", 1)


class Add(BasicBolt[Total, Total]):
    """Adds up totals, of which several may have become one before."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    @staticmethod
    def merge(one: Total, other: Total) -> Total:
        """Both together."""
        return Total(one.word, one.count + other.count)

    def execute(self, tup: Tuple[Total], out: Collector[Total]) -> None:
        """Add some; odd ones are rejected if they are a thousand."""
        if tup.value == Total("odd", 1000):
            raise Reject("a thousand")
        self.counts[tup.value.word] += tup.value.count

    def finish(self, out: Collector[Total]) -> None:
        """Emit all."""
        for word, count in self.counts.items():
            out.emit(Total(word, count))


def nothing(value: object) -> None:
    """Takes anything."""
