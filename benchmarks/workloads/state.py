"""Keyed state beside the workloads of the package: with single words, with short epochs, loading of state, and a host
that waits for what it has emitted."""

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
from typing import cast

import msgspec

from benchmarks.memory import resident_bytes
from stormlet.bench.state import FILE, TOTAL, Input, KeyedCount, keyed, loaded, stateless
from stormlet.bench.state import WORKLOADS as OF_PACKAGE
from stormlet.bench.word_count import sentences
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.state.commits import Commit
from stormlet.core.state.states import State
from stormlet.core.state.value_table import ValueTable
from stormlet.model.state.keyed import states_of
from stormlet.state.sqlite.file import StateFile
from stormlet.topology import Topology


def single_words(count: int) -> Iterator[str]:
    """So many words of the usual sentences, each a message of its own."""
    return islice((word for line in sentences(count) for word in line.split()), count)


def _check_single(counts: Counter[str], size: int) -> None:
    expect(counts, Counter(single_words(size)), "counts of words")


SINGLE = Input(single_words, _check_single, is_split=False)


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
        return loaded(file.load())


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
            expect(sum(loaded(file.load()).values()), size, "words counted")
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
    ("state-single-none", "each word a message, without state", partial(stateless, of=SINGLE), 300_000),
    ("state-single", "each word a message, keyed state in a file", partial(keyed, place=FILE, of=SINGLE), 300_000),
    (
        "state-interval",
        "keyed state in a file, an epoch each 100 ms",
        partial(keyed, place=FILE, messages=1_000_000, seconds=0.1),
        100_000,
    ),
    ("state-load", "loading a million keys", load, 1_000_000),
    ("state-await", "`await tree` with keyed state in a file", waiting, 300),
)  # fmt: skip

WORKLOADS = (
    *OF_PACKAGE.values(),
    *(Workload(name, label, measure, size, "state") for name, label, measure, size in _ROWS),
)
