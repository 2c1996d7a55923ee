"""Kills a run that commits epochs, over and over, and looks at what is durable after each kill:
``python -m tests.state.kills FOLDER --kills 300 --seed 1``, with ``--store rocksdb`` in RocksDB."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from stormlet.state.stores import owned
from tests.state.killed import POINTS, POINTS_OF_ROCKSDB, SYNC, TELL
from tests.state.programs import differences

LONGEST_LIFE = 0.2
"""Seconds, of one that is killed by the clock."""
LATEST = 60
"""A point is reached so many times at most; in an epoch some are reached more than once."""
A_FILE = 25
"""Kills, until a new file is begun."""


def kill(path: Path, seed: int, random: Random, point: str | None) -> Iterator[str]:
    """Let one run live until it is killed, at a point or at a random moment. Yield what is wrong with its file then."""
    told = live(path, seed, random, point)
    with closing(owned(path, "words")) as store:
        stored = store.load()
        yield from differences(stored, seed)
    if stored.epoch not in expected(told, point):
        yield f"epoch {stored.epoch} is the last one, {told} was told, killed at {point}"


def expected(told: int, point: str | None) -> tuple[int, ...]:
    """The epochs that may be the last one. All that is said of a point is known."""
    # What was written and not synced is lost with the power, not with the process.
    return {None: (told, told + 1), TELL: (told + 1,), SYNC: (told + 1,)}.get(point, (told,))


def live(path: Path, seed: int, random: Random, point: str | None) -> int:
    """Return the last epoch that the run has told to be durable."""
    aim = [point, str(random.randint(1, LATEST))] if point else []
    command = [sys.executable, "-m", "tests.state.killed", str(path), str(seed), *aim]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        begun = run.stdout.readline()
        if not point:
            time.sleep(random.uniform(0, LONGEST_LIFE))
            run.kill()
        rest = run.stdout.read()
    assert run.returncode == -signal.SIGKILL, f"it has ended by itself, without having come to {point}"
    whole = f"{begun}{rest}".rpartition("\n")[0]
    return int(whole.splitlines()[-1])


def kills(
    folder: Path, seed: int, count: int, store: str = "sqlite"
) -> Iterator[tuple[str | None, list[str]]]:
    """Yield where each run was killed, and what was wrong then. Every other kill is aimed."""
    random = Random(seed)
    points, ending = (POINTS, "state") if store == "sqlite" else (POINTS_OF_ROCKSDB, store)
    for number in range(count):
        path = folder / f"{number // A_FILE}.{ending}"
        point = points[number // 2 % len(points)] if number % 2 else None
        yield point, list(kill(path, seed, random, point))


def main() -> None:
    """Go on until something is wrong, or there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=["sqlite", "rocksdb"], default="sqlite")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    points = Counter[str]()
    for point, wrong in kills(options.folder, options.seed, options.kills, options.store):
        points[point or "at a random moment"] += 1
        if wrong:
            sys.exit(f"kill {points.total()}, at {point}: {wrong}")
    print(f"{points.total()} kills, each time all epochs that were told and nothing in part: {dict(points)}")


if __name__ == "__main__":
    main()
