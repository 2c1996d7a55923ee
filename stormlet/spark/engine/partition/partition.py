"""One partition of a stage at work: its bolt tasks, on an event loop of their own.

Theory of operation
-------------------
The tasks are those of a run in process, with the same workers, collectors, outlets and outboxes
(:mod:`stormlet.runtime`). So user code is called, anchored, joined and settled by the same code on both engines. What
stands around them differs:

==================  ===================================  =================================================
                    in process                           here
==================  ===================================  =================================================
inputs              come as they are emitted             come as chunks, in a fixed order
trees               one for each message                 one for each input of this partition
ackers              tasks that rotate                    a ledger that is asked when nothing moves
outputs             go into the inboxes of consumers     wait for the outcomes of their trees, then leave
a failed message    is emitted again by its spout        is executed again here, from its input on
timeouts            yes                                  only of what is held when its bolt has finished
==================  ===================================  =================================================

Chunks for one task are handed to it together, about a thousand tuples at a time. When nothing moves any more, every
tree has its outcome, unless a bolt holds its input. Then failed inputs are executed again, after a pause, until each
was acked or given up, and the outputs leave in the order in which they were emitted. So an attempt that Spark makes at
this partition repeats the one before, if the user's code does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from random import Random
from typing import cast

from stormlet.core.ids import IdSource
from stormlet.core.retries import ReplayPolicy
from stormlet.core.tuples import PLAIN, Lineage
from stormlet.errors import TopologyCrashed
from stormlet.model.components import DEFAULT_STREAM, To
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.wire.collector import undeclared
from stormlet.runtime.wire.outbox import Control
from stormlet.runtime.wire.outlets import Outlet
from stormlet.spark.engine.partition.account import Account, Line
from stormlet.spark.engine.partition.deliveries import Deliveries, Unreadable
from stormlet.spark.engine.partition.equipment import Equipment, StateOf, equip
from stormlet.spark.engine.partition.exits import Exits
from stormlet.spark.engine.partition.inputs import NO_WORD, Batch, GivenUp, Input, Inputs
from stormlet.spark.engine.partition.rest import Crashes, Rest
from stormlet.spark.engine.partition.roots import ENTRIES, AccountByRoot
from stormlet.spark.engine.partition.rows import CHUNK, HEAVY, Kind, Row, state_rows
from stormlet.spark.engine.partition.shortcut import PASSES, NotTaken, Shortcut, shortcut_of
from stormlet.spark.engine.partition.states import BoltStates
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, Span

SPOUT_BITS = 40
"""The root of a message is the id of its spout task, shifted by so many bits, plus its number there."""


def root_of(task: int, number: int) -> int:
    """Return the root of a message, by its spout task and its number there, from 1."""
    return (task << SPOUT_BITS) + number


def origin_of(root: int) -> tuple[int, int]:
    """Return the spout task of a message, and its number there."""
    return root >> SPOUT_BITS, root & ((1 << SPOUT_BITS) - 1)


class Partition:
    """The tasks of one partition; made and used on its loop."""

    state_of: StateOf | None = None
    """Gives the state of a task with a keyed bolt, where there is one."""

    def __init__(self, cluster: ClusterPlan, place: Place, seed: int, *, by_root: bool = False) -> None:
        self._cluster = cluster
        self._name = cluster.plan.description.name
        self._rest = Rest(cluster)
        self._crashes = Crashes(cluster, place)
        purpose = f"{seed}/{place.stage}/{place.partition}"
        self._account = AccountByRoot(place, cluster.driver) if by_root else Account(place)
        self._place = place
        self._word = asyncio.Event()
        self._inputs = self._make_inputs(self._account)
        words = Random(f"{purpose}/words")
        self._exits = Exits(cluster.places_after(place), self._account, words, cluster.driver)
        self._pauses = Random(f"{purpose}/pauses")
        self._gathered: list[Row] = []
        self._states = None if cluster.span is Span.WHOLE else BoltStates()
        self._saved: list[bytes] = []
        self._equipment: Equipment = equip(
            cluster,
            place,
            seed,
            self._states or Kit(),
            self._post,
            self._exits,
            self._rest.crashed,
            self.state_of,
        )
        self._deliveries = Deliveries(
            cluster,
            IdSource(Random(f"{purpose}/edges")),
            self._equipment.draws_edges,
            tracks_all=self.state_of is not None,
        )
        self._shortcut: Shortcut | None = None
        self._tasks = self._equipment.tasks

    @property
    def line(self) -> Line:
        """The line of the ledger, so far."""
        return self._account.line()

    @property
    def crash(self) -> TopologyCrashed | None:
        """The crash of a task, once there is one. All that waits here raises it, but for an exit, which ends the loop
        at once."""
        return self._rest.crash

    @property
    def given_up(self) -> Sequence[GivenUp]:
        """The inputs that were given up here."""
        return self._inputs.given_up

    @property
    def replayed(self) -> Iterable[tuple[int, int]]:
        """The roots of messages that were acked here after more than one attempt, with the number of these."""
        return self._inputs.replayed.items()

    @property
    def statistics(self) -> Mapping[int, TaskStatistics]:
        """The counts of the bolt tasks, by task id."""
        return {id: task.statistics() for id, task in self._tasks.items()}

    @property
    def failures(self) -> Sequence[RepeatedFailure]:
        """The distinct failures of the bolt tasks."""
        return self._equipment.engine.failures.all()

    async def start(self) -> None:
        """Prepare all bolts. Raises :class:`~stormlet.errors.StartFailed`."""
        await self._rest.started(self._equipment)
        if self._states is not None:
            with self._crashes.raised():
                self._states.prepared({task.plan.component: task.context for task in self._tasks.values()})
        self._shortcut = shortcut_of(self._cluster, self._place, self._equipment)

    async def execute(self, row: Row) -> Sequence[Row]:
        """Execute the tuples of a chunk, and return the chunks that leave. Small chunks for one task are executed
        together, with the last of them: else calls could run beside each other only within a chunk."""
        row = self._account.read(row)
        if row.kind == Kind.STATE and row.place == self._place:
            self._take_back(row)
            return ()
        if row.kind != Kind.CHUNK or row.place != self._place or row.target not in self._tasks:
            return ()  # what it was sent with is never settled, so that the ledger shows it
        gathered = self._gathered
        left = await self._execute_gathered() if gathered and gathered[0].target != row.target else ()
        gathered.append(row)
        # Of what was joined, the roots are the most.
        weight = sum(len(each.payload) + len(each.roots) for each in gathered)
        size = sum(each.size for each in gathered)
        if size >= CHUNK or weight >= HEAVY:
            return [*left, *await self._execute_gathered()]
        return left

    async def emit(self, task: int, values: Sequence[object], first: int) -> Sequence[Row]:
        """Have the spout task of this partition emit messages, the first of which has this number, from 1."""
        self._account.messages += len(values)
        root, left = root_of(task, first), list[Row]()
        for at in range(0, len(values), PASSES):
            left += await self._emit_some(task, values[at : at + PASSES], root + at)
        return left

    async def _emit_some(self, task: int, values: Sequence[object], root: int) -> Sequence[Row]:
        source = next(iter(self._equipment.outlets_of(task).values())).source
        batch = Batch(task, values, repeat(source, len(values)), range(root, root + len(values)))
        batch.first = self._inputs.new_roots(len(values))
        if self._shortcut is not None and self._shortcut.takes(batch):
            return await self._passed(self._shortcut, batch)
        batch.edges = self._emit_all(task, values, batch.first)
        self._inputs.begin_batch(batch)
        return await self._executed()

    async def emit_again(self, task: int, messages: Iterable[tuple[int, object, int]]) -> Sequence[Row]:
        """Have the spout task emit messages that have failed in an earlier passage: the number, the value and the next
        attempt of each."""
        source = next(iter(self._equipment.outlets_of(task).values())).source
        again = [
            Input(task, value, source, (root_of(task, number),), NO_WORD, attempt, attempt - 1)
            for number, value, attempt in messages
        ]
        self._account.messages += len(again)
        if not again:
            return ()
        self._hand_over(again)
        return await self._executed()

    async def finish(self) -> Sequence[Row]:
        """No more input will come: flush all bolts, and finish them if this was the last, and return the rest of the
        chunks, with the states that they leave."""
        left = await self._execute_gathered()
        while True:
            await self._rest.conducted(self._equipment)
            again = self._inputs.settle()
            if not again and self._inputs.any_open:
                again = await self._wait_for_held()
            if again:
                await self._execute_again(again)
            elif not self._inputs.any_open:
                return [*left, *self._leave(), *self._chunks(self._exits.rest()), *self._state_rows()]

    def ledger_rows(self, least: int = ENTRIES) -> Iterator[Row]:
        """Iterate over rows for the ledger by root, if there is one, and at least so many entries for them."""
        return self._account.rows(least)

    async def close(self) -> None:
        """End all tasks: their bolts clean up."""
        await self._equipment.close()

    async def _execute_gathered(self) -> Sequence[Row]:
        if not self._gathered:
            return ()
        rows, self._gathered[:] = self._gathered[:], ()
        batch = self._batch_of(rows)
        batch.first = self._inputs.new_roots(len(batch.values))
        if self._shortcut is not None and self._shortcut.takes(batch):
            return await self._passed(self._shortcut, batch)
        task = self._tasks[batch.target]
        task.inbox.items += self._deliveries.tuples_of(batch)
        self._inputs.begin_batch(batch)
        task.wake()
        return await self._executed()

    async def _passed(self, shortcut: Shortcut, batch: Batch) -> Sequence[Row]:
        """Have inputs pass through, and the engine do the rest."""
        try:
            with self._crashes.raised():
                all_acked = shortcut.pass_through(batch)
        except NotTaken as error:
            raise self._crashes.of_task(batch.target, "next_tuple") from error.__cause__
        if all_acked:
            if batch.words:
                self._account.settled(batch.words, batch.messages, batch.counts)
            return list(self._full())
        shortcut.hand_over(batch, self._deliveries.new_edge)
        self._inputs.begin_batch(batch)
        self._flush()
        return await self._executed()

    async def _executed(self) -> Sequence[Row]:
        await self._settle()
        return list(self._leave())

    def _batch_of(self, rows: Sequence[Row]) -> Batch:
        """The inputs of chunks for one task."""
        try:
            return self._deliveries.batch_of(rows)
        except Unreadable as error:
            raise self._crashes.of_input(rows[0].target, error) from error.__cause__

    def _emit_all(self, task: int, values: Iterable[object], first: int) -> dict[int, int]:
        """Have a spout task emit these values with roots from this one on; return the edges of each root."""
        edges: dict[int, int] = {}
        try:
            emit = partial(self._emit, task)
            default = self._equipment.outlets_of(task).get(DEFAULT_STREAM)
            deliver = emit if default is None else default.deliver
            for root, value in enumerate(values, first):
                edge = (emit if To is type(value) else deliver)(value, root, PLAIN)
                if edge:
                    edges[root] = edge
        except Exception as error:
            raise self._crashes.of_task(task, "next_tuple") from error
        self._flush()
        return edges

    def _hand_over(self, inputs: Sequence[Input]) -> None:
        first = self._inputs.new_roots(len(inputs))
        attempts = [(root, self._deliver(each, root), each) for root, each in enumerate(inputs, first)]
        self._inputs.begin(attempts)
        self._flush()

    def _deliver(self, each: Input, root: int) -> int:
        """Deliver an input once more; return its edges."""
        task = self._tasks.get(each.target)
        if task is None:
            return self._emit(each.target, each.value, root, self._deliveries.lineage(each.attempt))
        tup = self._deliveries.of_input(each, root)
        task.inbox.items.append(tup)
        return tup.edge

    def _emit(self, task: int, value: object, root: int, lineage: Lineage) -> int:
        stream = DEFAULT_STREAM
        if type(value) is To:
            to = cast("To[object]", value)
            value, stream = to.value, to.stream
        return self._outlet(task, stream).deliver(value, root, lineage)

    def _flush(self) -> None:
        for task in self._tasks.values():
            if task.inbox.items:
                task.wake()

    def _post(self, control: Control) -> None:
        self._inputs.post(control)
        self._word.set()

    async def _settle(self) -> None:
        """Wait until nothing moves, and execute again what has failed, until all is acked, given up or held."""
        while True:
            await self._rest.reached(self._equipment)
            again = self._inputs.settle()
            if not again:
                return
            await self._pause(again)
            self._hand_over(again)

    async def _execute_again(self, again: Sequence[Input]) -> None:
        await self._pause(again)
        self._hand_over(again)
        await self._settle()

    async def _wait_for_held(self) -> Sequence[Input]:
        """Wait for a timer or a thread that settles what is held, and give up what nobody settles in time."""
        self._word.clear()
        try:
            async with asyncio.timeout(self._cluster.plan.description.configuration.message_timeout):
                await self._word.wait()
        except TimeoutError:
            return self._inputs.fail_held(self._equipment.holders(), self._cluster.end)
        return ()

    async def _pause(self, again: Sequence[Input]) -> None:
        pauses = (self._policy_of(each.messages).pause(len(each.history), self._pauses) for each in again)
        await asyncio.sleep(max(pauses))

    def _leave(self) -> Iterator[Row]:
        self._release()
        return self._full()

    def _release(self) -> None:
        """Let the outputs leave whose trees have their outcomes."""
        inputs, whole = self._inputs, self._inputs.whole
        with self._crashes.raised():
            if whole is None:
                self._exits.release(inputs.messages_of)
            elif not whole.counts:
                self._exits.release_all(whole.first, whole.messages, partial(self._messages_of, whole))
            else:
                self._exits.release(partial(self._messages_of, whole))
        if not self._exits.waiting:
            inputs.forget()

    def _messages_of(self, whole: Batch, roots: Sequence[int]) -> tuple[int, ...] | None:
        self._inputs.know_all(whole)
        return self._inputs.messages_of(roots)

    def _full(self) -> Iterator[Row]:
        return self._chunks(self._exits.full())

    def _chunks(self, rows: Iterator[Row]) -> Iterator[Row]:
        with self._crashes.raised():
            yield from rows

    def _take_back(self, row: Row) -> None:
        """A piece of the state has come that the epoch before has left here."""
        self._saved.append(row.payload)
        if self._states is None or len(self._saved) < row.size:
            return
        with self._crashes.raised():
            self._states.give(b"".join(self._saved))
        self._saved.clear()  # it may be large

    def _state_rows(self) -> Sequence[Row]:
        if self._states is None:
            return ()
        with self._crashes.raised():
            rows = state_rows(self._place, self._states.take())
        for row in rows:
            self._account.wrote(row)
        return rows

    def _outlet(self, task: int, stream: str) -> Outlet:
        outlets = self._equipment.outlets_of(task)
        if stream not in outlets:
            plan = next(each for each in self._cluster.tasks_at(self._place) if each.task == task)
            raise undeclared(outlets, stream, plan)
        return outlets[stream]

    def _make_inputs(self, account: Account) -> Inputs:
        return Inputs(account, self._policy_of, replays=self._cluster.replays_in_stage)

    def _policy_of(self, messages: Sequence[int]) -> ReplayPolicy:
        config = self._cluster.plan.description.configuration
        if messages:
            config = self._cluster.configurations[self._cluster.component_of(origin_of(messages[0])[0])]
        return ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
