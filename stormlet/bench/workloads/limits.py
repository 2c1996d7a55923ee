"""The same work without a framework: what nothing that handles single tuples can reach."""

from __future__ import annotations

import time
from collections import Counter

from stormlet.bench.word_count import Total, check, rate, sentences
from stormlet.bench.workload import Figures, Workload


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
    Workload("loops", "nested loops, a record and a Counter per word", loops, 400_000, "limit"),
    Workload("bare", "nested loops and a dict, no records", bare, 400_000, "limit"),
)
