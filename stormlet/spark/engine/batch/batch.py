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

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import SystemRandom
from time import time
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec

from stormlet.core.state.commits import Stored
from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Description
from stormlet.model.streams import Stream, StreamId
from stormlet.runtime.dead_letters import DeadLetterSink, DeadLetterTarget, opened
from stormlet.spark.engine.batch.outcomes import Outcomes, letter_frame
from stormlet.spark.engine.batch.passes import Done, PassageOf, Passes, in_one_pass
from stormlet.spark.engine.batch.result import BatchResult
from stormlet.spark.engine.partition.keyed.carried import EndStates, rows_with, stored_in
from stormlet.spark.engine.partition.rows import Kind
from stormlet.spark.engine.passage.code import code_of, pickled, ship
from stormlet.spark.engine.passage.conduct import (
    cancelled,
    check_paths,
    check_session,
    explained,
    hand_over,
    settings,
)
from stormlet.spark.engine.passage.connect import check_reach
from stormlet.spark.engine.passage.executors import check_executors
from stormlet.spark.engine.passage.outputs import Leaving, check_sinks, with_outputs, write_sinks
from stormlet.spark.engine.passage.passage import Passage, saved_in
from stormlet.spark.engine.passage.sources import SourceFrames
from stormlet.spark.engine.passage.staging import Staging
from stormlet.spark.engine.planning.numbering import ClusterPlan, StatePlan, number
from stormlet.spark.engine.planning.refusals import check_batch, check_replays
from stormlet.spark.session import spark_session
from stormlet.spark.sink.writer import Destination
from stormlet.topology import Sources, Topology
from stormlet.topology.builder import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    replays: Literal["stage", "source"] = "stage",
    initial_state: str | os.PathLike[str] | None = None,
    **configuration: Unpack[TopologyOptions],
) -> BatchResult:
    """Run a topology as one batch on Spark, and return when all is done. It blocks: in a service, await it by
    ``asyncio.to_thread``.

    ``spark`` is the session; without it, the one of :func:`~stormlet.spark.spark_session`. ``sources`` and
    ``dead_letters`` are as for :meth:`Topology.run <stormlet.topology.Topology.run>`. The result keeps the ``streams``
    that are named here, as DataFrames. The modules of the topology travel to the executors, and so do ``files``:
    modules, archives of them, and others. ``staging`` is a folder that the driver and all executors reach, in which the
    run keeps what it has not checked yet; without it, a temporary one of this machine. ``ledger`` is ``"checksum"``, or
    ``"roots"`` to have the messages named that are open where the run does not add up. ``replays`` are from the
    ``"stage"`` in which an input has failed, or from the ``"source"``: then the message is emitted again, as in
    process, in another pass over all stages. ``initial_state`` is a state file, with whose keyed state the bolts begin:
    with the state alone, as the sources are read from their beginning. The file stays as it is. ``configuration``
    overrides the topology's options.

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
    check_paths(where, files := list(files), staging)
    if ledger not in ("checksum", "roots"):
        raise InvalidConfiguration(f'{where}: ledger must be "checksum" or "roots", not {ledger!r}')
    if replays not in ("stage", "source"):
        raise InvalidConfiguration(f'{where}: replays must be "stage" or "source", not {replays!r}')
    if replays == "source":
        check_replays(described)
    if spark is not None:
        check_session(where, spark)
    stored = None if initial_state is None else stored_in(initial_state)
    topology._one_shot.use(described.spouts.values())  # pyright: ignore[reportPrivateUsage] - as a run in process does
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
        replays_in_stage=replays == "stage",
        stored=stored,
    )
    return batch.run(None if staging is None else os.fspath(staging))


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
        replays_in_stage: bool,
        stored: Stored | None,
    ) -> None:
        self._session = session
        self._seed = SystemRandom().getrandbits(64) if seed is None else seed
        self._files = [Path(each) for each in files]
        self._letter_sink = dead_letters
        self._by_root = by_root
        extended, self._leaving = with_outputs(description, streams)
        described, configurations = extended.configured(extended.configuration, "a run on Spark")
        self._spouts = described.spouts
        with explained(), settings(session):
            self._sources = SourceFrames(session, self._spouts)
            partitions = self._sources.partitions()
        self._cluster = number(
            described,
            configurations,
            partitions,
            in_epochs=not replays_in_stage,
            replays_in_stage=replays_in_stage,
            state=StatePlan(time()),
        )
        self._states = () if stored is None else rows_with(self._cluster, stored.states, stored.shapes)
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
        with explained(), cancelled(self._session), settings(self._session):
            check_reach(self._session, folder.path)
            check_sinks(self._session, self._leaving, folder.path)
            check_executors(self._session)
            code = [self._pickled, *map(code_of, self._spouts.values())]
            ship(self._session, code, self._files)
            passage_of = partial(self._passage, folder.path / MESSAGES)
            done = self._passes(passage_of, folder.path / ROWS)
            letters = passage_of(cluster, None, 0).letters(done.given_up)
            folder.remove(MESSAGES)
            hand_over(letters, self._letter_sink)
            write_sinks(self._leaving, done.kept, cluster, _write)
        outcomes = Outcomes(cluster, [*by_spark], done.messages, done.given_up, done.replayed)
        return BatchResult(
            done.statistics,
            done.failures,
            letters,
            {
                name: partial(each.result, done.kept, cluster)
                for name, each in self._leaving.items()
                if each.destination is None
            },
            partial(outcomes.frame, self._session),
            partial(letter_frame, self._session, letters, datetime.now(UTC)),
            EndStates(cluster.plan.description, partial(done.kept.rows, Kind.KEYED), cluster.state.now),
            folder,
        )

    def _passage(
        self, messages: Path, cluster: ClusterPlan, again: Mapping[int, int] | None, number: int
    ) -> Passage:
        return Passage(
            self._session,
            cluster,
            self._pickled if cluster is self._cluster else pickled(cluster),
            self._sources,
            self._seed + number,
            by_root=self._by_root,
            messages=messages,
            again=again,
        )

    def _passes(self, passage_of: PassageOf, place: Path) -> Done:
        if self._cluster.replays_in_stage:
            saved = saved_in(self._session, self._states)
            return in_one_pass(self._cluster, passage_of, self._leaving, place, saved)
        return Passes(self._cluster, passage_of, self._leaving).run(place)


def _write(leaving: Leaving, destination: Destination, rows: DataFrame) -> None:
    destination.write(rows)
