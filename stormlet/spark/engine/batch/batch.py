"""``run_on_spark``: a topology as one batch on Spark.

A run has four steps, and writes nothing that anybody sees before the fourth:

1. The driver reads the sources that Spark cannot read, and sends the user's code to the executors.
2. Spark runs the chain of stages, and keeps the rows after the last one in a folder: what is checked is what is used.
3. The ledger over all partitions is checked (:mod:`stormlet.spark.engine.partition.account`). If it does not add up,
   the run fails.
4. The bolts of the driver are executed, and what they have settled is checked, too. Messages that were given up become
   dead letters, and sinks are written.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from inspect import isawaitable
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast
from uuid import uuid4

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import InvalidConfiguration, InvalidTopology, SparkFailed, StormletError
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Description
from stormlet.model.streams import Stream, StreamId
from stormlet.runtime.dead_letters import DeadLetterSink, DeadLetterTarget, opened
from stormlet.spark.engine.batch.arrow_rows import DDL
from stormlet.spark.engine.batch.chain import chained
from stormlet.spark.engine.batch.code import code_of, pickled, ship
from stormlet.spark.engine.batch.driver import Driver
from stormlet.spark.engine.batch.executors import check_executors
from stormlet.spark.engine.batch.ledger import Ledger
from stormlet.spark.engine.batch.messages import FOUND, Finder, by_message, letters_of
from stormlet.spark.engine.batch.outcomes import letter_frame, outcomes_of
from stormlet.spark.engine.batch.outputs import with_outputs, write_sinks
from stormlet.spark.engine.batch.reports import ends_of, failures_of, statistics_of
from stormlet.spark.engine.batch.result import BatchResult
from stormlet.spark.engine.batch.sources import SourceFrames
from stormlet.spark.engine.batch.stage import FrameStage, Stage
from stormlet.spark.engine.batch.staging import Staging
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.planning.numbering import number
from stormlet.spark.engine.planning.refusals import check_batch
from stormlet.spark.failures import raised_in_task, summary
from stormlet.spark.session import spark_session
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
}
ROWS, MESSAGES = "rows", "messages"
"""Folders of what the last stage has left, and of messages that are too many for memory."""


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
    ledger: Literal["checksum", "roots"] = "checksum",
    **configuration: Unpack[TopologyOptions],
) -> BatchResult:
    """Run a topology as one batch on Spark, and return when all is done. It blocks: in a service, await it by
    ``asyncio.to_thread``.

    ``spark`` is the session; without it, the one of :func:`~stormlet.spark.spark_session`. ``sources`` and
    ``dead_letters`` are as for :meth:`Topology.run <stormlet.topology.Topology.run>`. The result keeps the ``streams``
    that are named here, as DataFrames. The modules of the topology travel to the executors, and so do ``files``:
    modules, archives of them, and others. ``staging`` is a folder that the driver and all executors reach, in which the
    run keeps what it has not checked yet; without it, a temporary one of this machine. ``ledger`` is ``"checksum"``, or
    ``"roots"`` to have the messages named that are open where the run does not add up. ``configuration`` overrides the
    topology's options.

    Raises :class:`~stormlet.errors.InvalidTopology` for a topology that Spark cannot run, and
    :class:`~stormlet.errors.SparkFailed` if Spark, a bolt outside of ``execute``, or the ledger fails: then no sink is
    written. Sinks are written one after another at the end: if one of several cannot be, those before it are written.
    """
    where = f"run_on_spark of topology {topology.name!r}"
    described = topology.describe(sources)
    changed = configured(described.configuration, configuration, where, topology.name)
    described = msgspec.structs.replace(described, configuration=changed)
    wanted = [_stream_of(described, each) for each in streams]
    check_batch(described)
    _check_paths(where, files := list(files), staging)
    if ledger not in ("checksum", "roots"):
        raise InvalidConfiguration(f'{where}: ledger must be "checksum" or "roots", not {ledger!r}')
    sink, _ = opened(dead_letters)
    session = spark_session() if spark is None else spark
    batch = Batch(
        described,
        session,
        seed,
        streams=wanted,
        files=files,
        dead_letters=sink,
        by_root=ledger == "roots",
    )
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
        by_root: bool,
    ) -> None:
        self._session = session
        self._seed = SystemRandom().getrandbits(64) if seed is None else seed
        self._files = [Path(each) for each in files]
        self._letter_sink = dead_letters
        self._by_root = by_root
        extended, self._leaving = with_outputs(description, streams)
        described, configurations = extended.configured(extended.configuration, "a run on Spark")
        self._spouts = described.spouts
        self._sources = SourceFrames(session, self._spouts)
        self._cluster = number(described, configurations, self._sources.partitions())
        self._pickled = pickled(self._cluster)

    def run(self, staging: str | None) -> BatchResult:
        """Run all four steps."""
        folder = Staging(staging)
        try:
            return self._result(folder)
        except BaseException:
            folder.remove_from_writers()
            raise

    def _result(self, folder: Staging) -> BatchResult:
        cluster, by_spark = self._cluster, self._sources.by_spark
        elsewhere = [each.task for each in self._leaving.values()]
        driver = Driver(cluster, self._seed, elsewhere, by_root=self._by_root)
        with _explained(), _cancelled(self._session), settings(self._session):
            check_executors(self._session)
            code = [self._pickled, *map(code_of, self._spouts.values())]
            ship(self._session, code, self._files, folder.path)
            place = str(folder.path / ROWS)
            self._chain(folder).write.parquet(place)
            rows = self._session.read.schema(DDL).parquet(place)
            ends = ends_of(rows, cluster.driver, driver.tasks, by_root=self._by_root)
            lines = [*(each.line for each in ends.reports), ends.arrived]
            Ledger(cluster, by_spark).check(
                lines, self._sources.messages_read, rows if self._by_root else None
            )
            reports = [*ends.reports, *driver.run(rows, ends.for_driver)]
            given_up = by_message(each for report in reports for each in report.given_up)
            letters = self._letters(given_up, folder)
            folder.remove(MESSAGES)
            self._hand_over(letters)
            write_sinks(self._leaving, rows, cluster)
        return BatchResult(
            statistics_of(cluster, reports, given_up),
            failures_of(reports),
            letters,
            {
                name: partial(each.frame, rows, cluster)
                for name, each in self._leaving.items()
                if each.destination is None
            },
            partial(outcomes_of(cluster, [*by_spark], reports, given_up).frame, self._session),
            partial(letter_frame, self._session, letters, datetime.now(UTC)),
            folder,
        )

    # Running.

    def _chain(self, folder: Staging) -> DataFrame:
        first = [self._first(spout, folder) for spout in self._spouts]
        rows = first[0]
        for each in first[1:]:
            rows = rows.unionAll(each)
        by_root = self._by_root
        return chained(rows, self._cluster, self._pickled, self._seed, from_stage=1, by_root=by_root)

    def _first(self, spout: str, folder: Staging) -> DataFrame:
        """The rows after the first stage that come from one spout."""
        if spout not in self._sources.by_spark:
            stage = Stage(self._pickled, 0, self._seed, self._by_root)
            return self._read(spout, folder).mapInArrow(stage, DDL)
        frame, values_of = self._sources.by_spark[spout]
        return frame.mapInArrow(FrameStage(self._pickled, values_of, self._seed, self._by_root), DDL)

    def _read(self, spout: str, folder: Staging) -> DataFrame:
        return self._sources.read(self._cluster, spout, folder.path / MESSAGES)

    # The end.

    def _letters(self, given_up: Mapping[int, GivenUp], folder: Staging) -> Sequence[DeadLetter]:
        """The dead letters, in the order of the roots of their messages."""
        wanted, by_spark = frozenset(given_up), self._sources.by_spark
        found = dict[int, object]()
        for spout in self._spouts if wanted else ():
            frame, values_of = by_spark.get(spout) or (self._read(spout, folder), None)
            first = self._cluster.places[self._cluster.plan.tasks[spout][0].task].partition
            rows = frame.mapInArrow(Finder(self._pickled, wanted, values_of, first), FOUND).collect()
            found |= {root: pickle.loads(value) for root, value in cast("list[tuple[int, bytes]]", rows)}
        if len(found) < len(wanted):
            raise SparkFailed(
                f"{len(wanted) - len(found):,} of {len(wanted):,} messages that were given up are not found again in "
                f"their sources, whose rows have changed meanwhile. No sink was written"
            )
        return list(letters_of(self._cluster, given_up, found, by_spark))

    def _hand_over(self, letters: Iterable[DeadLetter]) -> None:
        if self._letter_sink is None:
            return
        for each in letters:
            taken = self._letter_sink(each)
            if isawaitable(taken):
                asyncio.run(_awaited(taken))


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
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except StormletError:
        raise
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(raised_in_task(error) or summary(error)) from error


async def _awaited(taken: Awaitable[None]) -> None:
    await taken
