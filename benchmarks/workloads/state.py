"""Epochs and keyed state beside the acked word count without them, by the CPU time of the whole process; loading of
state; and a host that waits for what it has emitted."""

from __future__ import annotations

import gc
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from benchmarks.memory import resident_bytes
from stormlet.bench.word_count import Count, Total, check, sentences, split
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.state.commits import Commit, StateId, Store
from stormlet.core.state.states import State
from stormlet.core.state.value_table import ValueTable
from stormlet.core.tuples import Tuple
from stormlet.model.components import BoltBase, Collector
from stormlet.model.state.declared import Value
from stormlet.model.state.keyed import KeyedBolt, states_of
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from stormlet.topology import Topology

KEYS = 1_000_000
STRIDE = 618_033
"""From one of the million words to the next: neighbours are far apart, and each comes once before one comes again."""
TOTAL = StateId("count", "total")


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
    deliveries: int
    """Of a message."""


def many_words(count: int) -> Iterator[str]:
    """So many sentences of six words, each another one of a million."""
    for number in range(0, 6 * count, 6):
        yield " ".join([f"word{(number + step) * STRIDE % KEYS}" for step in range(6)])


def single_words(count: int) -> Iterator[str]:
    """So many words of the usual sentences, each a message of its own."""
    return islice((word for line in sentences(count) for word in line.split()), count)


def _check_many(counts: Counter[str], size: int) -> None:
    expect((counts.total(), len(counts)), (6 * size, min(6 * size, KEYS)), "words, and different ones")


def _check_single(counts: Counter[str], size: int) -> None:
    expect(counts, Counter(single_words(size)), "counts of words")


SENTENCES = Input(sentences, check, 7)
MANY = Input(many_words, _check_many, 7)
SINGLE = Input(single_words, _check_single, 1)


def stateless(size: int, *, of: Input = SENTENCES, durable: bool = False) -> Figures:
    """A ``Counter`` in a ``BasicBolt``; if durable, with epochs in a file, in which the counts are not."""
    counts: list[Counter[str]] = []
    with TemporaryDirectory() as folder:
        state = f"{folder}/bench.state" if durable else None
        figures = run(_measured(size, of, partial(Count, counts), state, Topology("bench")))
    of.check(sum(counts, Counter[str]()), size)
    return figures


def keyed(
    size: int, *, durable: bool, of: Input = SENTENCES, messages: int = 10_000, seconds: float = 1.0
) -> Figures:
    """Keyed state, in memory or in a file."""
    topology = Topology("bench", epoch_messages=messages, epoch_seconds=seconds)
    with TemporaryDirectory() as folder:
        path = f"{folder}/bench.state"
        state: str | Store = path if durable else MemoryStore()
        figures = run(_measured(size, of, KeyedCount, state, topology))
        with closing(StateFile(path)) if durable else closing(cast("Store", state)) as store:
            of.check(Counter(_loaded(store.load().states[TOTAL])), size)
    return figures


async def _measured(
    size: int,
    of: Input,
    count: Callable[[], BoltBase[str, Total]],
    state: str | Store | None,
    topology: Topology,
) -> Figures:
    stream = topology.spout("messages", of.of(size))
    words = stream if of is SINGLE else topology.bolt("split", split, stream.shuffle())
    topology.bolt("count", cast("Any", count), words.fields())
    began, cpu_began = time.perf_counter(), time.process_time()
    async with topology.run(state=state) as running:
        await running.finished()
        expect(running.statistics().components["messages"].acked, size, "messages acked")
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return {
        "tuples_per_cpu_s": size * of.deliveries / cpu,
        "tuples_per_s": size * of.deliveries / seconds,
    }


def _loaded(blobs: object) -> dict[str, int]:
    state = State(TOTAL, states_of(KeyedCount)["total"])
    state.load(cast("Any", blobs))
    return cast("ValueTable", state.tables[0]).live


# --- loading --------------------------------------------------------------------------------------------------------


