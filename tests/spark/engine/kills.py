"""Kills a stream on Spark at random moments, starts it again until it ends, and compares what it has written with the
counts of all its words: ``python -m tests.spark.engine.kills FOLDER --kills 30 --seed 1``, and with ``--keyed 1`` where
these are keyed state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from stormlet.spark import spark_session
from tests.spark.engine.streams import expected, totals, write
from tests.spark.kills import Kills, kill_on, read_options
from tests.spark.stream_kills import batches_committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "tests.spark.engine.killed_counts"
KEYED = "tests.spark.engine.killed_keyed_counts"
DISTINCT = 200
"""Words of a stream with keyed state: so many that an epoch leaves most key groups to those before."""


def make_words(folder: Path, seed: int, files: int, *, distinct: int = 8) -> Sequence[Sequence[str]]:
    """Files of so many distinct words, beside one that is rejected."""
    random = Random(seed)
    chosen = [f"word{number}" for number in range(distinct)]
    words = [
        random.choices([*chosen, *["bad"] * (distinct // 8)], k=random.randint(1, 40)) for _ in range(files)
    ]
    write(folder / "in", *words)
    return words


def differences(spark: SparkSession, folder: Path, words: Sequence[Sequence[str]]) -> Iterator[str]:
    """Where what was written is not each count of each word once, or a rejected word is no dead letter."""
    found = totals(spark, folder)
    if found != expected(*words):
        yield f"counts: {sorted(set(found) ^ set(expected(*words)))}, {len(found)} rows"
    bad = _rejected(words, files_of_epochs(folder))
    if bad != (found_letters := letters(folder)):
        yield f"dead letters by epoch: {found_letters}, and not {bad}"


def files_of_epochs(folder: Path) -> Sequence[range]:
    """The files of each epoch, by Spark's own log. After a kill an epoch may have none, or those of two: Spark notes a
    file and an epoch one after the other."""
    logs = sorted((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    ends = [json.loads(path.read_text().splitlines()[-1])["logOffset"] for path in logs]
    return [range(before + 1, end + 1) for before, end in pairwise([-1, *ends])]


def _rejected(words: Sequence[Sequence[str]], epochs: Sequence[range]) -> Mapping[int, Sequence[int]]:
    """The rows of each epoch that are rejected, each by its number in its file."""
    rows = {
        epoch: sorted(row for file in files for row, word in enumerate(words[file]) if word == "bad")
        for epoch, files in enumerate(epochs)
    }
    return {epoch: numbers for epoch, numbers in rows.items() if numbers}


def letters(folder: Path) -> Mapping[int, Sequence[int]]:
    """The rows of each epoch that are dead letters, of which some may be written twice. A partition is a file."""
    origins = [json.loads(line)["origin"] for line in (folder / "letters.jsonl").read_text().splitlines()]
    places = sorted({(each["epoch"], each["row"], each["partition"]) for each in origins})
    return {epoch: [row for _, row, _ in found] for epoch, found in groupby(places, key=itemgetter(0))}


def counting_kills(seed: int, *, soon: bool = False, keyed: bool = False) -> Kills:
    """Kills of a stream on Spark, none yet; ``keyed`` is for one with keyed state."""
    return Kills(seed, KEYED if keyed else CHILD, epochs_done=batches_committed, soon=soon)


def main() -> None:
    """Kill runs that each have files of their own."""
    options = read_options(__doc__, files=30, keyed=0)
    spark, kills = spark_session("local[1]"), counting_kills(options.seed, keyed=bool(options.keyed))

    def prepare(folder: Path) -> Callable[[], Iterable[str]]:
        distinct = DISTINCT if options.keyed else 8
        words = make_words(folder, options.seed + kills.runs, options.files, distinct=distinct)
        return partial(differences, spark, folder, words)

    kill_on(options.folder, kills, options.kills, prepare)
    spark.stop()


if __name__ == "__main__":
    main()
