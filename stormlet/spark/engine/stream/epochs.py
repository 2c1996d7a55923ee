"""The epochs of a stream on Spark, one after another.

An epoch is a micro-batch of the query. It has these steps, of which only the last one counts:

1. Its rows go through all stages (:mod:`stormlet.spark.engine.passage.passage`), together with the states that the
   epoch before has left. What comes out is kept in the checkpoint, and the ledger is checked.
2. Dead letters are handed over, durably, and sinks are written.
3. The record says that it is done. Then Spark notes that the micro-batch is.

A process that is killed before the third step does the epoch again from the same rows and the same states. One that is
killed between the record and Spark's note is given the micro-batch again, and leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from random import SystemRandom
from time import time
from typing import TYPE_CHECKING, Final

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.core.shortened import counted
from stormlet.core.state.commits import Stored
from stormlet.errors import SparkFailed
from stormlet.model.description import Description
from stormlet.runtime.dead_letters import DeadLetterSink
from stormlet.spark.engine.partition.keyed.carried import (
    EndStates,
    check_shapes,
    keyed_places,
    rows_with,
    shapes_of,
)
from stormlet.spark.engine.partition.keyed.groups import blob_in, by_state, id_of
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import frame_of, rows_in
from stormlet.spark.engine.passage.code import code_of, pickled, ship
from stormlet.spark.engine.passage.conduct import cancelled, explained, hand_over, settings
from stormlet.spark.engine.passage.connect import partitions_of
from stormlet.spark.engine.passage.executors import check_executors
from stormlet.spark.engine.passage.outputs import Leaving, check_sinks, with_outputs, write_sinks
from stormlet.spark.engine.passage.passage import Left, Passage, Saved, saved_in
from stormlet.spark.engine.passage.reports import Totals, failures_of, statistics_of
from stormlet.spark.engine.passage.sources import SourceFrames
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.layout import may_have_state
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, StatePlan, number
from stormlet.spark.engine.stream.checkpoint import Checkpoint, EpochRecord
from stormlet.spark.engine.stream.written import after, hashes_of, ids_of, to_write_again, written_by
from stormlet.spark.files import Folder
from stormlet.spark.frames import Origin
from stormlet.spark.sink.committed import owner_of
from stormlet.spark.sink.writer import Destination, SourceKey, check_epoch_columns, claim_line, replace_epoch
from stormlet.spark.stream.keeper import EPOCHS
from stormlet.spark.stream.stream import StreamSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNREADABLE: Final = "FAILED_READ_FILE"
"""In an error of Spark's for a file that it cannot read."""


