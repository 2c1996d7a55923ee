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
timeouts            yes                                  none: what hangs is a Spark task that hangs
==================  ===================================  =================================================

A chunk is handed to the tasks as a whole. When nothing moves any more, every tree has its outcome, unless a bolt holds
its input. Then failed inputs are executed again, after a pause, until each was acked or given up, and the outputs leave
in the order in which they were emitted. So an attempt that Spark makes at this partition repeats the one before, if the
user's code does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from random import Random
from typing import cast

from stormlet.core.ids import IdSource
from stormlet.core.retries import ReplayPolicy
from stormlet.core.tuples import PLAIN, Lineage, Source, plain_tuple
from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.model.components import DEFAULT_STREAM, To
from stormlet.model.streams import StreamId
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.context import CrashSite
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.tasks import Tasks
from stormlet.spark.engine.account import Account, Line
from stormlet.spark.engine.equipment import Equipment, equip
from stormlet.spark.engine.exits import Exits, edges_of
from stormlet.spark.engine.inputs import NO_WORD, GivenUp, Input, Inputs
from stormlet.spark.engine.numbering import ClusterPlan, Place
from stormlet.spark.engine.rows import Row, unpack, unpacked

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

    def __init__(self, cluster: ClusterPlan, place: Place, seed: int, kit: Kit) -> None:
        self._loop = asyncio.get_running_loop()
        self._cluster = cluster
        self._name = cluster.plan.description.name
        self._bell = asyncio.Event()
        self._crash: TopologyCrashed | None = None
        purpose = f"{seed}/{place.stage}/{place.partition}"
        self._account = Account(place)
        self._inputs = Inputs(self._account, self._policy_of)
        self._exits = Exits(cluster.places_after(place), self._account, Random(f"{purpose}/words"))
        self._edges = iter(IdSource(Random(f"{purpose}/edges")))
        self._pauses = Random(f"{purpose}/pauses")
        self._sources: dict[tuple[int, str], Source] = {}
        self._equipment: Equipment = equip(
            cluster, place, seed, kit, self._inputs.post, self._exits.inboxes, self._crashed
        )
        self._tasks = self._equipment.tasks
        self._activity = self._equipment.engine.activity

    @property
    def line(self) -> Line:
        """What the partition has emitted and settled so far."""
        return self._account.line()

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
        self._activity.call_when_quiet(self._bell.set)
        for task in self._tasks.values():
            task.spawn(task.live(), f"{self._name}/{task.name}")
        while not all(task.ready.done() for task in self._tasks.values()):
            await self._something()
            if self._crash is not None:
                raise StartFailed(self._name, self._crash.task, self._crash.what) from self._crash.__cause__

    async def execute(self, row: Row) -> Sequence[Row]:
        """Execute the tuples of a chunk, and return the chunks that leave."""
        self._account.moved(row)
        content = unpack(row)
        streams = content.streams if len(content.streams) == row.size else repeat(content.streams[0])
        fields = zip(
            content.values, streams, content.roots, unpacked(row.words), content.attempts, strict=False
        )
        return await self._execute(
            [
                Input(
                    row.target, value, self._source(row.producer, stream), roots, word, attempt, attempt - 1
                )
                for value, stream, roots, word, attempt in fields
            ]
        )

    async def emit(self, task: int, values: Sequence[object], first: int) -> Sequence[Row]:
        """Have the spout task of this partition emit messages, the first of which has this number, from 1."""
        self._account.messages += len(values)
        source = self._source(task, DEFAULT_STREAM)
        return await self._execute(
            [
                Input(task, value, source, (root_of(task, number),), NO_WORD, 1, 0)
                for number, value in enumerate(values, first)
            ]
        )

    async def finish(self) -> Sequence[Row]:
        """No more input will come: flush and finish all bolts, and return the rest of the chunks."""
        while True:
            await self._conduct()
            again = self._inputs.settle(edges_of(self._exits.emitted()))
            if not again and self._inputs.any_open:
                self._inputs.fail_held(self._equipment.holders())
                again = self._inputs.settle({})
            if not again:
                return [*self._leave(), *self._exits.rest()]
            await self._execute_again(again)

    async def close(self) -> None:
        """End all tasks: their bolts clean up."""
        await self._equipment.close()

    async def _execute(self, inputs: Sequence[Input]) -> Sequence[Row]:
        self._hand_over(inputs)
        await self._settle()
        return list(self._leave())

    def _hand_over(self, inputs: Sequence[Input]) -> None:
        attempts: list[tuple[int, int, Input]] = []
        for each in inputs:
            root = self._inputs.new_root()
            lineage = PLAIN if each.attempt == 1 else Lineage(each.attempt)
            task = self._tasks.get(each.target)
            if task is None:
                edge = self._emit(each, root, lineage)
            else:
                edge = next(self._edges)
                task.inbox.items.append(plain_tuple(each.value, each.source, lineage, root, edge))
            attempts.append((root, edge, each))
        self._inputs.begin(attempts)
        for task in self._tasks.values():
            if task.inbox.items:
                task.wake()

    def _emit(self, each: Input, root: int, lineage: Lineage) -> int:
        value, stream = each.value, DEFAULT_STREAM
        if type(value) is To:
            to = cast("To[object]", value)
            value, stream = to.value, to.stream
        return self._equipment.outlet(each.target, stream).deliver(value, root, lineage)

    async def _settle(self) -> None:
        """Wait until nothing moves, and execute again what has failed, until all is acked, given up or held."""
        while True:
            await self._quiet()
            again = self._inputs.settle(edges_of(self._exits.emitted()))
            if not again:
                return
            await self._pause(again)
            self._hand_over(again)

    async def _execute_again(self, again: Sequence[Input]) -> None:
        await self._pause(again)
        self._hand_over(again)
        await self._settle()

    async def _pause(self, again: Sequence[Input]) -> None:
        pauses = (self._policy_of(each.messages[0]).pause(len(each.history), self._pauses) for each in again)
        await asyncio.sleep(max(pauses))

    def _leave(self) -> Iterable[Row]:
        yield from self._exits.release(self._inputs.messages_of)
        if not self._exits.waiting:
            self._inputs.forget()

    async def _conduct(self) -> None:
        """Have the bolts flush and finish, upstream first, until there is nothing left to do (law C2)."""
        tasks = Tasks((), {}, self._equipment.by_component(), {})
        conductor = Conductor(self._loop, self._activity, tasks, self._cluster.plan.order)
        running = [self._loop.create_task(each) for each in (conductor.run(), conductor.quiescent())]
        running[1].add_done_callback(lambda _: self._bell.set())
        try:
            while not running[1].done() and self._crash is None:
                await self._something()
        finally:
            for each in running:
                each.cancel()
            await asyncio.wait(running)
            self._activity.call_when_quiet(self._bell.set)
        self._raise_crash()

    async def _quiet(self) -> None:
        """Wait until nothing moves by itself."""
        while True:
            self._raise_crash()
            if self._activity.busy:
                await self._something()
            elif self._equipment.is_unflushed():
                await asyncio.sleep(0)  # what leaves then may wake a task
            else:
                return

    async def _something(self) -> None:
        await self._bell.wait()
        self._bell.clear()

    def _crashed(self, site: CrashSite, error: BaseException) -> None:
        if self._crash is None:
            self._crash = TopologyCrashed(
                self._name, site.task.name, site.method, site.restarts, site.way_out
            )
            self._crash.__cause__ = error
        self._bell.set()

    def _raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash

    def _source(self, task: int, stream: str) -> Source:
        source = self._sources.get((task, stream))
        if source is None:
            component = self._cluster.component_of(task)
            schema = self._cluster.schema(StreamId(component, stream))
            source = self._sources[task, stream] = Source(component, stream, task, schema)
        return source

    def _policy_of(self, message: int) -> ReplayPolicy:
        config = self._cluster.configurations[self._cluster.component_of(origin_of(message)[0])]
        return ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
