"""Kills a batch on Spark at random moments, starts it again until it ends, and reads its sinks after each kill:
``python -m tests.spark.engine.batch_kills FOLDER --kills 30 --seed 1``.

A sink with a ``_SUCCESS`` must have all rows of one run, and no others: a reader takes it for whole. In the end both
have one, and each rejected number is among the dead letters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.spark.engine.parts import KEYS, NUMBERS, REJECTED
from tests.spark.kills import Kills, changed, kill_on, read_options
from tests.spark.process_groups import settle

CHILD = "tests.spark.engine.killed_batch"
LONGEST_LIFE = 15.0
SINKS = ("parts", "totals")


@dataclass
class BatchKills(Kills):
    """What has been done to batches."""

    child: str = CHILD
    latest: int = field(default=len(SINKS), repr=False)
    longest_life: float = field(default=LONGEST_LIFE, repr=False)
    after_writes: int = 0
    """After the first sink was written."""
    faults: list[str] = field(default_factory=list[str])
    """What a reader took for whole after a kill, and was not."""

    def written(self, folder: Path) -> int:
        """How many sinks it has begun to write."""
        return sum(changed(folder / "out" / name) > self.began for name in SINKS)

    def note(self, folder: Path) -> None:
        """See :meth:`Kills.note`."""
        for each in self.left:
            settle(each)
        wholes = [is_whole(folder, name) and changed(folder / "out" / name) > self.began for name in SINKS]
        self.after_writes += wholes[0]
        self.in_writes += bool(self.written(folder)) and not wholes[0]
        self.faults += faults(folder)
        print(self, flush=True)


def is_whole(folder: Path, sink: str) -> bool:
    """Whether a reader takes it for whole."""
    return (folder / "out" / sink / "_SUCCESS").exists()


def faults(folder: Path) -> Iterator[str]:
    """What a reader takes for whole, and is not."""
    right = {
        "parts": Counter(number for number in range(NUMBERS) if number not in REJECTED),
        "totals": Counter(number % KEYS for number in range(NUMBERS) if number not in REJECTED),
    }
    for sink in filter(partial(is_whole, folder), SINKS):
        rows = rows_of(folder / "out" / sink)
        runs = {row["run"] for row in rows}
        found = Counter[int]()
        for row in rows:
            found[row["number" if sink == "parts" else "key"]] += row.get("parts", 1)
        if len(runs) != 1 or found != right[sink]:
            yield f"{sink} of runs {sorted(runs)}: {len(rows)} rows"


def rows_of(sink: Path) -> list[dict[str, int]]:
    """The rows that a reader finds."""
    arrow: Any = import_module("pyarrow.dataset")
    rows: list[dict[str, int]] = arrow.dataset(sink, partitioning="hive").to_table().to_pylist()
    return rows


def differences(folder: Path, kills: BatchKills) -> Iterator[str]:
    """What a reader took for whole, and was not; and what is missing in the end."""
    yield from kills.faults
    yield from faults(folder)
    yield from (f"{sink} is not whole" for sink in SINKS if not is_whole(folder, sink))
    lines = map(json.loads, (folder / "letters.jsonl").read_text().splitlines())
    rejected = {line["value"] for line in lines}
    if rejected != {*REJECTED}:
        yield f"dead letters: {sorted(rejected ^ {*REJECTED})}"


def main() -> None:
    """Kill batches, each of which writes into the same folder as the one before it."""
    options = read_options(__doc__)
    kills = BatchKills(options.seed)

    def prepare(folder: Path) -> Callable[[], Iterable[str]]:
        return partial(differences, folder, kills)

    kill_on(options.folder, kills, options.kills, prepare)


if __name__ == "__main__":
    main()
