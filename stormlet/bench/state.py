"""Epochs and keyed state beside the acked word count without them, by the CPU time of the whole process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from stormlet.bench.word_count import Count, Total, check, sentences, split
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.state.commits import StateId, Stored
from stormlet.core.state.states import State
from stormlet.core.state.value_table import ValueTable
from stormlet.core.tuples import Tuple
from stormlet.model.components import BoltBase, Collector
from stormlet.model.state.declared import Value
from stormlet.model.state.keyed import KeyedBolt, states_of
from stormlet.runtime.run.handle import Running
from stormlet.state.places import ROCKSDB
from stormlet.state.stores import owned
from stormlet.topology import Topology

KEYS = 1_000_000
STRIDE = 618_033
"""From one of the million words to the next: neighbours are far apart, and each comes once before one comes again."""
TOTAL = StateId("count", "total")
FILE = ".state"
"""The place of a state, by the end of its name."""


class KeyedCount(KeyedBolt[str, str, Total]):
    """Counts words, in keyed state."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[Total]) -> None:
        """Count one word."""
        self.total += 1
        out.emit(Total(self.key, self.total))


class Input(msgspec.Struct, frozen=True):
    """The words that are counted."""

    of: Callable[[int], Iterator[str]]
    """So many messages."""
    check: Callable[[Counter[str], int], None]
    is_split: bool = True
    """True for sentences of six words, false for words."""

    @property
    def deliveries(self) -> int:
        """Those of a message."""
        return 7 if self.is_split else 1


def many_words(count: int) -> Iterator[str]:
    """So many sentences of six words, each another one of a million."""
    for number in range(0, 6 * count, 6):
        yield " ".join([f"word{(number + step) * STRIDE % KEYS}" for step in range(6)])


def _check_many(counts: Counter[str], size: int) -> None:
    expect((counts.total(), len(counts)), (6 * size, min(6 * size, KEYS)), "words, and different ones")


SENTENCES = Input(sentences, check)
MANY = Input(many_words, _check_many)


def stateless(size: int, *, of: Input = SENTENCES, place: str | None = None) -> Figures:
    """A ``Counter`` in a ``BasicBolt``; with a place, epochs are kept there, and the counts are not."""
    counts: list[Counter[str]] = []
    with TemporaryDirectory() as folder:
        state = f"{folder}/bench{place}" if place else None
        figures = run(_measured(size, of, partial(Count, counts), state, Topology("bench")))
    of.check(sum(counts, Counter[str]()), size)
    return figures


def in_memory(size: int, *, of: Input = SENTENCES) -> Figures:
    """Keyed state that ends with its run."""
    return run(_measured(size, of, KeyedCount, None, Topology("bench"), _check_state))


def _check_state(running: Running, of: Input, size: int) -> None:
    of.check(Counter(running.state("count")), size)


def keyed(
    size: int, *, place: str, of: Input = SENTENCES, messages: int = 10_000, seconds: float = 1.0
) -> Figures:
    """Keyed state at a place."""
    topology = Topology("bench", epoch_messages=messages, epoch_seconds=seconds)
    with TemporaryDirectory() as folder:
        path = f"{folder}/bench{place}"
        figures = run(_measured(size, of, KeyedCount, path, topology))
        with closing(owned(path)) as store:
            of.check(Counter(loaded(store.load())), size)
    return figures


async def _measured(
    size: int,
    of: Input,
    count: Callable[[], BoltBase[str, Total]],
    state: str | None,
    topology: Topology,
    check_run: Callable[[Running, Input, int], None] | None = None,
) -> Figures:
    stream = topology.spout("messages", of.of(size))
    words = topology.bolt("split", split, stream.shuffle()) if of.is_split else stream
    topology.bolt("count", cast("Any", count), words.fields())
    began, cpu_began = time.perf_counter(), time.process_time()
    async with topology.run(state=state) as running:
        await running.finished()
        expect(running.statistics().components["messages"].acked, size, "messages acked")
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    if check_run is not None:
        check_run(running, of, size)
    return {
        "tuples_per_cpu_s": size * of.deliveries / cpu,
        "tuples_per_s": size * of.deliveries / seconds,
    }


def loaded(stored: Stored) -> dict[str, int]:
    """The counts that a store has."""
    state = State(TOTAL, states_of(KeyedCount)["total"])
    state.load(stored.in_memory().states[TOTAL])
    return cast("ValueTable", state.tables[0]).live


_ROWS: tuple[tuple[str, str, Callable[[int], Figures], int], ...] = (
    ("state-none", "word count, acked, without state", stateless, 100_000),
    ("state-epochs", "epochs in a file, no keyed state", partial(stateless, place=FILE), 100_000),
    ("state-memory", "keyed state in memory", in_memory, 100_000),
    ("state-durable", "keyed state in a file, 10,000 messages an epoch", partial(keyed, place=FILE), 100_000),
    ("state-short", "the same, 1,000 messages an epoch", partial(keyed, place=FILE, messages=1000), 100_000),
    ("state-rocksdb", "keyed state in RocksDB, 10,000 messages an epoch", partial(keyed, place=ROCKSDB), 100_000),
    ("state-many-none", "a million words, without state", partial(stateless, of=MANY), 300_000),
    ("state-many", "a million words, keyed state in a file", partial(keyed, place=FILE, of=MANY), 300_000),
    (
        "state-many-rocksdb",
        "a million words, keyed state in RocksDB",
        partial(keyed, place=ROCKSDB, of=MANY),
        300_000,
    ),
)  # fmt: skip

WORKLOADS: Mapping[str, Workload] = {
    name: Workload(name, label, measure, size, "state", "rocksdict" if name.endswith("rocksdb") else "")
    for name, label, measure, size in _ROWS
}


def without_state(name: str) -> str:
    """Return the workload that is the same but for the state."""
    return "state-many-none" if name.startswith("state-many") else "state-none"
