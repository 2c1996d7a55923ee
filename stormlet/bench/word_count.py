"""The word count: its sentences, the check of its counts, and the workloads of ``python -m stormlet bench``.

The limit is two nested loops over the same sentences, which for every word build the same record and update a
``Counter``. Nothing that hands single tuples from one place to another can be as fast.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import cycle, islice

import msgspec

from stormlet.bench.workload import Figures, Workload, expect, quantile, run
from stormlet.core.tuples import Tuple
from stormlet.model.components import BasicBolt, Collector
from stormlet.report.statistics import Statistics
from stormlet.topology import Topology

WORDS_PER_SENTENCE = 6
DISTINCT_WORDS = 1000
DISTINCT_SENTENCES = 500
WORDS = tuple(f"word{number}" for number in range(DISTINCT_WORDS))


class Total(msgspec.Struct, frozen=True):
    """The count of a word so far."""

    word: str
    count: int


# --- the sentences, and the check of their counts -------------------------------------------------------------------


def sentences(count: int) -> Iterator[str]:
    """So many sentences of six words, of 1000 different ones."""
    return islice(cycle([_sentence(start) for start in range(DISTINCT_SENTENCES)]), count)


def _sentence(start: int) -> str:
    places = (start * 7 + step * 13 for step in range(WORDS_PER_SENTENCE))
    return " ".join(WORDS[place % DISTINCT_WORDS] for place in places)


def check(counted: Counter[str], size: int) -> None:
    """Raise :class:`~stormlet.bench.workload.WrongResult` unless these are the counts of so many sentences."""
    expect(counted.total(), size * WORDS_PER_SENTENCE, "words counted")
    rounds, rest = divmod(size, DISTINCT_SENTENCES)
    expected = Counter[str]()
    for start in range(DISTINCT_SENTENCES):
        for word in _sentence(start).split():
            expected[word] += rounds + (start < rest)
    expect(counted, +expected, "counts of words")


def rate(size: int, seconds: float) -> Figures:
    """One tuple is one delivery: a sentence to the bolt that splits it, or a word to the one that counts it."""
    return {"tuples_per_s": size * (1 + WORDS_PER_SENTENCE) / seconds}


# --- the limit ------------------------------------------------------------------------------------------------------


def loops(size: int) -> Figures:
    """Nested loops that build the same record and update the same kind of counter for each word."""
    counts = Counter[str]()
    began = time.perf_counter()
    for sentence in sentences(size):
        for word in sentence.split():
            counts[word] += 1
            Total(word, counts[word])
    seconds = time.perf_counter() - began
    check(counts, size)
    return rate(size, seconds)


# --- the topology, on the default configuration ---------------------------------------------------------------------


class Count(BasicBolt[str, Total]):
    """Counts words."""

    def __init__(self, all_counts: list[Counter[str]]) -> None:
        self.counts = Counter[str]()
        all_counts.append(self.counts)

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one word."""
        self.counts[tup.value] += 1
        out.emit(Total(tup.value, self.counts[tup.value]))


def split(sentence: str) -> Iterator[str]:
    """The words of a sentence."""
    yield from sentence.split()


def word_count(size: int, *, ackers: int, tasks: int = 1) -> Figures:
    """So many tasks of each bolt."""
    return run(_word_count(size, ackers, tasks))


async def _word_count(size: int, ackers: int, tasks: int) -> Figures:
    topology = Topology("bench", ackers=ackers)
    counts: list[Counter[str]] = []
    lines = topology.spout("sentences", sentences(size))
    words = topology.bolt("split", split, lines.shuffle(), parallelism=tasks)
    topology.bolt("count", partial(Count, counts), words.fields(), parallelism=tasks)
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        seconds = time.perf_counter() - began
        _check_statistics(running.statistics(), size, tracked=ackers > 0)
    check(sum(counts, Counter[str]()), size)
    return rate(size, seconds)


def _check_statistics(statistics: Statistics, size: int, *, tracked: bool) -> None:
    """Each sentence is acked at its first attempt, and each word is executed once."""
    components = statistics.components
    expect(components["sentences"].acked, size, "sentences acked")
    expect(components["sentences"].failed, 0, "sentences failed")
    expect(components["count"].executed, size * WORDS_PER_SENTENCE, "words executed")
    if tracked:
        expect(components["__acker"].acked, size, "trees acked")


def latency(size: int) -> Figures:
    """From the host's call of ``emit`` until the tree is acked, for a chain of two bolts, one tree at a time."""
    return run(_latency(size))


async def _latency(size: int) -> Figures:
    topology = Topology("bench")
    source = topology.spout("source", outputs=int)
    first = topology.bolt("first", _same, source.shuffle())
    topology.bolt("second", _same, first.shuffle())
    times: list[float] = []
    async with topology.run() as running:
        for number in range(size):
            began = time.perf_counter()
            await (await running.emit(source, number))
            times.append((time.perf_counter() - began) * 1e6)
        expect(running.statistics().components["second"].executed, size, "tuples executed")
    return {"median_us": quantile(times, 0.5), "p99_us": quantile(times, 0.99)}


def _same(number: int) -> int:
    return number


WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in (
        Workload("loops", "nested loops, a record and a Counter per word", loops, 400_000, "limit"),
        Workload("acked", "word count, fully acked", partial(word_count, ackers=1), 100_000),
        Workload("unacked", "word count, ackers=0", partial(word_count, ackers=0), 100_000),
        Workload("latency", "two bolts, one tree at a time", latency, 20_000),
    )
}
