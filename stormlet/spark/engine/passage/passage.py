"""One passage of messages through all stages, from their spouts to the driver.

What the last stage leaves is written into a folder: what is checked is what is used. Then the ledger over all
partitions is checked (:mod:`stormlet.spark.engine.partition.account`), and after it the bolts of the driver are
executed. A passage hands nothing over; that is up to the batch, or to the epoch, that it is.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import SparkFailed
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.keyed.groups import GroupId
from stormlet.spark.engine.partition.partition import origin_of
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import DDL, frame_of
from stormlet.spark.engine.passage.chain import chained
from stormlet.spark.engine.passage.driver import Driver
from stormlet.spark.engine.passage.ledger import Ledger
from stormlet.spark.engine.passage.messages import FOUND, Finder, by_message, letters_of
from stormlet.spark.engine.passage.outputs import Leaving
from stormlet.spark.engine.passage.reports import Report, ends_of, opened
from stormlet.spark.engine.passage.sources import SourceFrames
from stormlet.spark.engine.passage.stage import FrameStage, Stage
from stormlet.spark.engine.passage.staging import Kept, keep
from stormlet.spark.engine.planning.numbering import ClusterPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Saved(msgspec.Struct, frozen=True):
    """The states of bolts before an epoch of a stream."""

    rows: DataFrame | None = None
    """The rows that bring them to their places; None if there are none yet."""
    hashes: int = 0
    """The XOR of the hashes of these rows."""
    driver: bytes = b""
    """The state of the bolts in the driver."""


class Left(msgspec.Struct, frozen=True):
    """The states that a passage has left, their rows left out."""

    states: int
    """The XOR of the hashes of all rows with the state of ordinary bolts."""
    groups: Mapping[GroupId, int]
    """That of the rows of each key group which it has written."""
    driver: bytes
    """The state of the bolts in the driver."""

    @property
    def hashes(self) -> int:
        """The XOR of the hashes of all these rows."""
        return reduce(int.__xor__, self.groups.values(), self.states)


def saved_in(session: SparkSession, rows: Sequence[Row]) -> Saved:
    """Return states that this process has in rows."""
    if not rows:
        return Saved()
    return Saved(frame_of(session, rows), reduce(int.__xor__, (row.hash for row in rows)))


class Passed(msgspec.Struct, frozen=True):
    """The end of a passage that adds up."""

    kept: Kept
    """All that the last stage has left."""
    reports: Sequence[Report]
    given_up: Mapping[int, GivenUp]
    """By the root of each message that was given up."""
    left: Left


class Passage:
    """One of them."""

    def __init__(
        self,
        session: SparkSession,
        cluster: ClusterPlan,
        pickled: bytes,
        sources: SourceFrames,
        seed: int,
        *,
        by_root: bool = False,
        messages: Path | None = None,
        again: Mapping[int, int] | None = None,
    ) -> None:
        """``messages`` is a folder for those that the driver reads, if they are many. ``again`` has the attempts of
        those that are emitted once more, by root; without it, all are emitted."""
        self._again = again
        self._session = session
        self._cluster = cluster
        self._pickled = pickled
        self._sources = sources
        self._seed = seed
        self._by_root = by_root
        self._messages = messages or Path()

    def run(self, place: str, leaving: Mapping[str, Leaving], saved: Saved | None = None) -> Passed:
        """Go through all stages, and keep what they leave in ``place``. Raise :class:`~stormlet.errors.SparkFailed` if
        the ledger does not add up."""
        saved, cluster = saved or Saved(), self._cluster
        driver = Driver(cluster, self._seed, [each.task for each in leaving.values()], by_root=self._by_root)
        kept = keep(self._session, self._chain(saved.rows), place, in_parts=cluster.keeps_groups)
        ends = ends_of(kept, cluster.driver, driver.tasks, by_root=self._by_root)
        if not ends.reports:
            raise SparkFailed(
                f"nothing is found in {place} of what the executors of topology {cluster.plan.description.name!r} have "
                f"written there: let staging= (--staging), or the checkpoint of a stream, name a folder that all "
                f"machines reach"
            )
        left = Left(ends.states, ends.groups, b"")
        moved = msgspec.structs.replace(ends.arrived, hashes=ends.arrived.hashes ^ saved.hashes ^ left.hashes)
        Ledger(cluster, self._sources.by_spark).check(
            [*(each.line for each in ends.reports), moved],
            self._messages_read(),
            kept if self._by_root else None,
        )
        here, state = driver.run(kept, ends.for_driver, saved.driver)
        reports = opened([*ends.reports, *here], partial(kept.rows, Kind.MEMBERS))
        given_up = by_message(each for report in reports for each in report.given_up)
        return Passed(kept, reports, given_up, msgspec.structs.replace(left, driver=state))

    def letters(self, given_up: Mapping[int, GivenUp]) -> Sequence[DeadLetter]:
        """Return the dead letters of messages, in the order of their roots. Raise
        :class:`~stormlet.errors.SparkFailed` if some are not found again."""
        wanted, by_spark = frozenset(given_up), self._sources.by_spark
        found = dict[int, object]()
        for spout in self._cluster.plan.description.spouts if wanted else ():
            frame, values_of = by_spark.get(spout) or (self._read(spout), None)
            first = self._cluster.places[self._cluster.plan.tasks[spout][0].task].partition
            rows = frame.mapInArrow(Finder(self._pickled, wanted, values_of, first), FOUND).collect()
            found |= {root: pickle.loads(value) for root, value in cast("list[tuple[int, bytes]]", rows)}
        if len(found) < len(wanted):
            raise SparkFailed(
                f"{len(wanted) - len(found):,} of {len(wanted):,} messages that were given up are not found again in "
                f"their sources, whose rows have changed meanwhile. No sink was written"
            )
        return list(letters_of(self._cluster, given_up, found, by_spark))

    def _chain(self, states: DataFrame | None) -> DataFrame:
        first = [*map(self._first, self._cluster.plan.description.spouts)]
        rows = first[0]
        for each in (*first[1:], *(() if states is None else (states,))):
            rows = rows.unionAll(
                each
            )  # the spouts before all others: else their partitions had other numbers
        by_root = self._by_root
        return chained(rows, self._cluster, self._pickled, self._seed, from_stage=1, by_root=by_root)

    def _first(self, spout: str) -> DataFrame:
        """The rows after the first stage that come from one spout."""
        if spout not in self._sources.by_spark:
            stage = Stage(self._pickled, 0, self._seed, self._by_root, self._again)
            return self._read(spout).mapInArrow(stage, DDL)
        frame, values_of = self._sources.by_spark[spout]
        frame_stage = FrameStage(self._pickled, values_of, self._seed, self._by_root, self._again)
        return frame.mapInArrow(frame_stage, DDL)

    def _messages_read(self) -> int:
        """The number of messages that spouts whose messages the driver reads must have emitted."""
        if self._again is None:
            return self._sources.messages_read
        spouts = (self._cluster.component_of(origin_of(root)[0]) for root in self._again)
        return sum(spout not in self._sources.by_spark for spout in spouts)

    def _read(self, spout: str) -> DataFrame:
        return self._sources.read(self._cluster, spout, self._messages)