def load(size: int) -> Figures:
    """A state of so many keys from a file, as commits of 100,000 have left it, beside one blob with the same map."""
    with TemporaryDirectory() as folder:
        path = f"{folder}/bench.state"
        _fill(path, size)
        decoding = _decoding_seconds(size)
        gc.collect()
        before, found = resident_bytes(), list[dict[str, int]]()
        loading = _cpu_seconds(lambda: found.append(_from_file(path)))
        after = resident_bytes()
        expect(len(found[0]), size, "keys loaded")
        figures = {"load_s": loading, "load_over_decode": loading / decoding}
        if before is not None and after is not None:
            figures["bytes_per_key"] = (after - before) / size
        return figures


def _decoding_seconds(size: int) -> float:
    blob = msgspec.msgpack.encode({f"word{number}": number for number in range(size)})
    return _cpu_seconds(lambda: len(msgspec.msgpack.decode(blob, type=dict[str, int])))


def _from_file(path: str) -> dict[str, int]:
    with closing(StateFile(path)) as file:
        return _loaded(file.load().states[TOTAL])


def _fill(path: str, size: int) -> None:
    state, numbers = State(TOTAL, states_of(KeyedCount)["total"]), iter(range(size))
    table = cast("ValueTable", state.tables[0])
    with closing(StateFile(path, "bench")) as file:
        file.declare({TOTAL: state.declared.shape})
        for epoch in range(1, -(-size // 100_000) + 1):
            for number in islice(numbers, 100_000):
                table.put(f"word{number}", number)
            file.commit(Commit(epoch, 0.0, {}, state.seal()))


def _cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


# --- a host that waits ----------------------------------------------------------------------------------------------


def waiting(size: int) -> Figures:
    """The time of ``await tree`` for one word at a time, each an epoch of its own, beside a synced commit of a row."""
    return run(_waiting(size))


async def _waiting(size: int) -> Figures:
    topology = Topology("bench")
    source = topology.spout("messages", outputs=str)
    topology.bolt("count", KeyedCount, source.fields())
    with TemporaryDirectory() as folder, closing(_database(f"{folder}/bare")) as bare:
        ours, theirs = list[float](), list[float]()
        async with topology.run(state=f"{folder}/bench.state") as running:
            for number in range(size):
                began = time.perf_counter()
                await (await running.emit(source, f"word{number % 100}"))
                ours.append(time.perf_counter() - began)
                theirs.append(_commit(bare, number))
        with closing(StateFile(f"{folder}/bench.state")) as file:
            expect(sum(_loaded(file.load().states[TOTAL]).values()), size, "words counted")
    figures = {"await_ms": median(ours) * 1e3, "commit_ms": median(theirs) * 1e3}
    return {**figures, "await_over_commit": figures["await_ms"] / figures["commit_ms"]}


def _database(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, blob BLOB)")
    return database


def _commit(database: sqlite3.Connection, number: int) -> float:
    began = time.perf_counter()
    database.execute("INSERT INTO log VALUES (?, ?)", (number, b"x" * 16))
    return time.perf_counter() - began


_ROWS: tuple[tuple[str, str, Callable[[int], Figures], int], ...] = (
    ("state-none", "word count, acked, without state", stateless, 100_000),
    ("state-epochs", "epochs in a file, no keyed state", partial(stateless, durable=True), 100_000),
    ("state-memory", "keyed state in memory", partial(keyed, durable=False), 100_000),
    ("state-durable", "keyed state in a file, 10,000 messages an epoch", partial(keyed, durable=True), 100_000),
    ("state-short", "the same, 1,000 messages an epoch", partial(keyed, durable=True, messages=1000), 100_000),
    ("state-many-none", "a million words, without state", partial(stateless, of=MANY), 300_000),
    ("state-many", "a million words, keyed state in a file", partial(keyed, durable=True, of=MANY), 300_000),
    ("state-single-none", "each word a message, without state", partial(stateless, of=SINGLE), 300_000),
    ("state-single", "each word a message, keyed state in a file", partial(keyed, durable=True, of=SINGLE), 300_000),
    (
        "state-interval",
        "keyed state in a file, an epoch each 100 ms",
        partial(keyed, durable=True, messages=1_000_000, seconds=0.1),
        100_000,
    ),
    ("state-load", "loading a million keys", load, 1_000_000),
    ("state-await", "`await tree` with keyed state in a file", waiting, 300),
)  # fmt: skip

WORKLOADS = tuple(Workload(name, label, measure, size, "state") for name, label, measure, size in _ROWS)
