"""``run_on_spark``: a topology as one batch on Spark.

A run has four steps, and writes nothing that anybody sees before the fourth:

1. The driver reads the sources that Spark cannot read, and sends the user's code to the executors.
2. Spark runs the chain of stages, and keeps the rows after the last one in a folder: what is checked is what is used.
3. The ledger over all partitions is checked (:mod:`stormlet.spark.engine.partition.account`). If it does not add up,
   the run fails.
4. The bolts of the driver are executed. Messages that were given up become dead letters, and sinks are written.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import re
from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final, Unpack, cast
from uuid import uuid4

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import InvalidConfiguration, InvalidTopology, SparkFailed, StormletError
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Description, SpoutSpec
from stormlet.model.streams import Stream, StreamId
from stormlet.runtime.dead_letters import DeadLetterSink, DeadLetterTarget, opened
from stormlet.runtime.run.kit import Kit
from stormlet.spark.engine.batch.arrow_rows import BATCH_BYTES, DDL
from stormlet.spark.engine.batch.chain import chained, exchanged
from stormlet.spark.engine.batch.code import code_of, pickled, ship
from stormlet.spark.engine.batch.executors import check_executors
from stormlet.spark.engine.batch.messages import FOUND, Finder, ValuesOf, letters_of
from stormlet.spark.engine.batch.outputs import Leaving, Unpacker, with_outputs
from stormlet.spark.engine.batch.reports import (
    Report,
    ends_of,
    failures_of,
    report_of,
    statistics_of,
)
from stormlet.spark.engine.batch.result import BatchResult
from stormlet.spark.engine.batch.sources import frame_of, message_rows
from stormlet.spark.engine.batch.stage import FrameStage, Stage
from stormlet.spark.engine.batch.staging import Staging
from stormlet.spark.engine.partition.account import Line, differences
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.partition import Partition
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning.numbering import number
from stormlet.spark.engine.planning.refusals import check_batch
from stormlet.spark.failures import summary
from stormlet.spark.session import spark_session
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.topology import Sources, Topology
from stormlet.topology.builder import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS: Final[Mapping[str, str]] = {
    # Else children of a union may be merged partition by partition, and a task would not know its number.
    "spark.sql.unionOutputPartitioning": "false",
    # Where two attempts of a task differ, Spark repeats what has read the first one (4.1 and later).
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    # A row of ours is a chunk of a thousand tuples, and Arrow's batches have 64 MiB otherwise.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
}
OUR_ERROR: Final = re.compile(r"^stormlet\.errors\.\w+: (.*)$", re.MULTILINE)
"""The line of one of our errors in the traceback that Spark gives for a task."""


def run_on_spark(
    topology: Topology,
    spark: SparkSession | None = None,
    *,
    sources: Sources | None = None,
    streams: Iterable[Stream[Any] | str] = (),
    files: Iterable[str | os.PathLike[str]] = (),
    dead_letters: DeadLetterTarget | None = None,
    seed: int | None = None,
    staging: str | os.PathLike[str] | None = None,
    **configuration: Unpack[TopologyOptions],
) -> BatchResult:
    """Run a topology as one batch on Spark, and return when all is done. It blocks: in a service, await it by
    ``asyncio.to_thread``.

    ``spark`` is the session; without it, the one of :func:`~stormlet.spark.spark_session`. ``sources`` and
    ``dead_letters`` are as for :meth:`Topology.run <stormlet.topology.Topology.run>`. The result keeps the ``streams``
    that are named here, as DataFrames. The modules of the topology travel to the executors, and so do ``files``:
    modules, archives of them, and others. ``staging`` is a folder that the driver and all executors reach, in which the
    run keeps what it has not checked yet; without it, a temporary one of this machine. ``configuration`` overrides the
    topology's options.

    Raises :class:`~stormlet.errors.InvalidTopology` for a topology that Spark cannot run, and
    :class:`~stormlet.errors.SparkFailed` if Spark, a bolt outside of ``execute``, or the ledger fails. No sink is
    written then.
    """
    where = f"run_on_spark of topology {topology.name!r}"
    described = topology.describe(sources)
    changed = configured(described.configuration, configuration, where, topology.name)
    described = msgspec.structs.replace(described, configuration=changed)
    wanted = [_stream_of(described, each) for each in streams]
    check_batch(described)
    _check_paths(where, files := list(files), staging)
    sink, _ = opened(dead_letters)
    session = spark_session() if spark is None else spark
    batch = Batch(described, session, seed, streams=wanted, files=files, dead_letters=sink)
    return batch.run(None if staging is None else os.fspath(staging))


def _check_paths(
    where: str, files: Iterable[str | os.PathLike[str]], staging: str | os.PathLike[str] | None
) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for what is not there, before Spark starts."""
    for file in files:
        if not Path(file).is_file():
            raise InvalidConfiguration(
                f"{where}: there is no file {os.fspath(file)!r} to send to the executors"
            )
    if staging is not None and not Path(staging).is_dir():
        raise InvalidConfiguration(
            f"{where}: there is no folder {os.fspath(staging)!r} for staging; make it first"
        )


