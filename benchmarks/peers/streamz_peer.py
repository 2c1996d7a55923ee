"""streamz, synchronously: its buffers would make it slower."""

from __future__ import annotations

import time
from collections import Counter

from stormlet.bench.word_count import Total, check, rate, sentences
from stormlet.bench.workload import Figures, Workload


def measure(size: int) -> Figures:
    """Split, flatten, and a sink that counts."""
    from streamz import Stream

    counts = Counter[str]()

    def count(word: str) -> None:
        counts[word] += 1
        Total(word, counts[word])

    source = Stream()
    source.map(str.split).flatten().sink(count)
    began = time.perf_counter()
    for sentence in sentences(size):
        source.emit(sentence)
    seconds = time.perf_counter() - began
    check(counts, size)
    return rate(size, seconds)


WORKLOADS = (Workload("streamz", "streamz", measure, 50_000, "peer", "streamz"),)
