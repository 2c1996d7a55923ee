"""Kills a run that writes exactly once at random moments, starts it again until it ends, and compares what it has
written with Spark SQL's own answer: ``python -m tests.spark.kills FOLDER --kills 25 --seed 1``, and with ``--state 1``
where the epochs are those of a state; ``--rocksdb 1`` where it is in RocksDB."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from stormlet.spark import spark_session
from stormlet.state.stores import reader
from tests.spark.killed_epochs import CHECKPOINT, LINES, REJECTED, ROCKSDB, STARTED, STATE, SUMS
from tests.spark.process_groups import dump, end, has_ended, kill_alone, start, wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "tests.spark.killed_epochs"
ERRORS = "errors.txt"
LONGEST_LIFE = 20.0
"""Seconds from the start of the topology within which it is killed, if not in a commit."""
LATEST_EPOCH = 5
"""Or else in one of its first epochs."""
LONGEST_COMMIT = 0.6
"""Seconds from the appearance of a directory within which it is killed in a commit."""
LONGEST_WAIT = 300.0
"""Seconds after which one that has written no directory is said to hang."""


def epochs_in(name: str, folder: Path) -> int:
    """As a state file of this name has them."""
    if not (folder / name).exists():
        return 0
    with closing(sqlite3.connect(folder / name, timeout=30.0)) as file:
        try:
            (number,) = file.execute("SELECT coalesce(max(number), 0) FROM epochs").fetchone()
        except sqlite3.OperationalError:  # it is killed before the file has tables
            return 0
        return int(number)


epochs_in_checkpoint = partial(epochs_in, CHECKPOINT)
epochs_in_state = partial(epochs_in, STATE)


def epochs_in_rocksdb(folder: Path) -> int:
    """As the directory of RocksDB has them."""
    if not (folder / ROCKSDB).exists():
        return 0
    with closing(reader(folder / ROCKSDB)) as found:
        return found.load().epoch


@dataclass
class Kills:
    """What has been done to a run."""

    seed: int
    child: str = CHILD
    """The module that is run."""
    arguments: tuple[str, ...] = ()
    """What it is given besides the folder and a seed."""
    epochs_done: Callable[[Path], int] = field(default=epochs_in_checkpoint, repr=False)
    """How many the source remembers to be done."""
    soon: bool = False
    """Whether each kill comes soon after the first directory or two that a life has written, and none by the clock."""
    latest: int = field(default=2 * LATEST_EPOCH, repr=False)
    """The number of directories that a life has written at most when it is killed soon after one."""
    longest_life: float = field(default=LONGEST_LIFE, repr=False)
    """Seconds from its start within which it is killed by the clock."""
    runs: int = field(default=0, repr=False)
    """How many folders there were, each with what a run reads and writes."""
    random: Random = field(init=False, repr=False)
    began: float = field(default=0.0, repr=False)
    """When the last life began: what earlier ones have left is not its work."""
    total: int = 0
    in_writes: int = 0
    """While Spark was writing an epoch."""
    before_checkpoints: int = 0
    """After an epoch was written, before the checkpoint had it."""
    of_python_alone: int = 0
    """The JVM was left to find out by itself."""

    left: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)
    """Those of which the JVM may still be there."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def written(self, folder: Path) -> int:
        """How many directories it has written."""
        return len(epochs(folder))

    def note(self, folder: Path) -> None:
        """Look at what the last kill has left."""
        done = self.epochs_done(folder)
        last = [
            each for each in epochs(folder) if each.name == f"epoch={done}" and changed(each) > self.began
        ]
        writing = any((each / "_temporary").exists() or not (each / "_SUCCESS").exists() for each in last)
        self.in_writes += writing
        self.before_checkpoints += bool(last) and not writing
        print(self, f"{done} epochs done", flush=True)


def run_with_kills(folder: Path, kills: Kills, most: int) -> None:
    """Start and kill it until it was killed so often, and then let it end; if it ends before, so be it."""
    try:
        while kills.total < most:
            if not live_and_die(folder, kills):
                return
        child = begin(folder, kills)
        kills.left.append(child)
        wait(child)
        assert end(child) == 0, f"the last run has failed:\n{last_errors(folder)}"
    finally:
        while kills.left:
            end(kills.left.pop())


def live_and_die(folder: Path, kills: Kills) -> bool:
    """One life; false if it has ended by itself."""
    child = begin(folder, kills)
    assert child.stdout is not None
    try:
        if STARTED.encode() not in child.stdout.readline():
            raise AssertionError(f"it has not started:\n{last_errors(folder)}")
        if not wait_for_the_moment(child, folder, kills):
            assert end(child) == 0, f"it has failed:\n{last_errors(folder)}"
            return False
        kill(child, folder, kills)
        return True
    except BaseException:
        end(child)
        raise


def begin(folder: Path, kills: Kills) -> subprocess.Popen[bytes]:
    """One more life."""
    kills.began = time.time()
    seed = str(kills.random.randrange(2**32))
    arguments = (str(folder), seed, *kills.arguments)
    with (folder / ERRORS).open("ab") as errors:
        return start(kills.child, *arguments, out=subprocess.PIPE, errors=errors)


