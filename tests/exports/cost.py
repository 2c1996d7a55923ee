"""The price of exports for an acked word count, in turns: ``python -m tests.exports.cost [ROUNDS [WAY ...]]``.

Each column is the best of its rounds. ``again`` is the same as ``off``: what differs there is noise.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from stormlet import TaskHook, Topology, is_compiled
from stormlet.bench.word_count import WORDS_PER_SENTENCE, Count, sentences, split
from stormlet.exports.opentelemetry import Traces

SIZE = 20_000


class Hears(TaskHook):
    """Hears of everything."""

    def emit(self, info: object) -> None:
        """Return."""

    bolt_execute = bolt_ack = bolt_fail = spout_ack = spout_fail = emit


class Drops(SpanExporter):
    """Exports to nowhere: what exporters do with spans is not looked at here."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Return."""
        return SpanExportResult.SUCCESS


def traces(share: float) -> Traces:
    """Traces by the SDK, which hands spans to a thread, as it does in a service."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Drops()))
    return Traces(share, tracer_provider=provider)


async def nanoseconds(**options: Any) -> float:
    """What a tuple takes in one run."""
    topology = Topology("cost")
    counts: list[Counter[str]] = []
    words = topology.bolt("split", split, topology.spout("sentences", sentences(SIZE)).shuffle())
    topology.bolt("count", partial(Count, counts), words.fields())
    began = time.process_time()
    async with topology.run(**options) as running:
        await running.finished()
    return (time.process_time() - began) / SIZE / (1 + WORDS_PER_SENTENCE) * 1e9


def main(rounds: int) -> None:
    """Print the price of a tuple, and the part that it is more than without."""
    only = sys.argv[2:]
    ways: dict[str, dict[str, Any]] = {
        "off": {},
        "again": {},
        "hooks that hear nothing": {"hooks": [TaskHook]},
        "hooks that hear all": {"hooks": [Hears]},
        "traces 0": {"traces": traces(0)},
        "traces 1 in 1000": {"traces": traces(0.001)},
        "traces 1 in 100": {"traces": traces(0.01)},
    }
    ways = {way: options for way, options in ways.items() if not only or way in only}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, options in ways.items():
            best[way] = min(best[way], asyncio.run(nanoseconds(**options)))
    print("compiled" if is_compiled() else "interpreted")
    for way, figure in best.items():
        print(f"{way:25} {figure:8.0f} ns  {figure / best['off'] - 1:+7.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
