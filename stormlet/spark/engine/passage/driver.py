"""The bolts that run in the driver: what ends in one task behind ``global_()``.

They run when the ledger has been checked, and before a dead letter is handed over or a sink is written. So they have a
check of their own: what they have settled must be what was sent to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from stormlet.errors import SparkFailed
from stormlet.spark.engine.partition.account import Line
from stormlet.spark.engine.partition.partition import Partition
from stormlet.spark.engine.partition.rows import Kind, Row, state_rows
from stormlet.spark.engine.passage.reports import Report, report_of
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import ClusterPlan
from stormlet.spark.threads import run_to_end

if TYPE_CHECKING:
    pass


class Driver:
    """The bolts that run here."""

    def __init__(self, cluster: ClusterPlan, seed: int, elsewhere: Iterable[str], *, by_root: bool) -> None:
        """``elsewhere`` are components whose rows Spark takes, though they are planned for the driver."""
        taken = set(elsewhere)
        self._cluster = cluster
        self._seed = seed
        self._by_root = by_root
        self._partition: Partition | None = None
        self.tasks: Sequence[int] = [
            each.task for each in cluster.tasks_at(cluster.driver) if each.component not in taken
        ]
        """Their ids."""

    def run(self, kept: Kept, sent: Line, state: bytes = b"") -> tuple[Sequence[Report], bytes]:
        """Execute the chunks that are for them among what the last stage has left. Return their report, if there are
        any, and their state; ``state`` is the one that they have before. Raise :class:`~stormlet.errors.SparkFailed` if
        they have not settled what was ``sent`` to them."""
        if not self.tasks:
            return [], b""
        arriving = kept.rows(Kind.CHUNK, self.tasks)
        before = state_rows(self._cluster.driver, state)
        report, after = self.executed(before, arriving)
        states = reduce(int.__xor__, (row.hash for row in (*before, *after)), 0)
        self.check(sent, msgspec.structs.replace(report.line, hashes=report.line.hashes ^ states))
        return [report], b"".join(row.payload for row in after)

    def executed(self, state: Sequence[Row], arriving: Iterator[Row]) -> tuple[Report, Sequence[Row]]:
        """Execute these chunks, and return the report and the state that follows this one. Raise
        :class:`~stormlet.errors.TopologyCrashed` for a crash."""
        try:
            return run_to_end(self._executed(state, arriving))
        except SystemExit:
            crash = None if self._partition is None else self._partition.crash
            if crash is None:
                raise
            raise crash from crash.__cause__

    def check(self, sent: Line, line: Line) -> None:
        """Raise :class:`~stormlet.errors.SparkFailed` if their ``line`` is not that of what was ``sent``."""
        if (line.settled, line.words, line.hashes) == (sent.settled, sent.words, sent.hashes):
            return
        other = f"{sent.settled:,}" if line.settled != sent.settled else "others"
        raise SparkFailed(
            f"the bolts of topology {self._cluster.plan.description.name!r} in the driver have settled "
            f"{line.settled:,} tuples, and {other} were sent to them. No sink was written; run it again"
        )

    async def _executed(self, state: Sequence[Row], arriving: Iterator[Row]) -> tuple[Report, Sequence[Row]]:
        end = self._cluster.driver
        partition = self._partition = Partition(self._cluster, end, self._seed, by_root=self._by_root)
        try:
            await partition.start()
            for row in chain(state, arriving):
                await partition.execute(row)
                deque(partition.ledger_rows(), maxlen=0)  # they have been counted when they came here
            left = await partition.finish()
            return report_of(partition), left
        finally:
            await partition.close()
