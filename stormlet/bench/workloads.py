"""The things that are measured. Each runs in a process of its own: ``python -m stormlet.bench.workloads NAME
SIZE``."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from resource import RUSAGE_SELF, getrusage
from statistics import quantiles
from typing import TypeAlias

import msgspec

from stormlet.core.components import BasicBolt, Bolt, Collector, Spout, SpoutCollector
from stormlet.core.tuples import Tuple
from stormlet.errors import EndOfStream
from stormlet.topology import Topology

Figures: TypeAlias = dict[str, float]

WORDS_PER_SENTENCE = 6
DISTINCT_WORDS = 1000
SLOWNESS = 1000
"""Rounds of an empty loop: some ten microseconds, several times what the rest of the way costs."""


class Total(msgspec.Struct, frozen=True):
    """How often a word was seen so far."""

    word: str
    count: int


class Count(BasicBolt[str, Total]):
    """Counts words."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one word."""
        self.counts[tup.value] += 1
        out.emit(Total(tup.value, self.counts[tup.value]))


class Keep(Bolt[int, None]):
    """Never settles its inputs, and says when there are no more."""

    def __init__(self, got_all: asyncio.Event) -> None:
        self._got_all = got_all

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Leave the tree open."""

    def flush(self, out: Collector[None]) -> None:
        """Nothing moves any more."""
        self._got_all.set()


class Numbers(Spout[int]):
    """Emits integers under integer message ids."""

    def __init__(self, count: int) -> None:
        self._numbers = iter(range(count))

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Emit the next integer."""
        for number in self._numbers:
            out.emit(number, message_id=number)
            return
        raise EndOfStream


def sentences(count: int) -> Iterator[str]:
    """So many sentences of six words, of 1000 different ones."""
    words = [f"word{number}" for number in range(DISTINCT_WORDS)]
    pool = [
        " ".join(words[(start * 7 + step * 13) % DISTINCT_WORDS] for step in range(6)) for start in range(500)
    ]
    return islice(cycle(pool), count)


def split(sentence: str) -> Iterator[str]:
    """The words of a sentence."""
    yield from sentence.split()


def loops(size: int) -> Figures:
    """The limit: nested loops that build the same record and update the same kind of counter for each
    word."""
    counts = Counter[str]()
    began = time.perf_counter()
    for sentence in sentences(size):
        for word in sentence.split():
            counts[word] += 1
            Total(word, counts[word])
    return _rate(size, time.perf_counter() - began)


def bare(size: int) -> Figures:
    """Nested loops and a dict, without records: less than the topology does."""
    counts: dict[str, int] = {}
    began = time.perf_counter()
    for sentence in sentences(size):
        for word in sentence.split():
            counts[word] = counts.get(word, 0) + 1
    return _rate(size, time.perf_counter() - began)


def acked(size: int) -> Figures:
    """Word count with full acking, on the default configuration."""
    return asyncio.run(_word_count(size, ackers=1))


def unacked(size: int) -> Figures:
    """The same word count without ackers."""
    return asyncio.run(_word_count(size, ackers=0))


def latency(size: int) -> Figures:
    """Complete latency of a chain of two bolts, one tree at a time, as the host sees it."""
    return asyncio.run(_latency(size))


def pending(size: int) -> Figures:
    """Memory per pending tree with an integer message id; the tuple that a bolt holds of it is counted, its
    value is not."""
    return asyncio.run(_pending(size))


def flat(size: int) -> Figures:
    """Peak memory, in MiB, after a tenth and after all of so many tuples, with a slow last bolt and nothing
    but the bounded queues to hold the spout back (law B6)."""
    return asyncio.run(_flat(size))


async def _word_count(size: int, ackers: int) -> Figures:
    topology = Topology("bench", ackers=ackers)
    lines = topology.spout("sentences", sentences(size))
    words = topology.bolt("split", split, lines.shuffle())
    topology.bolt("count", Count, words.fields())
    async with topology.run() as running:
        began = time.perf_counter()
        await running.finished()
        seconds = time.perf_counter() - began
        counted = running.statistics().components["count"].executed
    assert counted == size * WORDS_PER_SENTENCE, f"{counted} words counted"
    return _rate(size, seconds)


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
    percentiles = quantiles(times, n=100)
    return {"median_us": percentiles[49], "p99_us": percentiles[98]}


def _same(number: int) -> int:
    return number


async def _pending(size: int) -> Figures:
    topology = Topology("bench", max_spout_pending=None, message_timeout=None, drain_timeout=0)
    got_all = asyncio.Event()
    numbers = topology.spout("numbers", lambda: Numbers(size))
    topology.bolt("keep", lambda: Keep(got_all), numbers.shuffle())
    gc.collect()
    tracemalloc.start()
    async with topology.run() as running:
        await got_all.wait()
        assert running.statistics().components["__acker"].pending == size
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    return {"bytes_per_tree": used / size}


async def _flat(size: int) -> Figures:
    peaks: list[float] = []

    def slow(number: int) -> None:
        for _ in range(SLOWNESS):
            pass
        if number in (size // 20, size // 2 - 1):
            peaks.append(getrusage(RUSAGE_SELF).ru_maxrss / 1024)

    topology = Topology("bench", max_spout_pending=None)
    numbers = topology.spout("numbers", range(size // 2))
    passed_on = topology.bolt("pass on", _same, numbers.shuffle())
    topology.bolt("slow", slow, passed_on.shuffle())
    async with topology.run() as running:
        await running.finished()
    return {"peak_mib_early": peaks[0], "peak_mib": peaks[1]}


def spark(size: int) -> Figures:
    """Rows from Spark, and back; see :func:`stormlet.bench.bridge.spark`."""
    from stormlet.bench import bridge

    return bridge.spark(size)


def spark_flat(size: int) -> Figures:
    """Memory with rows from Spark; see :func:`stormlet.bench.bridge.spark_flat`."""
    from stormlet.bench import bridge

    return bridge.spark_flat(size)


def _rate(size: int, seconds: float) -> Figures:
    return {"tuples_per_s": size * (1 + WORDS_PER_SENTENCE) / seconds}


WORKLOADS: dict[str, Callable[[int], Figures]] = {
    "loops": loops,
    "bare": bare,
    "acked": acked,
    "unacked": unacked,
    "latency": latency,
    "pending": pending,
    "flat": flat,
    "spark": spark,
    "spark-flat": spark_flat,
}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    json.dump(WORKLOADS[sys.argv[1]](int(sys.argv[2])), sys.stdout)