def last_errors(folder: Path) -> str:
    """What the lives have printed as errors, the last of it."""
    return (folder / ERRORS).read_text("utf-8", "replace")[-10_000:]


def wait_for_the_moment(child: subprocess.Popen[bytes], folder: Path, kills: Kills) -> bool:
    """At any time of its life; or, every other time, soon after a sink's directory of an epoch has appeared. False if
    it ends before."""
    random = kills.random
    began = time.monotonic()
    at = began + random.uniform(0.0, kills.longest_life)
    if kills.soon or random.random() < 0.5:
        until = kills.written(folder) + random.randint(1, 2 if kills.soon else kills.latest)
        while kills.written(folder) < until and not has_ended(child):
            time.sleep(0.002)
            if time.monotonic() > began + LONGEST_WAIT:
                dump(child)
                raise AssertionError(f"it hangs:\n{last_errors(folder)}")
        at = time.monotonic() + random.uniform(0.0, LONGEST_COMMIT)
    while time.monotonic() < at and not has_ended(child):
        time.sleep(0.002)
    return not has_ended(child)


def epochs(folder: Path) -> list[Path]:
    """The directories of epochs that are there, in both sinks."""
    return list(folder.glob("out/*/source=*/epoch=*"))


def changed(directory: Path) -> float:
    """When something was last put there or removed; a JVM that is left alone may be removing it."""
    try:
        return directory.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def kill(child: subprocess.Popen[bytes], folder: Path, kills: Kills) -> None:
    """Either the process with its JVM, or itself alone."""
    alone = kills.random.random() < 0.3
    if alone:
        kill_alone(child)
        kills.left.append(child)
    else:
        end(child)
    kills.total += 1
    kills.of_python_alone += alone
    kills.note(folder)


def make_orders(spark: SparkSession, folder: Path, rows: int) -> None:
    """The orders to read, in three files."""
    spark.range(0, rows, 1, 3).write.mode("overwrite").parquet(str(folder / "orders"))


def differences(spark: SparkSession, folder: Path) -> Iterator[str]:
    """Where what was written is not Spark SQL's own answer, row for row."""
    spark.read.parquet(str(folder / "orders")).createOrReplaceTempView("orders")
    for name, query in (("lines", LINES), ("sums", SUMS)):
        written = spark.read.parquet(str(folder / "out" / name)).select("id", "part", "amount")
        expected = spark.sql(query).select("id", "part", "amount")
        for what, rows in (
            ("missing", expected.exceptAll(written)),
            ("too many", written.exceptAll(expected)),
        ):
            if count := rows.count():
                yield f"{name}: {count} rows {what}, such as {rows.first()}"
    rejected = {row["id"] for row in spark.sql(REJECTED).collect()}
    if rejected != set(letters(folder)):
        yield f"dead letters: {sorted(rejected.symmetric_difference(letters(folder)))}"


def letters(folder: Path) -> list[int]:
    """The orders among the dead letters."""
    lines: list[Any] = [json.loads(line) for line in (folder / "letters.jsonl").read_text().splitlines()]
    return [line["value"]["id"] for line in lines]


def read_options(description: str | None, **numbers: int) -> argparse.Namespace:
    """Read the options of a campaign: the folder, the number of kills, a seed, and others that are numbers."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    for name, default in {"kills": 30, "seed": 1, **numbers}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    return parser.parse_args()


def kill_on(
    folder: Path, kills: Kills, most: int, prepare: Callable[[Path], Callable[[], Iterable[str]]]
) -> None:
    """Run after run, each in a folder of its own, until there were enough kills. ``prepare`` makes what a run reads,
    and returns what finds the differences afterwards; the first ones end the process."""
    while kills.total < most:
        kills.runs += 1
        place = folder / f"run{kills.runs}"
        place.mkdir(parents=True)
        differences = prepare(place)
        run_with_kills(place, kills, most)
        found = [*differences()]
        print(
            f"run {kills.runs}: {kills}; {repeated(place)} dead letters twice; {found or 'all is right'}",
            flush=True,
        )
        if found:
            sys.exit(1)


def repeated(folder: Path) -> int:
    """How many dead letters are there again."""
    lines: list[Any] = [json.loads(line) for line in (folder / "letters.jsonl").read_text().splitlines()]
    found = {json.dumps([line["component"], line["origin"] or line["message_id"]]) for line in lines}
    return len(lines) - len(found)


def main() -> None:
    """Kill runs that each have orders of their own."""
    options = read_options(__doc__, rows=3000, state=0, rocksdb=0)
    spark = spark_session("local[2]")

    def prepare(folder: Path) -> Callable[[], Iterable[str]]:
        make_orders(spark, folder, options.rows)
        return partial(differences, spark, folder)

    kills = Kills(options.seed)
    if options.state:
        kills = Kills(options.seed, arguments=(STATE,), epochs_done=epochs_in_state)
    elif options.rocksdb:
        kills = Kills(options.seed, arguments=(ROCKSDB,), epochs_done=epochs_in_rocksdb)
    kill_on(options.folder, kills, options.kills, prepare)
    spark.stop()


if __name__ == "__main__":
    main()
