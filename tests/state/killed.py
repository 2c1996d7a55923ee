"""A run that commits epochs until it is killed: ``python -m tests.state.killed PATH SEED [POINT TIMES]``.

It prints the number of each epoch that is durable, the one that it begins with first. With a point it kills itself: the
moment before it runs a statement that begins so for the so-manieth time, or before it tells of an epoch. RocksDB has no
statements, and points of its own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from stormlet.state.rocksdb.database import Database
from stormlet.state.sqlite.file import StateFile
from stormlet.state.stores import owned
from tests.state.connections import connection_of
from tests.state.programs import Program

TELL = "tell"
ENOUGH = 5000
"""Epochs, after which it ends: the point is never reached."""
POINTS = (
    "BEGIN IMMEDIATE",
    "DELETE FROM outbox",
    "DELETE FROM letters",
    "INSERT OR REPLACE INTO epochs",
    "INSERT OR REPLACE INTO positions",
    "INSERT OR REPLACE INTO outbox",
    "INSERT OR REPLACE INTO letters",
    "DELETE FROM log",
    "INSERT OR REPLACE INTO log",
    "DELETE FROM epochs",
    "COMMIT",
    TELL,
)
WRITE, SYNC = "write", "sync"
POINTS_OF_ROCKSDB = (WRITE, SYNC, TELL)


class Countdown:
    """Kills the process when a point has been reached often enough."""

    def __init__(self, point: str, times: int) -> None:
        self._point = point
        self._left = times

    def __call__(self, what: str) -> None:
        if what.startswith(self._point):
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def trace(reach: Callable[[str], None]) -> None:
    """Have points of RocksDB told before they are passed."""
    for point, name in ((WRITE, "put_in_log"), (SYNC, "sync_log")):
        setattr(Database, name, _traced(getattr(Database, name), partial(reach, point)))


def _traced(call: Callable[..., None], reached: Callable[[], None]) -> Callable[..., None]:
    def traced(*arguments: object) -> None:
        reached()
        call(*arguments)

    return traced


def main() -> None:
    path, seed, *point = sys.argv[1:]
    store = owned(path, "words")
    program = Program(store, int(seed))
    print(program.epoch, flush=True)
    reach = Countdown(point[0], int(point[1])) if point else lambda what: None
    if isinstance(store, StateFile):
        connection_of(store).set_trace_callback(reach)
    else:
        trace(reach)
    for _ in range(ENOUGH):
        program.commit()
        reach(TELL)
        print(program.epoch, flush=True)


if __name__ == "__main__":
    main()
