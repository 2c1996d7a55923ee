"""The same work without a framework: the limit of everything that handles single tuples."""

from __future__ import annotations

import time
from collections import Counter

from stormlet.bench.word_count import WORKLOADS as OWN
from stormlet.bench.word_count import check, rate, sentences
from stormlet.bench.workload import Figures, Workload


def bare(size: int) -> Figures:
    """Nested loops and a dict, without records: less than the topology does."""
    counts: dict[str, int] = {}
    began = time.perf_counter()
    for sentence in sentences(size):
        for word in sentence.split():
            counts[word] = counts.get(word, 0) + 1
    seconds = time.perf_counter() - began
    check(Counter(counts), size)
    return rate(size, seconds)


WORKLOADS = (
    OWN["loops"],
    Workload("bare", "nested loops and a dict, no records", bare, 400_000, "limit"),
)