class Epochs:
    """Those of one run. Methods block."""

    def __init__(
        self,
        description: Description,
        spout: str,
        source: StreamSource,
        files: Sequence[Path],
        sink: DeadLetterSink | None,
        sync: Callable[[], None] | None,
        stored: Stored | None = None,
    ) -> None:
        """``sink`` takes dead letters, and ``sync`` has the device hold those that it was given. ``stored`` has the
        keyed state that the first epoch of all begins with."""
        self._stored = stored
        self._spout = spout
        self._source = source
        self._files = files
        self._sink = sink
        self._sync = sync
        extended, self._leaving = with_outputs(description, [])
        self._description, self._configurations = extended.configured(
            extended.configuration, "a stream on Spark"
        )
        for id, each in self._leaving.items():
            if each.exactly_once:
                check_epoch_columns(f"bolt {id!r} with exactly_once=True", each.schema)
        self._checkpoint: Checkpoint | None = None
        self._opens_all = True
        """True until an epoch of this run has opened all groups."""
        self.totals = Totals()
        """The counts of those that were done in this run."""

    @property
    def last(self) -> int | None:
        """The number of the last one that is done; None before the first."""
        record = None if self._checkpoint is None else self._checkpoint.last
        return None if record is None else record.epoch

    @explained()
    def prepare(self) -> None:
        """Prepare for the first one of a run. Raises :class:`~stormlet.errors.InvalidTopology` if the checkpoint is not
        one of this topology, and :class:`~stormlet.errors.SparkUnavailable` if an executor cannot run it."""
        query = self._source.query
        session, cluster = query.frame.sparkSession, self._numbered(1, StatePlan())
        checkpoint = Checkpoint(session, query.checkpoint)
        checkpoint.check(cluster.plan.description.name, _tasks(cluster))
        checkpoint.check_states(self._description)
        checkpoint.check_files()
        if checkpoint.last is None and self._stored is not None:
            check_shapes(self._description, self._stored.shapes)
        check_sinks(session, self._leaving)
        check_executors(session)
        code = [pickled(cluster), *map(code_of, self._description.spouts.values())]
        ship(session, code, self._files)
        for each in self._leaving.values():
            if each.destination is not None:
                each.destination.begin(session.createDataFrame([], each.schema))
        self._checkpoint = checkpoint

    def execute(self, batch: DataFrame, epoch: int, query: str) -> None:
        """Execute the epoch of a micro-batch; ``query`` is the id of its query.

        Raises :class:`~stormlet.errors.SparkFailed`; then it must be given again.
        """
        try:
            self._execute(batch, epoch, query)
        except SparkFailed as error:
            if UNREADABLE not in str(error) or f"/{EPOCHS}/" not in str(error):
                raise
            raise SparkFailed(
                f"checkpoint {self._source.query.checkpoint} cannot be read: {error}; bring that file back, or "
                f"begin with another checkpoint"
            ) from error.__cause__

    @explained()
    def _execute(self, batch: DataFrame, epoch: int, query: str) -> None:
        checkpoint, session = self._checkpoint, batch.sparkSession
        assert checkpoint is not None, "it was prepared"
        if checkpoint.is_done(epoch, query):
            return
        if self._opens_all:
            self._claim_lines(session, query)
        frame, values_of = self._source.distributed(batch)
        with settings(session):
            partitions = partitions_of(frame)
        cluster = self._numbered(partitions or 1, self._state_plan(checkpoint.last, epoch))
        by_spark = {self._spout: (frame, values_of)} if partitions else {}
        sources = SourceFrames(session, self._description.spouts, by_spark)
        with cancelled(session), settings(session):
            seed = SystemRandom().getrandbits(64)
            passage = Passage(session, cluster, pickled(cluster), sources, seed)
            saved_before = self._saved(session, checkpoint, cluster)
            passed = passage.run(checkpoint.begin(epoch), self._leaving, saved_before)
            letters = [_in_epoch(epoch, each) for each in passage.letters(passed.given_up)]
            self._check(epoch, letters)
            hand_over(letters, self._sink)
            if letters and self._sync is not None:
                self._sync()
            write = _writer(SourceKey(f"query-{query}"), epoch)
            write_sinks(self._leaving, passed.kept, cluster, write)
        checkpoint.end(self._record(epoch, query, cluster, checkpoint, passed.left))
        self._opens_all = False
        statistics = statistics_of(cluster, passed.reports, passed.given_up)
        self.totals.add(statistics, failures_of(passed.reports))

    def _claim_lines(self, session: SparkSession, query: str) -> None:
        for id, each in self._leaving.items():
            if each.exactly_once and each.destination is not None and each.destination.path is not None:
                folder = Folder(session, each.destination.path)
                owner = owner_of(self._description.name, id)
                claim_line(session, folder, f"bolt {id!r}", f"query-{query}", owner)

    def _state_plan(self, last: EpochRecord | None, epoch: int) -> StatePlan:
        kept = () if last is None else last.groups
        again = to_write_again(kept)
        if last is not None and dict(last.shapes) != shapes_of(self._description):
            again = frozenset(each.epoch for each in kept)  # what is of another type by now, above all
        return StatePlan(time(), epoch, again, self._opens_all)

    def _record(
        self, epoch: int, query: str, cluster: ClusterPlan, checkpoint: Checkpoint, left: Left
    ) -> EpochRecord:
        last, places = checkpoint.last, keyed_places(cluster)
        before = () if last is None or last.keyed != places else last.groups
        return EpochRecord(
            epoch,
            query,
            cluster.plan.description.name,
            _tasks(cluster),
            left.states,
            left.driver,
            cluster.state.now,
            after(before, written_by(epoch, checkpoint.groups_written(epoch), left.groups)),
            places,
            [*shapes_of(self._description).items()],
            checkpoint.rows_written(epoch),
        )

    def _numbered(self, partitions: int, state: StatePlan) -> ClusterPlan:
        spouts = {self._spout: partitions}
        return number(self._description, self._configurations, spouts, in_epochs=True, state=state)

    def states(self, session: SparkSession) -> EndStates:
        """Return the keyed states that the last epoch has left."""
        checkpoint = self._checkpoint
        last = None if checkpoint is None else checkpoint.last
        if checkpoint is None or last is None:
            return EndStates(self._description, tuple, time())
        return EndStates(self._description, lambda: _groups_read(session, checkpoint, last), last.now)

    def _saved(self, session: SparkSession, checkpoint: Checkpoint, cluster: ClusterPlan) -> Saved:
        place, record, stored = checkpoint.rows_of_last(), checkpoint.last, self._stored
        if place is None or record is None:
            return saved_in(session, rows_with(cluster, stored.states, stored.shapes) if stored else ())
        rows, hashes = rows_in(session, place), record.states ^ hashes_of(record.groups)
        rows = rows.where(rows["kind"] == int(Kind.STATE))
        if record.keyed == keyed_places(cluster):
            if record.groups:  # the task takes those of each group that were written last
                rows = rows.unionAll(rows_in(session, *checkpoint.groups_of(record.groups)))
            return Saved(rows, hashes, record.driver)
        # Keys go to other tasks by now. What they had must have been all, or the ledger does not add up.
        before = _groups_read(session, checkpoint, record)
        moved = rows_with(cluster, by_state(map(blob_in, before)), dict(record.shapes))
        hashes = reduce(int.__xor__, (row.hash for row in (*before, *moved)), hashes)
        return Saved(rows.unionAll(frame_of(session, moved)), hashes, record.driver)

    def _check(self, epoch: int, letters: Sequence[DeadLetter]) -> None:
        """Raise :class:`~stormlet.errors.SparkFailed` if the epoch may not give up a message."""
        if letters and self._source.fails_batch:
            raise SparkFailed(
                f"{self._source.query.name}: {counted(len(letters), 'message was', 'messages were')} given up in epoch "
                f"{epoch}, and the batch comes again; the first: {letters[0].failure}"
            )


