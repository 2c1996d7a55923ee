"""A program that runs topologies by a session of Spark Connect, and pickles what came of them.

A process has sessions of one kind, and the tests' own is classic.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from fcntl import F_DUPFD, fcntl
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession, functions

from stormlet import Topology
from stormlet.errors import StormletError
from stormlet.spark import DataFrameSink, DataFrameSpout, run_on_spark, stream
from stormlet.spark.engine.passage.conduct import SETTINGS
from stormlet.spark.engine.passage.connect import default_parallelism, is_one_machine, partitions_of
from stormlet.testing import complete
from tests.spark.engine import flows
from tests.spark.engine.flows import Number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LINES = ["the sun was shining on the sea", "shining with all his might", "and this was odd"] * 50
OPTIONS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}


def words(session: SparkSession, _: Path) -> object:
    """A word count, in both engines."""
    topology, counts = flows.word_count(LINES)
    result, there = run_on_spark(topology, session, streams=[counts], ledger="roots"), complete(topology)
    outcomes = [tuple(each) for each in result.outcomes.groupBy("status").count().collect()]
    rows = sorted(tuple(each) for each in result.stream(counts).collect())
    return rows, sorted((each.word, each.count) for each in there[counts]), outcomes


def frame(session: SparkSession, _: Path) -> object:
    """The rows of a DataFrame whose second partition is empty, and its letters."""
    numbers = session.range(0, 40, 1, 4).where("id < 10 or id >= 20").withColumnRenamed("id", "n")
    topology, doubled = flows.doubles(DataFrameSpout(numbers, as_=Number))
    result = run_on_spark(topology, session, streams=[doubled])
    letters = [(each.value, each.origin, each.attempts) for each in result.dead_letters]
    return sorted(tuple(each) for each in result.stream(doubled).collect()), letters


def sink(session: SparkSession, folder: Path) -> object:
    """The rows that a sink has written."""
    topology = Topology("sink")
    numbers = topology.spout("numbers", [Number(n) for n in range(10)], outputs=Number)
    doubled = topology.bolt("double", flows.double, numbers.shuffle())
    topology.bolt(
        "write", DataFrameSink(f"{folder}/sink", schema="n bigint, twice bigint"), doubled.shuffle()
    )
    run_on_spark(topology, session)
    return sorted(tuple(each) for each in session.read.parquet(f"{folder}/sink").collect())


def refused(session: SparkSession, folder: Path) -> object:
    """The errors of sinks that can take no row."""
    options: Sequence[Mapping[str, Any]] = (
        {"options": {"compression": "zap"}},
        {"format": "csv", "schema": "n array<int>"},
        {"format": "parket"},
        {"mode": "error"},
    )
    Path(folder, "refused").mkdir()
    Path(folder, "refused", "file").touch()
    said = list[str]()
    for each in options:
        topology = Topology("refused")
        numbers = topology.spout("numbers", [Number(1)], outputs=Number)
        topology.bolt("write", DataFrameSink(f"{folder}/refused", **each), numbers.shuffle())
        said.append(error_of(partial(run_on_spark, topology, session)))
    return said


def crash(session: SparkSession, folder: Path) -> object:
    """The error of a bolt that raises at the end, and the files that a sink beside it has written."""
    topology = Topology("crash")
    numbers = topology.spout("numbers", [Number(1)], outputs=Number)
    topology.bolt("end", flows.Unfinished, numbers.shuffle())
    topology.bolt("write", DataFrameSink(f"{folder}/crash", schema="n bigint"), numbers.shuffle())
    return error_of(lambda: run_on_spark(topology, session)), Path(folder, "crash").exists()


def broken(session: SparkSession, _: Path) -> object:
    """The error of a source that Spark cannot compute."""
    rows = session.range(3).select(
        functions.raise_error(functions.lit("no rows today")).cast("bigint").alias("n")
    )
    return error_of(lambda: run_on_spark(flows.doubles(DataFrameSpout(rows, as_=Number))[0], session))


def partitions(session: SparkSession, _: Path) -> object:
    """The partitions of DataFrames: some are empty, some of many batches, and one has none; and the default."""
    large, empty, none = (
        session.range(0, 100_000, 1, 3),
        session.range(0, 9, 1, 3).where("id < 0"),
        session.range(0),
    )
    return [*map(partitions_of, (large, empty, none)), default_parallelism(session)]


def in_process(session: SparkSession, _: Path) -> object:
    """The error of a DataFrame that this process would read."""
    topology, _ = flows.doubles(DataFrameSpout(session.range(3).withColumnRenamed("id", "n"), as_=Number))
    return error_of(lambda: complete(topology))


def streaming(session: SparkSession, folder: Path) -> object:
    """The error of a stream."""
    topology = Topology("stream")
    rows: DataFrame = session.readStream.format("rate").load()
    into = topology.spout("rows")
    return error_of(lambda: stream(rows, topology, into=into, checkpoint=folder / "checkpoint"))


def unreached(session: SparkSession, folder: Path) -> object:
    """The error of a folder that another process has under this name, or none."""
    mine = fcntl(os.open(folder, os.O_RDONLY), F_DUPFD, 1000)
    return error_of(
        lambda: run_on_spark(flows.word_count(LINES)[0], session, staging=f"/proc/self/fd/{mine}")
    )


def settings(session: SparkSession, _: Path) -> object:
    """What earlier runs have left set."""
    return [each for each in SETTINGS if session.conf.get(each, None) is not None]


def one_machine(session: SparkSession, _: Path) -> object:
    """False, if a task compares the packages."""
    return is_one_machine(session)


def error_of(call: Callable[[], object]) -> str:
    """The class and the text of what is raised."""
    try:
        call()
    except StormletError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


PARTS: Mapping[str, Callable[[SparkSession, Path], object]] = {
    each.__name__: each
    for each in (
        words,
        frame,
        sink,
        refused,
        crash,
        broken,
        partitions,
        in_process,
        streaming,
        unreached,
        settings,
        one_machine,
    )
}


def main(folder: Path) -> None:
    """Run all, and write what came of them."""
    builder: Any = SparkSession.builder
    session = builder.remote("local[2]").config(map=OPTIONS).getOrCreate()
    try:
        found = {name: part(session, folder) for name, part in PARTS.items()}
    finally:
        session.stop()
    (folder / "found").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
