"""Topologies in epochs, for the tests on Spark: their classes are imported by Spark's tasks."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from stormlet import BasicBolt, Collector, KeyedBolt, Reject, Topology, Tuple, Value
from stormlet.spark import DataFrameSink, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Word(msgspec.Struct, frozen=True):
    """A word."""

    word: str


class Seen(msgspec.Struct, frozen=True):
    """A word, and how often it has come so far."""

    word: str
    count: int


class Count(BasicBolt[Word, Seen]):
    """Counts words. Words that begin with ``bad`` are rejected."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[Word], out: Collector[Seen]) -> None:
        """Count one."""
        word = tup.value.word
        if word.startswith("bad"):
            raise Reject(f"{word} is bad")
        self.counts[word] += 1
        out.emit(Seen(word, self.counts[word]))


class CountByKey(KeyedBolt[str, Word, Seen]):
    """Counts words in keyed state. Words that begin with ``bad`` are rejected after they were counted."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Seen]) -> None:
        """Count one."""
        self.total += 1
        out.emit(Seen(self.key, self.total))
        if self.key.startswith("bad"):
            raise Reject(f"{self.key} is bad")


class SumByKey(CountByKey):
    """Has another state beside the one that it inherits."""

    sums = Value(int, 0)


class Locked(Count):
    """Cannot be saved."""

    def execute(self, tup: Tuple[Word], out: Collector[Seen]) -> None:
        """Count one."""
        self.lock = (each for each in ())
        super().execute(tup, out)


class MakesLocks(Count):
    """Cannot be saved from its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = defaultdict[str, int](lambda: 0)


class Log(BasicBolt[Seen, None]):
    """Numbers all that comes to it, in the driver."""

    lines: ClassVar[list[tuple[int, str, int]]] = []

    def __init__(self) -> None:
        self.number = 0

    def execute(self, tup: Tuple[Seen], out: Collector[None]) -> None:
        """Note one."""
        self.number += 1
        type(self).lines.append((self.number, tup.value.word, tup.value.count))


def same(word: Word) -> Word:
    """The word."""
    return word


def words_of(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream of the words in files of a folder, one file in each micro-batch."""
    return spark.readStream.option("maxFilesPerTrigger", 1).schema("word string").json(str(folder))


def write(folder: Path, *files: Iterable[str]) -> None:
    """Write files of words, each newer than those before."""
    folder.mkdir(exist_ok=True)
    first = len([*folder.glob("*.json")])
    for number, words in enumerate(files, first):
        file = folder / f"{number:04}.json"
        file.with_suffix(".tmp").write_text("".join(f'{{"word": "{word}"}}\n' for word in words))
        moment = time.time() - 1000 + number
        file.with_suffix(".tmp").rename(file)
        os.utime(file, (moment, moment))


def counting(
    spark: SparkSession,
    folder: Path,
    *,
    count: Any = Count,
    tasks: int = 3,
    exactly_once: bool = True,
    **options: Any,
) -> Topology:
    """Counts the words of ``in``, and writes each count to ``out``."""
    topology = Topology("counting", max_attempts=2, replay_delay=0)
    words = topology.spout("words", outputs=Word)
    kept = topology.bolt("same", same, words.shuffle())
    seen = topology.bolt("count", count, kept.fields("word"), parallelism=tasks, outputs=Seen)
    topology.bolt(
        "write", DataFrameSink(folder / "out" / "counts", exactly_once=exactly_once), seen.shuffle()
    )
    topology.bolt("log", Log, seen.global_())
    stream(
        words_of(spark, folder / "in"),
        topology,
        into=words,
        **{"checkpoint": folder / "checkpoint", "trigger": {"availableNow": True}, **options},
    )
    return topology


def totals(spark: SparkSession, folder: Path) -> Sequence[tuple[str, int]]:
    """All counts that were written."""
    rows = spark.read.parquet(str(folder / "out" / "counts")).select("word", "count").collect()
    return sorted((row["word"], row["count"]) for row in rows)


def expected(*files: Iterable[str]) -> Sequence[tuple[str, int]]:
    """The counts of these words."""
    counts = Counter(word for words in files for word in words if not word.startswith("bad"))
    return sorted((word, number) for word, count in counts.items() for number in range(1, count + 1))
