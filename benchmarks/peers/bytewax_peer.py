"""Bytewax, with batches of several sizes from its source, and one worker.

Keyed is what a fields grouping is: what belongs to a word is with the worker that has this word. Of the operators for
that, ``stateful_batch`` is the fastest. Without a key, only one worker can count, in a variable of a function.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from stormlet.bench.word_count import Total, check, rate, sentences
from stormlet.bench.workload import Figures, Workload

if TYPE_CHECKING:
    from bytewax.dataflow import Stream
    from bytewax.inputs import DynamicSource
    from bytewax.operators import StatefulBatchLogic
    from bytewax.outputs import DynamicSink

BATCHES = (1, 256, 1000)


def keyed(size: int, *, batch: int) -> Figures:
    """Words are keyed by themselves."""
    import bytewax.operators as op

    def totals(lines: Stream[str], counts: Counter[str]) -> Stream[tuple[str, Total]]:
        words = op.flat_map("split", lines, split_keyed)
        return op.stateful_batch("count", words, lambda state: _logic(counts))

    return _measure(size, batch, totals)


def unkeyed(size: int, *, batch: int) -> Figures:
    """A function counts each word."""
    import bytewax.operators as op

    def totals(lines: Stream[str], counts: Counter[str]) -> Stream[Total]:
        def count(word: str) -> Total:
            counts[word] += 1
            return Total(word, counts[word])

        return op.map("count", op.flat_map("split", lines, str.split), count)

    return _measure(size, batch, totals)


def _measure(size: int, batch: int, totals: Callable[[Stream[str], Counter[str]], Stream[object]]) -> Figures:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    counts = Counter[str]()
    flow = Dataflow("word_count")
    op.output("nowhere", totals(op.input("lines", flow, _source(size, batch)), counts), nowhere())
    began = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - began
    check(counts, size)
    return rate(size, seconds)


def split_keyed(sentence: str) -> list[tuple[str, str]]:
    """Return the words of a sentence, each as its own key."""
    return [(word, word) for word in sentence.split()]


def _logic(counts: Counter[str]) -> StatefulBatchLogic[str, Total, None]:
    from bytewax.operators import StatefulBatchLogic

    class Count(StatefulBatchLogic[str, Total, None]):
        def on_batch(self, values: list[str]) -> tuple[Iterable[Total], bool]:
            totals: list[Total] = []
            for word in values:
                counts[word] += 1
                totals.append(Total(word, counts[word]))
            return totals, False

        def snapshot(self) -> None:
            """Nothing is recovered here."""

    return Count()


def _source(size: int, batch: int) -> DynamicSource[str]:
    from bytewax.inputs import DynamicSource, StatelessSourcePartition

    class Batches(StatelessSourcePartition[str]):
        def __init__(self, lines: Iterator[str]) -> None:
            self._lines = lines

        def next_batch(self) -> list[str]:
            lines = list(islice(self._lines, batch))
            if not lines:
                raise StopIteration
            return lines

    class Sentences(DynamicSource[str]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Batches:
            return Batches(sentences(size))

    return Sentences()


def nowhere() -> DynamicSink[object]:
    """Return a sink that drops everything."""
    from bytewax.outputs import DynamicSink, StatelessSinkPartition

    class Dropped(StatelessSinkPartition[object]):
        def write_batch(self, items: list[object]) -> None:
            """Nothing is written."""

    class Nowhere(DynamicSink[object]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Dropped:
            return Dropped()

    return Nowhere()


WORKLOADS = (
    *(
        Workload(
            f"bytewax-{batch}",
            f"Bytewax, keyed, batches of {batch:,}",
            partial(keyed, batch=batch),
            40_000 if batch == 1 else 100_000,
            "peer",
            "bytewax",
        )
        for batch in BATCHES
    ),
    *(
        Workload(
            f"bytewax-unkeyed-{batch}",
            f"Bytewax, no key, batches of {batch:,}",
            partial(unkeyed, batch=batch),
            100_000 if batch == 1 else 300_000,
            "peer",
            "bytewax",
        )
        for batch in BATCHES
    ),
)
