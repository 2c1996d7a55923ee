"""Measures a state file: ``python -m tests.state.speed FOLDER --keys 1000000``.

Each commit has so many random keys, and others that are written again, as many as the engine takes; encoding them is
not measured. Beside it stands an upsert of the same keys into a table, and beside a load the decoding of all keys from
one blob: the processor's time, in the same run.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from stormlet.core.state.commits import Append, Commit, StateId
from stormlet.core.state.states import MOST_ENTRIES, REWRITE
from stormlet.state.sqlite.file import StateFile

TOTAL = StateId("count", "total")
DECODER = msgspec.msgpack.Decoder(dict[str, int | None])
Counts = dict[str, int]


def counts(keys: int) -> Counts:
    return {f"key-{number:010d}": number for number in range(keys)}


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def shown(times: Sequence[float]) -> str:
    return (
        f"median {statistics.median(times):.1f} ms, mean {statistics.mean(times):.1f}, most {max(times):.0f}"
    )


T = TypeVar("T")


def portions(things: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(things)
    while portion := list(islice(rest, size)):
        yield portion


def fill(file: StateFile, live: Counts) -> float:
    parts = (dict(part) for part in portions(live.items(), 20_000))
    appends = [Append(TOTAL, msgspec.msgpack.encode(part)) for part in parts]
    return timed(lambda: file.commit(Commit(1, 1.0, {"lines[0]": b"1"}, appends)))


def commits(live: Counts, size: int) -> Iterator[Sequence[Append]]:
    """What each epoch appends: round after round over all keys, half as many as have changed each time."""
    random, names = Random(size), list(live)
    while True:
        for part in portions(names, round(size * REWRITE)):
            changed = {names[random.randrange(len(names))]: random.randrange(2**31) for _ in range(size)}
            live.update(changed)
            blobs = [msgspec.msgpack.encode(changed)]
            blobs += [
                msgspec.msgpack.encode({name: live[name] for name in each})
                for each in portions(part, MOST_ENTRIES)
            ]
            yield [
                Append(TOTAL, blob, not number and part[0] == names[0]) for number, blob in enumerate(blobs)
            ]


def commit_times(file: StateFile, live: Counts, size: int, epochs: int) -> Iterator[float]:
    first = file.load().epoch + 1
    for epoch, appends in zip(count(first), islice(commits(live, size), epochs), strict=False):
        commit = Commit(epoch, 1.0, {"lines[0]": b"%d" % epoch}, appends)
        yield timed(lambda commit=commit: file.commit(commit))  # type: ignore[misc]


def upsert_times(path: Path, live: Counts, size: int, epochs: int) -> Iterator[float]:
    random, names = Random(size), list(live)
    with closing(sqlite3.connect(path, isolation_level=None)) as table:
        table.execute("PRAGMA journal_mode=WAL")
        table.execute("PRAGMA synchronous=FULL")
        table.execute("CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
        if not table.execute("SELECT count(*) FROM state").fetchone()[0]:
            table.execute("BEGIN")
            table.executemany(
                "INSERT INTO state VALUES (?, ?)", ((k, msgspec.msgpack.encode(v)) for k, v in live.items())
            )
            table.execute("COMMIT")
        for _ in range(epochs):
            rows = [(random.choice(names), b"12345") for _ in range(size)]
            yield timed(lambda rows=rows: upsert(table, rows))  # type: ignore[misc]


def upsert(table: sqlite3.Connection, rows: Sequence[tuple[str, bytes]]) -> None:
    table.execute("BEGIN IMMEDIATE")
    table.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", rows)
    table.execute("COMMIT")


def load(path: Path) -> tuple[float, float, int]:
    """Milliseconds of the processor for reading and for decoding, and the number of keys."""
    with closing(StateFile(path, "words")) as file:
        began = time.process_time()
        blobs = file.load().states[TOTAL]
        read = time.process_time()
        live = dict[str, int | None]()
        for blob in blobs:
            live.update(DECODER.decode(blob))
        ended = time.process_time()
    return (read - began) * 1000, (ended - read) * 1000, len(live)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    path, live = options.folder / "words.state", counts(options.keys)
    with closing(StateFile(path, "words")) as file:
        print(f"{options.keys} keys, first commit: {fill(file, live):.0f} ms")
    print_load(path, live)
    for size in (100, 1_000, 10_000, 100_000):
        epochs = max(options.epochs * min(10_000 // size, 1), 20)
        with closing(StateFile(path, "words")) as file:
            print(f"{size} changed keys: {shown(list(commit_times(file, live, size, epochs)))}", flush=True)
        if options.keys <= 1_000_000:
            print(
                f"  upsert: {shown(list(upsert_times(options.folder / 'table', live, size, epochs // 5)))}",
                flush=True,
            )
    print_load(path, live)


def print_load(path: Path, live: Counts) -> None:
    one = msgspec.msgpack.encode(live)
    read, decoded, keys = load(path)
    began = time.process_time()
    DECODER.decode(one)
    alone = (time.process_time() - began) * 1000
    print(
        f"load of {keys} keys: read {read:.0f} ms, decode {decoded:.0f}; from one blob {alone:.0f}; "
        f"{os.path.getsize(path) / keys:.0f} bytes a key",  # noqa: PTH202
        flush=True,
    )


if __name__ == "__main__":
    main()
