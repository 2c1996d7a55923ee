"""Kills a topology, over and over, and holds what is left in the end against a direct computation:
``python -m tests.epochs.kills --kills 300 --seed 1``, or ``python -m tests.epochs.kills failures broker`` for some of
the topologies alone; with ``--store rocksdb`` their state is not in a file. That of the DataFrame takes some seconds
for each kill, as it starts a JVM.

Every other kill comes at a random moment; the others are aimed at named points of the life of an epoch. Each run is a
process of its own, which is forked and not started anew, so that a kill takes milliseconds.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from stormlet.core.state.lazy.value_table import LazyValueTable
from stormlet.core.state.outgoing import Outgoing
from stormlet.core.state.value_table import ValueTable
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.state.rocksdb.database import Database as RocksDB
from stormlet.state.sqlite.database import Database
from tests.epochs.mortals import TOPOLOGIES, WORDS, Kind, Mortal

LONGEST_LIFE = 0.4
"""Seconds, of one that is killed by the clock."""
LATEST = 8
"""A point is passed so many times at most before the kill."""
PATIENCE = 120.0
"""Seconds: a run that takes longer hangs."""
A_FILE = 15
"""Kills at most, before a run may come to its end."""

INSERTS = {
    "INSERT OR REPLACE INTO epochs": "insert the epoch",
    "INSERT OR REPLACE INTO positions": "insert a position",
    "INSERT OR REPLACE INTO outbox": "insert rows for a committer",
    "INSERT OR REPLACE INTO letters": "insert a dead letter",
    "INSERT OR REPLACE INTO log": "insert state",
}
IN_ALL = (
    "before BEGIN",
    "after BEGIN",
    "insert the epoch",
    "insert rows of a table",
    "insert state",
    "before COMMIT",
    "after COMMIT",
    "merge",
    "tell",
)
"""Points that each topology passes in each epoch."""
IN_ALL_OF_ROCKSDB = ("before the write", "before the sync", "after the sync", "merge", "tell")
OTHERS: dict[str, Callable[[Kind], bool]] = {
    "deliver and note": lambda kind: kind.committers > 0,
    "between two committers": lambda kind: kind.committers > 1,
    "ack": lambda kind: kind.partitions,
    "before the ack": lambda kind: kind.broker,
    "after the ack": lambda kind: kind.broker,
}
"""Points that only some have."""
OTHERS_OF_SQLITE: dict[str, Callable[[Kind], bool]] = {
    "insert a position": lambda kind: not kind.broker,
    "insert a dead letter": lambda kind: kind.rejected < WORDS,
    "insert rows for a committer": lambda kind: kind.committers > 0,
    **OTHERS,
}


class Aim:
    """Kills the process at the so-manieth passage of a point."""

    def __init__(self, point: str | None, times: int) -> None:
        self._point = point
        self._left = times

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(PATIENCE)  # nothing comes after it, in any thread


def points_of(name: str, store: str = "sqlite") -> list[str]:
    """The points that a topology passes."""
    kind = TOPOLOGIES[name]
    in_all, others = (IN_ALL, OTHERS_OF_SQLITE) if store == "sqlite" else (IN_ALL_OF_ROCKSDB, OTHERS)
    return [*in_all, *(point for point, has in others.items() if has(kind))]


def watch(passage: Callable[[str], None]) -> None:
    """Have the passages of this process told; a process that is watched once is not watched again."""
    _before(Database, "run", lambda _, statement, *__: passage(_point_before(statement)))
    _after(Database, "run", lambda _, statement, *__: passage(_point_after(statement)))
    _before(Database, "run_many", lambda *_: passage("insert rows of a table"))
    _before(RocksDB, "put_in_log", lambda *_: passage("before the write"))
    _before(RocksDB, "sync_log", lambda *_: passage("before the sync"))
    _after(RocksDB, "sync_log", lambda *_: passage("after the sync"))
    for kind in (ValueTable, LazyValueTable):
        _before(kind, "merge", lambda *_: passage("merge"))
    _before(EpochKeeper, "_tell", lambda *_: passage("tell"))
    _after(Outgoing, "had", lambda *_: passage("deliver and note"))


def _point_before(statement: str) -> str:
    if statement == "COMMIT":
        return "before COMMIT"
    if statement == "BEGIN IMMEDIATE":
        return "before BEGIN"
    return next((point for begin, point in INSERTS.items() if statement.startswith(begin)), "")


def _point_after(statement: str) -> str:
    return {"COMMIT": "after COMMIT", "BEGIN IMMEDIATE": "after BEGIN"}.get(statement, "")


def _before(kind: type, name: str, tell: Callable[..., None]) -> None:
    call = getattr(kind, name)

    @wraps(call)
    def told(*arguments: Any) -> Any:
        tell(*arguments)
        return call(*arguments)

    setattr(kind, name, told)


def _after(kind: type, name: str, tell: Callable[..., None]) -> None:
    call = getattr(kind, name)

    @wraps(call)
    def told(*arguments: Any) -> Any:
        result = call(*arguments)
        tell(*arguments)
        return result

    setattr(kind, name, told)


def live(mortal: Mortal, life: int, aim: Aim, seconds: float | None) -> bool:
    """Live once more, in a process of its own. Returns True if the run was killed, False if it has come to its end."""
    child = os.fork()
    if not child:
        _be(mortal, life, aim, seconds)
    deadline = time.monotonic() + PATIENCE
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGABRT)  # which has it say where it is
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"life {life} of {mortal.name} hangs")
        time.sleep(0.001)
    if os.WIFSIGNALED(status):
        ends = (signal.SIGKILL, signal.SIGALRM)
        died_of = f"life {life} of {mortal.name} has died of signal {os.WTERMSIG(status)}"
        assert os.WTERMSIG(status) in ends, died_of
        return True
    assert os.WEXITSTATUS(status) == 0, f"life {life} of {mortal.name} has failed"
    return False


def _be(mortal: Mortal, life: int, aim: Aim, seconds: float | None) -> None:
    """Be a run, and nothing else, for so many seconds at most."""
    code = 1
    try:
        faulthandler.enable()
        watch(aim)
        mortal.prepare()
        if seconds is not None:  # then the system ends it, at whatever instruction
            signal.setitimer(signal.ITIMER_REAL, seconds)
        mortal.run(life, aim)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def kill_all(names: list[str], folder: Path, kills: int, seed: int, store: str = "sqlite") -> Counter[str]:
    """Kill so many runs; return where. Raises :class:`AssertionError` for what is not as in a direct computation."""
    random = Random(seed)
    points: Counter[str] = Counter()
    aims = {name: points_of(name, store) for name in names}
    for file in count():
        name = names[file % len(names)]
        ending = "state" if store == "sqlite" else store
        mortal = Mortal(name, folder / f"{file}.{ending}", seed + file)
        of_file = min(A_FILE, max(1, kills // len(names)), kills - points.total())
        found, ended = _kill_file(mortal, of_file, random, aims[name])
        points.update(found)
        if not ended:
            assert not live(mortal, -1, Aim(None, 0), None)
        wrong = in_a_process(partial(_differences, mortal, found.total()))
        assert not wrong, f"{name}, seed {seed + file}, file {file} after {found.total()} kills: {wrong}"
        if points.total() >= kills:
            return points
    raise AssertionError("unreachable")


def _differences(mortal: Mortal, kills: int) -> str:
    return ", ".join(mortal.differences(kills))


def in_a_process(function: Callable[[], str]) -> str:
    """What it returns in a process of its own: this one has no threads, such as those of RocksDB, as it forks."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = function()
        except BaseException:
            found = traceback.format_exc()
        os.write(write, found.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return found


def _kill_file(mortal: Mortal, kills: int, random: Random, aims: list[str]) -> tuple[Counter[str], bool]:
    """Kill until the topology has come to its end, or there were enough kills."""
    points: Counter[str] = Counter()
    for life in count():
        if points.total() >= kills:
            return points, False
        point = aims[0] if life % 2 == 0 else None
        if point:
            aims.append(aims.pop(0))  # each in turn
        seconds = None if point else random.uniform(0.001, LONGEST_LIFE)
        if not live(mortal, life, Aim(point, random.randint(1, LATEST)), seconds):
            return points, True
        points[point or "at a random moment"] += 1
    raise AssertionError("unreachable")


def main() -> None:
    """Go on until something is wrong, or there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topologies", nargs="*", metavar="topology", help=", ".join(TOPOLOGIES))
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--store", choices=["sqlite", "rocksdb"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    names: list[str] = options.topologies or list(TOPOLOGIES)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        points = kill_all(names, Path(folder), options.kills, options.seed, options.store)
    print(f"{points.total()} kills in {time.monotonic() - began:.0f} s, all as in a direct computation:")
    for point, times in sorted(points.items()):
        print(f"{times:5} {point}")


if __name__ == "__main__":
    main()
