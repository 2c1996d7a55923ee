"""A run that commits epochs until it is killed: ``python -m tests.state.killed PATH SEED [POINT TIMES]``.

It prints the number of each epoch that is durable, the one that it begins with first. With a point it kills itself: the
moment before it runs a statement that begins so for the so-manieth time, or before it tells of an epoch.
"""

from __future__ import annotations

import os
import signal
import sys

from stormlet.state.sqlite.file import StateFile
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


def main() -> None:
    path, seed, *point = sys.argv[1:]
    file = StateFile(path, "words")
    program = Program(file, int(seed))
    print(program.epoch, flush=True)
    reach = Countdown(point[0], int(point[1])) if point else lambda what: None
    connection_of(file).set_trace_callback(reach)
    for _ in range(ENOUGH):
        program.commit()
        reach(TELL)
        print(program.epoch, flush=True)


if __name__ == "__main__":
    main()
