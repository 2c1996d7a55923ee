"""Word counts on the default configuration, with and without acking."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

from stormlet.bench.event_loop import run
from stormlet.bench.word_count import WORDS_PER_SENTENCE, Total, check, rate, sentences, split
from stormlet.bench.workload import Figures, Workload, expect
from stormlet.core.tuples import Tuple
from stormlet.model.components import BasicBolt, Collector
from stormlet.report.statistics import Statistics
from stormlet.topology import Topology


class Count(BasicBolt[str, Total]):
    """Counts words."""

    def __init__(self, all_counts: list[Counter[str]]) -> None:
        self.counts = Counter[str]()
        all_counts.append(self.counts)

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one word."""
        self.counts[tup.value] += 1
        out.emit(Total(tup.value, self.counts[tup.value]))


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
        check_statistics(running.statistics(), size, tracked=ackers > 0)
    check(sum(counts, Counter[str]()), size)
    return rate(size, seconds)


def check_statistics(statistics: Statistics, size: int, *, tracked: bool) -> None:
    """Raises :class:`~stormlet.bench.workload.WrongResult` unless every sentence was acked at its first attempt, and
    every word counted."""
    components = statistics.components
    expect(components["sentences"].acked, size, "sentences acked")
    expect(components["sentences"].failed, 0, "sentences failed")
    expect(components["count"].executed, size * WORDS_PER_SENTENCE, "words executed")
    if tracked:
        expect(components["__acker"].acked, size, "trees acked")


WORKLOADS = (
    Workload("acked", "word count, fully acked", partial(word_count, ackers=1), 100_000),
    Workload("unacked", "word count, ackers=0", partial(word_count, ackers=0), 100_000),
    Workload("ackers-2", "word count, 2 ackers", partial(word_count, ackers=2), 100_000),
    Workload("ackers-4", "word count, 4 ackers", partial(word_count, ackers=4), 100_000),
    Workload(
        "tasks-64", "word count, 64 tasks of each bolt", partial(word_count, ackers=1, tasks=64), 50_000
    ),
)