def _stream_of(description: Description, stream: Stream[Any] | str) -> StreamId:
    """The stream that users name. Raises :class:`~stormlet.errors.InvalidTopology` if there is none."""
    wanted = stream.id if isinstance(stream, Stream) else StreamId(stream, DEFAULT_STREAM)
    component = description.components.get(wanted.component)
    if component is None or wanted.stream not in component.outputs:
        raise InvalidTopology(f"streams=: topology {description.name!r} has no {wanted}")
    return wanted


class Batch:
    """One run."""

    def __init__(
        self,
        description: Description,
        session: SparkSession,
        seed: int | None,
        *,
        streams: Sequence[StreamId],
        files: Iterable[str | os.PathLike[str]],
        dead_letters: DeadLetterSink | None,
    ) -> None:
        self._session = session
        self._seed = SystemRandom().getrandbits(64) if seed is None else seed
        self._files = [Path(each) for each in files]
        self._letter_sink = dead_letters
        extended, self._leaving = with_outputs(description, streams)
        described, configurations = extended.configured(extended.configuration, "a run on Spark")
        self._spouts = described.spouts
        self._frames = {id: each for id, spout in self._spouts.items() if (each := _distributed(spout))}
        partitions = {id: self._partitions_of(spout) for id, spout in self._spouts.items()}
        self._cluster = number(described, configurations, partitions)
        self._pickled = pickled(self._cluster)
        self._messages: dict[str, DataFrame] = {}
        self._messages_read = 0

    def run(self, staging: str | None) -> BatchResult:
        """Run all four steps."""
        folder = Staging(staging)
        try:
            return self._result(folder)
        except BaseException:
            folder.remove_from_writers()
            raise

    def _result(self, folder: Staging) -> BatchResult:
        with _explained(), _cancelled(self._session), settings(self._session):
            check_executors(self._session)
            code = [self._pickled, *map(code_of, self._spouts.values())]
            ship(self._session, code, self._files, folder.path)
            place = str(folder.path / "rows")
            self._chain().write.parquet(place)
            rows = self._session.read.schema(DDL).parquet(place)
            reports, arrived = ends_of(rows, self._cluster.driver)
            self._check([*(each.line for each in reports), arrived])
            reports += self._in_driver(rows)
            letters = self._letters([each for report in reports for each in report.given_up])
            self._hand_over(letters.values())
            self._write(rows)
        streams = {
            name: partial(self._frame, rows, each)
            for name, each in self._leaving.items()
            if each.destination is None
        }
        statistics = statistics_of(self._cluster, reports, letters)
        return BatchResult(statistics, failures_of(reports), list(letters.values()), streams, folder)

    def _partitions_of(self, spout: SpoutSpec) -> int:
        if spout.id in self._frames:
            return self._frames[spout.id][0].rdd.getNumPartitions()
        return self._session.sparkContext.defaultParallelism

    # Running.

    def _chain(self) -> DataFrame:
        first = [self._first(spout) for spout in self._spouts.values()]
        rows = first[0]
        for each in first[1:]:
            rows = rows.unionAll(each)
        return chained(rows, self._cluster, self._pickled, self._seed, from_stage=1)

    def _first(self, spout: SpoutSpec) -> DataFrame:
        """The rows after the first stage that come from one spout."""
        if spout.id not in self._frames:
            return self._read(spout).mapInArrow(Stage(self._pickled, 0, self._seed), DDL)
        frame, values_of = self._frames[spout.id]
        return frame.mapInArrow(FrameStage(self._pickled, values_of, self._seed), DDL)

    def _read(self, spout: SpoutSpec) -> DataFrame:
        """The messages of a spout that the driver reads, in its partitions."""
        if spout.id not in self._messages:
            rows = frame_of(self._session, self._counted(message_rows(self._cluster, spout)))
            self._messages[spout.id] = exchanged(rows, 0, len(self._cluster.plan.tasks[spout.id]))
        return self._messages[spout.id]

    def _counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self._messages_read += row.size
            yield row

    def _check(self, lines: Sequence[Line]) -> None:
        found = [*differences(lines, self._cluster.partitions)]
        by_spark = self._cluster.partitions_of(self._frames)
        emitted = sum(line.messages for line in lines if line.place not in by_spark)
        if emitted != self._messages_read:
            found.append(f"{self._messages_read:,} messages were read by the driver, and {emitted:,} emitted")
        if found:
            raise SparkFailed(
                f"the ledger of topology {self._cluster.plan.description.name!r} does not add up: {'; '.join(found)}. "
                f"No sink was written. A bolt that gives other outputs for the same inputs does this when Spark "
                f"repeats one of its tasks: make it repeatable, or run it again"
            )

    # The end.

    def _in_driver(self, rows: DataFrame) -> Sequence[Report]:
        taken = [each.task for each in self._leaving.values()]
        here = self._cluster.tasks_at(self._cluster.driver)
        tasks = [each.task for each in here if each.component not in taken]
        if not tasks:
            return []
        chunks = rows.where((rows["kind"] == int(Kind.CHUNK)) & rows["target"].isin(tasks))
        ordered = chunks.coalesce(1).sortWithinPartitions("producer", "number").toLocalIterator()
        arriving = (Row(*each) for each in cast("Iterable[tuple[Any, ...]]", ordered))
        return [asyncio.run(self._executed(arriving))]

    async def _executed(self, arriving: Iterator[Row]) -> Report:
        partition = Partition(self._cluster, self._cluster.driver, self._seed, Kit())
        try:
            await partition.start()
            for row in arriving:
                await partition.execute(row)
            await partition.finish()
            return report_of(partition)
        finally:
            await partition.close()

    def _letters(self, given_up: Sequence[GivenUp]) -> Mapping[int, DeadLetter]:
        """The dead letters, by the root of their message."""
        wanted = frozenset(root for each in given_up for root in each.messages)
        found = dict[int, object]()
        for spout in self._spouts.values() if wanted else ():
            frame, values_of = self._frames.get(spout.id) or (self._read(spout), None)
            first = self._cluster.places[self._cluster.plan.tasks[spout.id][0].task].partition
            rows = frame.mapInArrow(Finder(self._pickled, wanted, values_of, first), FOUND).collect()
            found |= {root: pickle.loads(value) for root, value in cast("list[tuple[int, bytes]]", rows)}
        if len(found) < len(wanted):
            raise SparkFailed(
                f"{len(wanted) - len(found):,} of {len(wanted):,} messages that were given up are not found again in "
                f"their sources, whose rows have changed meanwhile. No sink was written"
            )
        return dict(zip(sorted(found), letters_of(self._cluster, given_up, found, self._frames), strict=True))

    def _hand_over(self, letters: Iterable[DeadLetter]) -> None:
        if self._letter_sink is None:
            return
        for each in letters:
            taken = self._letter_sink(each)
            if isawaitable(taken):
                asyncio.run(_awaited(taken))

    def _write(self, rows: DataFrame) -> None:
        for each in self._leaving.values():
            if each.destination is not None:
                each.destination.write(self._frame(rows, each))

    def _frame(self, rows: DataFrame, leaving: Leaving) -> DataFrame:
        """The rows of one stream that leaves."""
        task = self._cluster.plan.tasks[leaving.task][0].task
        chunks = rows.where((rows["kind"] == int(Kind.CHUNK)) & (rows["target"] == task))
        return chunks.mapInArrow(Unpacker(), leaving.schema)


@contextmanager
def settings(session: SparkSession) -> Generator[None]:
    """Run with :data:`SETTINGS`, and put back what was set before."""
    before = {name: session.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, earlier)


@contextmanager
def _cancelled(session: SparkSession) -> Generator[None]:
    """Cancel the jobs of the run if it does not come to its end, as by Ctrl-C."""
    tag = f"stormlet-{uuid4()}"
    session.addTag(tag)
    try:
        yield
    except BaseException:
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


@contextmanager
def _explained() -> Generator[None]:
    """Raise what Spark raises as an error of ours: what a task has raised, if that was one."""
    from pyspark.errors import PySparkException

    try:
        yield
    except StormletError:
        raise
    except PySparkException as error:
        ours = OUR_ERROR.findall(str(error))
        raise SparkFailed(ours[-1] if ours else summary(error)) from error


async def _awaited(taken: Awaitable[None]) -> None:
    await taken


def _distributed(spout: SpoutSpec) -> tuple[DataFrame, ValuesOf] | None:
    """The DataFrame that a spout reads, and the function that makes values of it; None if the driver reads."""
    source = spout.source
    return source.distributed() if isinstance(source, DataFrameSpout) else None
