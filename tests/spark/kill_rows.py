"""Kills a run with a checkpoint at random moments, starts it again until it ends, and looks for rows that were lost,
and for rows that came again without need: ``python -m tests.spark.kill_rows FOLDER --kills 25 --seed 1``."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random

from stormlet.spark import spark_session
from tests.spark.process_groups import end, has_ended, start, wait

ROWS = 3000
NOTES = ("seen", "saves")
LONGEST_LIFE = 4.0
"""Seconds from its first row within which it is killed."""
SURELY_ACKED = 50
"""A row is acked when so many others were noted after it: each of these takes a turn of the loop."""
MOST_BETWEEN_SAVES = 200
"""Rows that may be noted from one checkpoint to the beginning of the next; at a millisecond each, not half of them fit
into :data:`~tests.spark.killed.SAVE_EVERY`. It does not hang on the machine, of which how long a write takes does."""


@dataclass
class Rows:
    """What one series of runs was given, killed again and again."""

    seen: list[tuple[int, float]]
    """Row, and when it was noted."""
    killed: list[float]
    """When it was."""
    saves: list[tuple[float, float]]
    """When each checkpoint was begun, and when it was written."""
    letters: set[int] = field(default_factory=set[int])

    def faults(self) -> Iterator[str]:
        """What should not be."""
        expected = {row for row in range(ROWS) if row % 100 != 13}
        if lost := expected - {row for row, _ in self.seen}:
            yield f"{len(lost)} rows lost, such as {min(lost)}"
        if self.letters != set(range(ROWS)) - expected:
            yield f"dead letters: {sorted(self.letters)}"
        for row, others in self.needless():
            yield f"row {row} came again, {others} rows after which a checkpoint was written"
        for others in self.between_saves():
            if others > MOST_BETWEEN_SAVES:
                yield f"{others} rows without a checkpoint"

    def needless(self) -> Iterator[tuple[int, int]]:
        """Rows that came again although the checkpoint had them; and how many others did so before it was begun."""
        before = dict[int, float]()
        for row, at in self.seen:
            if row in before:
                kill = next(kill for kill in self.killed if kill > before[row])
                saved = max((began for began, ended in self.saves if ended < kill), default=0.0)
                others = self.noted(before[row], saved)
                if others > SURELY_ACKED:
                    yield row, others
            before[row] = at

    def between_saves(self) -> Iterator[int]:
        """How many rows were noted between checkpoints of one life."""
        for (_, ended), (began, _) in pairwise(self.saves):
            if not any(ended < kill < began for kill in self.killed):
                yield self.noted(ended, began)

    def noted(self, after: float, until: float) -> int:
        """How many rows were, meanwhile."""
        return max(0, bisect(self.times, until) - bisect(self.times, after))

    @cached_property
    def times(self) -> list[float]:
        """When rows were noted."""
        return [at for _, at in self.seen]

    @property
    def again(self) -> int:
        """How many rows came again."""
        return len(self.seen) - len({row for row, _ in self.seen})


def run_with_kills(folder: Path, random: Random, most: int, *, in_order: bool = False) -> Rows:
    """Start and kill it until it was killed so often, and then let it end; if it ends before, so be it."""
    killed: list[float] = []
    while True:
        child = begin(folder, in_order=in_order)
        try:
            if len(killed) == most or not dies(child, folder, random):
                wait(child)
                assert end(child) == 0, "it has failed"
                break
        finally:
            end(child)
        killed.append(time.time())
    seen, saves = ([line.split() for line in (folder / name).read_text().splitlines()] for name in NOTES)
    letters = [json.loads(line)["value"][0] for line in (folder / "letters.jsonl").read_text().splitlines()]
    return Rows(
        [(int(row), float(at)) for row, at in seen],
        killed,
        [(float(began), float(ended)) for began, ended in saves],
        set(letters),
    )


def begin(folder: Path, *, in_order: bool) -> subprocess.Popen[bytes]:
    """One more life."""
    way = ["in-order"] if in_order else []
    with (folder / "errors").open("ab") as errors:
        return start("tests.spark.killed", str(folder), *way, errors=errors)


def dies(child: subprocess.Popen[bytes], folder: Path, random: Random) -> bool:
    """Wait for a moment to kill it, sooner or later after its first row; false if it ends before."""
    seen, life = folder / "seen", random.uniform(0.0, LONGEST_LIFE)
    size = seen.stat().st_size if seen.exists() else 0
    until = math.inf
    while not has_ended(child) and time.monotonic() < until:
        if until == math.inf and seen.exists() and seen.stat().st_size > size:
            until = time.monotonic() + life
        time.sleep(0.005)
    return not has_ended(child)


def main() -> None:
    """Series after series, every other one in the order of a key, until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random, kills, series = Random(options.seed), 0, 0
    spark = spark_session("local[2]")
    spark.range(0, ROWS, 1, 3).write.parquet(str(options.folder / "rows"))
    spark.stop()
    while kills < options.kills:
        folder, in_order = options.folder / f"series{series}", series % 2 == 1
        shutil.copytree(options.folder / "rows", folder / "rows")
        rows = run_with_kills(folder, random, options.kills - kills, in_order=in_order)
        kills, series = kills + len(rows.killed), series + 1
        faults = list(rows.faults())
        way = "by key" if in_order else "by place"
        print(
            f"{way}: {len(rows.killed)} kills, {rows.again} rows again; {faults or 'nothing lost'}",
            flush=True,
        )
        if faults:
            sys.exit(1)
    print(f"{kills} kills in {series} series")


if __name__ == "__main__":
    main()
