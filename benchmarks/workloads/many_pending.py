"""Word count while so many other trees stay open in the same shard of the ledger."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

from stormlet.bench.word_count import Count, check, rate, sentences, split
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.tuples import Tuple
from stormlet.model.components import Bolt, Collector, To
from stormlet.topology import Topology

TIMEOUT = 1000.0
"""Seconds: longer than any run."""


class Hold(Bolt[object, None]):
    """Keeps its inputs, and so their trees open."""

    def __init__(self, others_are_done: asyncio.Event) -> None:
        self._others_are_done = others_are_done

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """It stays open."""

    def flush(self, out: Collector[None]) -> None:
        """Nothing moves any more: the words are counted."""
        self._others_are_done.set()


class Source:
    """Messages that will stay open, then sentences; knows when these began."""

    def __init__(self, held: int, size: int) -> None:
        self._held = held
        self._size = size
        self.began = 0.0

    def messages(self) -> Iterator[str | To[int]]:
        """All of them."""
        for number in range(self._held):
            yield To(number, stream="held")
        self.began = time.perf_counter()
        yield from sentences(self._size)


def pending(size: int, *, held_per_sentence: float) -> Figures:
    """So many sentences, and this many times as many trees that stay open."""
    return run(_pending(size, max(1, round(size * held_per_sentence))))


async def _pending(size: int, held: int) -> Figures:
    # The drain has no time: what is held would be waited for.
    topology = Topology("bench", max_spout_pending=None, message_timeout=TIMEOUT, drain_timeout=0)
    source, counts, done = Source(held, size), list[Counter[str]](), asyncio.Event()
    lines = topology.spout("messages", source.messages, outputs={"default": str, "held": int})
    words = topology.bolt("split", split, lines.shuffle())
    topology.bolt("count", partial(Count, counts), words.fields())
    topology.bolt("hold", partial(Hold, done), lines.named("held").shuffle())
    async with topology.run() as running:
        await done.wait()
        seconds = time.perf_counter() - source.began
        components = running.statistics().components
        expect(components["__acker"].pending, held, "trees that stayed open")
        expect(components["messages"].acked, size, "sentences acked")
    check(sum(counts, Counter[str]()), size)
    return rate(size, seconds)


WORKLOADS = (
    Workload(
        "pending-1k",
        "word count, acked, beside 1,000 open trees",
        partial(pending, held_per_sentence=0.01),
        100_000,
    ),
    Workload(
        "pending-1m",
        "word count, acked, beside 1,000,000 open trees",
        partial(pending, held_per_sentence=10),
        100_000,
    ),
)
