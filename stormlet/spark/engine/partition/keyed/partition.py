"""A partition with keyed state: it ends an attempt when nothing of it is under way.

What an attempt is, and what becomes of it, is told in :mod:`~stormlet.spark.engine.partition.keyed.attempts`. Bolts
that are fused behind the one with state, and hold inputs, are flushed at the end of each: an attempt ends when all of
its trees are over, as an epoch does in process (law X2).

Timers that are due are called when the last input has come, and before bolts finish. The time is that of the run, or of
the epoch, and stands still (:class:`~stormlet.spark.engine.planning.numbering.StatePlan`): so all attempts that
Spark makes at a partition see the same, and a timer that is set for later is due in a later one (law K7).
"""

from __future__ import annotations

from collections.abc import Sequence

from stormlet.core.state.timers import NAME
from stormlet.errors import StateUnusable
from stormlet.spark.engine.partition.account import Account
from stormlet.spark.engine.partition.inputs import Input, Inputs
from stormlet.spark.engine.partition.keyed.attempts import KeyedInputs, Unowned
from stormlet.spark.engine.partition.keyed.tables import KeyedTables
from stormlet.spark.engine.partition.partition import Partition
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place


def partition_at(cluster: ClusterPlan, place: Place, seed: int, *, by_root: bool = False) -> Partition:
    """Return the partition at a place, with the state of its keyed bolt if it has one."""
    bolts = cluster.plan.description.bolts
    for plan in cluster.tasks_at(place):
        spec = bolts.get(plan.component)
        if spec is not None and spec.keyed:
            tables = KeyedTables(plan, spec, place, cluster)
            return KeyedPartition(cluster, place, seed, tables, by_root=by_root)
    return Partition(cluster, place, seed, by_root=by_root)


class KeyedPartition(Partition):
    """One of them."""

    def __init__(
        self, cluster: ClusterPlan, place: Place, seed: int, tables: KeyedTables, *, by_root: bool
    ) -> None:
        self._tables = tables
        self._has_begun = False
        self.state_of = tables.of
        super().__init__(cluster, place, seed, by_root=by_root)

    async def execute(self, row: Row) -> Sequence[Row]:
        """Execute the tuples of a chunk, or take a row with state."""
        if row.kind != Kind.KEYED or row.place != self._place:
            return await super().execute(row)
        self._tables.load(row)
        return ()

    async def _execute_gathered(self) -> Sequence[Row]:
        if not self._has_begun:  # state comes before all inputs
            self._begin()
        return await super()._execute_gathered()

    def _begin(self) -> None:
        self._has_begun = True
        try:
            taken = self._tables.begin()
        except StateUnusable as error:
            raise self._crashes.of_task(self._tables.task, "the state") from error
        for row in taken:
            self._account.read(row)

    async def finish(self) -> Sequence[Row]:
        """No more input will come: call the timers that are due, and finish."""
        left = await self._execute_gathered()
        await self._call_timers()
        return [*left, *await super().finish()]

    def _state_rows(self) -> Sequence[Row]:
        rows = self._tables.rows()
        for row in rows:
            self._account.wrote(row)
        return [*super()._state_rows(), *rows]

    def _make_inputs(self, account: Account) -> Inputs:
        self._keyed_inputs = KeyedInputs(account, self._policy_of, self._tables.attempt)
        return self._keyed_inputs

    async def _settle(self) -> None:
        """Wait until nothing moves, and end one attempt after another until all inputs are committed."""
        while True:
            await self._rest.reached(self._equipment)
            again = self._inputs.settle()
            if not again and self._inputs.any_open:
                again = await self._flushed()
            if again:
                await self._pause(again)
                self._hand_over(again)
            elif not self._inputs.any_open and await self._ended():
                return

    async def _flushed(self) -> Sequence[Input]:
        """Have the bolts settle what they hold; return the inputs that are to be executed again alone."""
        await self._rest.conducted(self._equipment, finishes=False)
        again = self._inputs.settle()
        if again or not self._inputs.any_open:
            return again
        return await self._wait_for_held()

    async def _ended(self) -> bool:
        """End an attempt, and begin the next one. Return True if there is none."""
        inputs = self._keyed_inputs
        if inputs.spoilt:
            self._undo()
            following = inputs.repeat()
            if following and inputs.is_lone:
                await self._pause(following)
        else:
            self._seal()
            following = self._committed()
        if following:
            self._hand_over(following)
        return not inputs.any_left

    def _undo(self) -> None:
        self._tables.roll_back()
        self._exits.drop_waiting()

    def _seal(self) -> None:
        try:
            self._tables.seal()
        except TypeError as error:
            raise self._crashes.of_task(self._tables.task, "the state") from error
        self._release()

    def _committed(self) -> Sequence[Input]:
        try:
            return self._keyed_inputs.commit()
        except Unowned as error:
            raise self._crashes.of_task(error.task, "an input without a message") from error.__cause__

    async def _call_timers(self) -> None:
        """Call those that are due. What fails is undone, and tried again as often as a message."""
        tables, most = self._tables, self._cluster.plan.description.configuration.max_attempts
        for _ in range(most):
            if not tables.are_timers_due:
                return
            self._equipment.tasks[tables.task].ask(NAME)
            await self._rest.reached(self._equipment)
            if not tables.spoilt:
                self._seal()
                return
            self._undo()
        raise self._crashes.of_task(tables.task, NAME)
