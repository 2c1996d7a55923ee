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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from stormlet.spark import spark_session
from tests.spark.killed import SAVE_EVERY
from tests.spark.process_groups import end, has_ended, start, wait

ROWS = 3000
LONGEST_LIFE = 4.0
"""Seconds from its first row within which it is killed."""
PATIENCE = 2.0
"""Seconds that a checkpoint may take to be written, on a machine that has other things to do."""


@dataclass
class Rows:
    """What one series of runs was given, killed again and again."""

    seen: list[tuple[int, float]]
    """Row, and when it was noted."""
    killed: list[float]
    """When it was."""
    letters: set[int] = field(default_factory=set[int])

    def faults(self) -> Iterator[str]:
        """What should not be."""
        expected = {row for row in range(ROWS) if row % 100 != 13}
        if lost := expected - {row for row, _ in self.seen}:
            yield f"{len(lost)} rows lost, such as {min(lost)}"
        if self.letters != set(range(ROWS)) - expected:
            yield f"dead letters: {sorted(self.letters)}"
        for row, seconds in self.needless():
            yield f"row {row} came again {seconds:.2f} s after it was done"

    def needless(self) -> Iterator[tuple[int, float]]:
        """Rows that came again although they were done so long before the kill that the checkpoint had them."""
        before = dict[int, float]()
        for row, at in self.seen:
            if row in before:
                kill = next(kill for kill in self.killed if kill > before[row])
                if kill - before[row] > SAVE_EVERY + PATIENCE:
                    yield row, kill - before[row]
            before[row] = at

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
    lines = [line.split() for line in (folder / "seen").read_text().splitlines()]
    letters = [json.loads(line)["value"][0] for line in (folder / "letters.jsonl").read_text().splitlines()]
    return Rows([(int(row), float(at)) for row, at in lines], killed, set(letters))


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
