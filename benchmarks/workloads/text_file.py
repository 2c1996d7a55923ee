"""Storm's ``FileReadWordCountTopo``: the lines of a file, over and over, split and counted by two kinds of bolts."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random

from stormlet.bench.word_count import WORDS, Count
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.tuples import Tuple
from stormlet.errors import EndOfStream
from stormlet.model.components import BasicBolt, Collector, Spout, SpoutCollector, TaskContext
from stormlet.topology import Topology

LINES = 14_000
FEWEST_WORDS = 5
MOST_WORDS = 9
SEED = 20100919


class FileReadSpout(Spout[str]):
    """Has the whole file in memory, and emits so many lines of it, beginning anew at its end."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._count = count
        self._emitted = 0
        self._lines: Iterator[str] = iter(())

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        """Read the file."""
        self._lines = cycle(self._path.read_text("ascii").splitlines())

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        """Emit the next line."""
        if self._emitted == self._count:
            raise EndOfStream
        self._emitted += 1
        out.emit(next(self._lines), message_id=self._emitted)


class SplitSentence(BasicBolt[str, str]):
    """Splits lines at blanks."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        """Emit the words."""
        for word in tup.value.split():
            out.emit(word)


def file_word_count(size: int, *, tasks: int, ackers: int) -> Figures:
    """One spout, and so many tasks that split and that count."""
    text = [_line(random) for random in [Random(SEED)] for _ in range(LINES)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "randomwords.txt"
        path.write_text("\n".join(text), "ascii")
        lines = Counter(islice(cycle(text), size))
        return run(_file_word_count(path, lines, tasks, ackers))


def _line(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(FEWEST_WORDS, MOST_WORDS)))


async def _file_word_count(path: Path, lines: Counter[str], tasks: int, ackers: int) -> Figures:
    topology = Topology("bench", ackers=ackers)
    counts: list[Counter[str]] = []
    read = topology.spout("read", partial(FileReadSpout, path, lines.total()))
    words = topology.bolt("split", SplitSentence, read.local_or_shuffle(), parallelism=tasks)
    topology.bolt("count", partial(Count, counts), words.fields(), parallelism=tasks)
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        seconds = time.perf_counter() - began
        expect(running.statistics().components["read"].acked, lines.total(), "lines acked")
    _check(counts, lines)
    deliveries = lines.total() + sum(each.total() for each in counts)
    return {"tuples_per_s": deliveries / seconds}


def _check(counts: list[Counter[str]], lines: Counter[str]) -> None:
    expected = Counter[str]()
    for line, times in lines.items():
        for word in line.split():
            expected[word] += times
    expect(sum(counts, Counter[str]()), expected, "counts of words")
    expect(sum(map(len, counts)), len(expected), "words that one task alone counted")


WORKLOADS = tuple(
    Workload(
        f"file-1-{tasks}-{tasks}{suffix}",
        f"Storm's file word count 1/{tasks}/{tasks}, {label}",
        partial(file_word_count, tasks=tasks, ackers=ackers),
        70_000,
    )
    for tasks in (1, 2)
    for ackers, suffix, label in ((1, "", "acked"), (0, "-unacked", "ackers=0"))
)
