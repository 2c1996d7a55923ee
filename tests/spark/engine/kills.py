"""Kills a stream on Spark at random moments, starts it again until it ends, and compares what it has written with the
counts of all its words: ``python -m tests.spark.engine.kills FOLDER --kills 30 --seed 1``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from stormlet.spark import spark_session
from tests.spark.engine.streams import expected, totals, write
from tests.spark.kills import Kills, run_with_kills
from tests.spark.stream_kills import batches_committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "tests.spark.engine.killed_counts"


def make_words(folder: Path, seed: int, files: int) -> Sequence[Sequence[str]]:
    """Files of words, of which some are rejected."""
    random = Random(seed)
    words = [random.choices([*"abcdefgh", "bad"], k=random.randint(1, 40)) for _ in range(files)]
    write(folder / "in", *words)
    return words


def differences(spark: SparkSession, folder: Path, words: Sequence[Sequence[str]]) -> Iterator[str]:
    """Where what was written is not each count of each word once, or a rejected word is no dead letter."""
    found = totals(spark, folder)
    if found != expected(*words):
        yield f"counts: {sorted(set(found) ^ set(expected(*words)))}, {len(found)} rows"
    bad = {(epoch, row) for epoch, file in enumerate(words) for row, word in enumerate(file) if word == "bad"}
    if bad != {*letters(folder)}:
        yield f"dead letters: {sorted(bad ^ {*letters(folder)})}"


def letters(folder: Path) -> Sequence[tuple[int, int]]:
    """The epoch and row of each dead letter."""
    lines = map(json.loads, (folder / "letters.jsonl").read_text().splitlines())
    return [(line["origin"]["epoch"], line["origin"]["row"]) for line in lines]


def counting_kills(seed: int, *, soon: bool = False) -> Kills:
    """Kills of a stream on Spark, none yet."""
    return Kills(seed, CHILD, epochs_done=batches_committed, soon=soon)


def main() -> None:
    """Run after run, each with files of its own, until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=30)
    options = parser.parse_args()
    spark, kills, runs = spark_session("local[1]"), counting_kills(options.seed), 0
    while kills.total < options.kills:
        runs += 1
        folder: Path = options.folder / f"run{runs}"
        folder.mkdir(parents=True)
        words = make_words(folder, options.seed + runs, options.files)
        run_with_kills(folder, kills, options.kills)
        found = list(differences(spark, folder, words))
        twice = len(letters(folder)) - len({*letters(folder)})
        print(f"run {runs}: {kills}; {twice} dead letters twice; {found or 'each count once'}", flush=True)
        if found:
            sys.exit(1)
    spark.stop()


if __name__ == "__main__":
    main()
