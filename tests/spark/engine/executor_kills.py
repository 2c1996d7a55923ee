"""Kills an executor at a random moment of each of many batches, and compares their results with those of a run without
kills: ``python -m tests.spark.engine.executor_kills --kills 30 --seed 1``.

Half of the batches have a bolt of chance. Spark may then mix two attempts, and the ledger must notice: such a batch has
consistent results, or fails.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Thread

from pyspark.sql import SparkSession

from stormlet import Topology
from stormlet.spark import SparkFailed, run_on_spark, spark_session
from tests.spark.engine.sums import Pair, Sum, Total, by_chance, pair

MASTER = "local-cluster[2,1,1024]"
NUMBERS = 400_000
LONGEST = 9.0
"""Seconds from the start of a batch within which an executor is killed."""


def totals(spark: SparkSession, *, repeatable: bool) -> list[tuple[int, int, int]]:
    """The sums by key."""
    topology = Topology("sums")
    numbers = topology.spout("numbers", range(NUMBERS), outputs=int)
    pairs = topology.bolt("pair", pair if repeatable else by_chance, numbers.shuffle(), outputs=Pair)
    sums = topology.bolt("sum", Sum, pairs.fields("key"), parallelism=4, outputs=Total)
    result = run_on_spark(topology, spark, streams=[sums])
    return sorted((row["key"], row["parts"], row["total"]) for row in result.stream(sums).collect())


def executors() -> Iterator[int]:
    """The process ids of the executors of this process."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
            group = os.getpgid(int(entry.parent.name))
        except OSError:  # it has ended
            continue
        is_executor = b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words
        if is_executor and group == os.getpgid(0):
            yield int(entry.parent.name)


def kill_one(random: Random, killed: list[float]) -> None:
    """Kill one of them after a while."""
    delay = random.uniform(0.0, LONGEST)
    time.sleep(delay)
    if found := sorted(executors()):
        os.kill(random.choice(found), signal.SIGKILL)
        killed.append(delay)


def main() -> None:
    """Batch after batch, with one kill each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spark, random = spark_session(MASTER), Random(options.seed)
    exact = totals(spark, repeatable=True)
    outcomes = {"exact": 0, "consistent": 0, "refused by the ledger": 0, "refused by Spark": 0}
    killed: list[float] = []
    while len(killed) < options.kills:
        repeatable = len(killed) % 2 == 0
        killer = Thread(target=kill_one, args=(random, killed))
        killer.start()
        try:
            found = totals(spark, repeatable=repeatable)
        except SparkFailed as error:
            if repeatable:
                raise
            outcome = "refused by the ledger" if "does not add up" in str(error) else "refused by Spark"
        else:
            outcome = "exact" if repeatable else "consistent"
            sums = [sum(column) for column in zip(*found, strict=True)][1:]
            if sums != [NUMBERS, NUMBERS * (NUMBERS - 1) // 2] or (repeatable and found != exact):
                sys.exit(f"kill {len(killed)}: {sums}, which is wrong, and nothing has noticed it")
        killer.join()
        outcomes[outcome] += 1
        print(f"{len(killed)} kills: {outcomes}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