def _writer(source: SourceKey, epoch: int) -> Callable[[Leaving, Destination, DataFrame], None]:
    def write(leaving: Leaving, destination: Destination, rows: DataFrame) -> None:
        if leaving.exactly_once:
            assert destination.path is not None, "a table is refused before"
            folder = Folder(rows.sparkSession, destination.path)
            replace_epoch(destination, folder, source, epoch, rows)
        else:
            destination.append(rows)

    return write


def _groups_read(session: SparkSession, checkpoint: Checkpoint, record: EpochRecord) -> Sequence[Row]:
    """The rows of all key groups that a record names, in this process."""
    if not record.groups:
        return ()
    kept, named = Kept(session, *checkpoint.groups_of(record.groups)), ids_of(record.groups)
    return [row for row in kept.rows(Kind.KEYED) if (id_of(row), row.size) in named]


def _tasks(cluster: ClusterPlan) -> Mapping[str, Sequence[Place]]:
    """The places of all tasks whose bolts may have state."""
    bolts = cluster.plan.description.bolts
    return {
        id: [cluster.places[task.task] for task in tasks]
        for id, tasks in cluster.plan.tasks.items()
        if (bolt := bolts.get(id)) is not None and may_have_state(bolt)
    }


def _in_epoch(epoch: int, letter: DeadLetter) -> DeadLetter:
    """The letter with the epoch in its origin."""
    origin = letter.origin
    if not isinstance(origin, Origin):
        return letter
    origin = msgspec.structs.replace(origin, epoch=epoch)
    return msgspec.structs.replace(letter, origin=origin, message_id=origin)
