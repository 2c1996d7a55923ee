"""A plan turned into tasks that are wired to each other and not yet started."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import msgspec

from stormlet.core.ids import IdSource
from stormlet.core.ledger import Ledger
from stormlet.core.schema import Schema
from stormlet.core.state.outgoing import Epoch
from stormlet.model.components import SharedObjects, TaskContext
from stormlet.model.configuration import Configuration
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, takes_context
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Plan
from stormlet.model.signatures import takes_resume
from stormlet.model.streams import StreamId
from stormlet.model.traits import spout_traits
from stormlet.report.connections import Connection
from stormlet.report.statistics import Progress
from stormlet.runtime.acker.bookkeeper import Verdicts
from stormlet.runtime.acker.holders import Unsettled
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.calls import bolt_task_of
from stormlet.runtime.bolt.committer import CommitterTask
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.epoch import OpenEpoch
from stormlet.runtime.epochs.states import KeptState, position_name
from stormlet.runtime.hooks.run import RunHooks
from stormlet.runtime.run.instances import Instances, making
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.run.wiring import Producer, Wires
from stormlet.runtime.spout import positions
from stormlet.runtime.spout.context import FeedContext
from stormlet.runtime.spout.feeds import AsyncIteratorFeed, Feed, IteratorFeed, Resume
from stormlet.runtime.spout.positions import Position
from stormlet.runtime.spout.spout_feed import SpoutFeed
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.own_trees import OwnTrees


class Assembly:
    """Builds the tasks of one run."""

    def __init__(
        self,
        engine: Engine,
        kit: Kit,
        configurations: Mapping[str, Configuration],
        dead_letters: DeadLetters,
        unsettled: Unsettled,
        hooks: RunHooks,
        state: KeptState | None = None,
    ) -> None:
        self._engine = engine
        self._kit = kit
        self._hooks = hooks
        self._plan: Plan = engine.plan
        self._description: Description = engine.plan.description
        self._configurations = configurations
        self._dead_letters = dead_letters
        self._state = state
        self.own_verdicts = Verdicts(kit.own_outcomes())
        """The verdicts of trees that belong to epochs themselves (law X5)."""
        self._verdicts = [
            *(
                Verdicts(kit.outcomes(plan))
                for id in self._description.spouts
                for plan in self._plan.tasks[id]
            ),
            *([] if engine.epoch is None else [self.own_verdicts]),
        ]
        self._ackers = [self._acker(each, unsettled) for each in self._plan.ackers]
        self._instances = Instances(
            self._description.name,
            kit,
            tracked=bool(self._plan.ackers),
            simulated=engine.simulated,
            state_of=None
            if state is None or engine.epoch is None
            else partial(_state_of, state, engine.epoch),
            open_epoch=None
            if state is None or engine.epoch is None
            else partial(_open_epoch, state, engine.epoch),
        )
        self._shared = SharedObjects()
        self._progress = dict[int, Progress]()
        self._connections = dict[int, Callable[[], Connection]]()

    def tasks(self) -> Tasks:
        """Make all tasks and wire them."""
        # The constructors of user code run in the order in which users declare: spouts come before their bolts.
        spouts = self._spouts()
        bolts = {
            id: [self._bolt(spec, each) for each in self._plan.tasks[id]]
            for id, spec in self._description.bolts.items()
        }
        inboxes = {task.plan.task: task.inbox for tasks in bolts.values() for task in tasks}
        wires = Wires(self._engine, self._kit, self._plan.links, inboxes)
        for id, spec in self._description.components.items():
            tasks = (*bolts.get(id, ()), *spouts.get(id, ()))
            wires.lay([Producer(each.plan, each.outbox, each.outlets) for each in tasks], id, spec.outputs)
        all_tasks = Tasks(self._ackers, spouts, bolts, self._progress, self._connections)
        self._hooks.join(all_tasks)
        return all_tasks

    def _acker(self, plan: TaskPlan, unsettled: Unsettled) -> AckerTask:
        configuration = self._description.configuration
        ledger = Ledger(configuration.timeout_buckets, configuration.timeout_restarts_on == "activity")
        timeouts = configuration.message_timeout is not None
        high_water = self._plan.high_water
        return AckerTask(plan, self._engine, ledger, high_water, timeouts, self._verdicts, unsettled)

    def _bolt(self, spec: BoltSpec, plan: TaskPlan) -> BoltTask:
        context = self._context(plan, tuple(self._schema(each.source) for each in spec.inputs))
        outbox = self._outbox(plan)
        bound = min(context.config.queue_capacity, sys.maxsize)  # which no list exceeds
        with making(f"bolt {spec.id!r}"):
            outgoing = None if self._state is None else self._state.outgoing.get(spec.id)
            make = (
                bolt_task_of(spec.concurrency)
                if outgoing is None or self._state is None
                else partial(CommitterTask, outgoing, self._state.epoch_of)
            )
            make_worker, make_out = self._hooks.makers(plan, partial(self._instances.worker, spec))
            return make(
                plan,
                self._engine,
                context,
                outbox,
                make_inbox=partial(self._kit.inbox, plan, bound),
                make_worker=make_worker,
                make_out=make_out,
                on_error=spec.on_error,
                own_trees=self._own_trees(plan, outbox),
            )

    def _own_trees(self, plan: TaskPlan, outbox: Outbox) -> OwnTrees | None:
        epoch = self._engine.epoch
        if epoch is None:
            return None
        ids = IdSource(self._engine.random(plan, "roots"))
        loads = [acker.load for acker in self._ackers]
        return OwnTrees(epoch, len(self._verdicts) - 1, ids, loads, outbox)

    def _spouts(self) -> Mapping[str, Sequence[SpoutTask]]:
        spouts: dict[str, list[SpoutTask]] = {}
        number = 0
        for id, spec in self._description.spouts.items():
            spouts[id] = []
            for plan in self._plan.tasks[id]:
                spouts[id].append(self._spout(spec, plan, number))
                number += 1
        return spouts

    def _spout(self, spec: SpoutSpec, plan: TaskPlan, number: int) -> SpoutTask:
        context = self._context(plan)
        position = self._kept_position(plan)
        if position is not None and spec.kind is SourceKind.FACTORY:
            cut = spout_traits(spec.source).cuts_epochs
            context = replace(context, resume=positions.decoded(position, cut=cut))
        with making(f"spout {spec.id!r}"):
            return SpoutTask(
                plan,
                self._engine,
                context,
                self._verdicts[number],
                number,
                self._outbox(plan),
                {},
                self._ackers,
                self._dead_letters,
                partial(self._feed, spec, context),
                None if self._state is None else self._state.redeliveries.get(spec.id),
            )

    def _outbox(self, plan: TaskPlan) -> Outbox:
        engine = self._engine
        posts = self._kit.posts(plan, [acker.post for acker in self._ackers])
        return Outbox(engine.loop, engine.slices.call_next, posts, engine.clock, partial(engine.failed, plan))

    def _context(self, plan: TaskPlan, inputs: tuple[Schema, ...] = ()) -> TaskContext:
        config = self._configurations[plan.component]
        return TaskContext(
            self._description.name,
            plan.component,
            plan.task,
            plan.index,
            plan.parallelism,
            config,
            inputs,
            self._dead_letters.sync,
            self._shared,
            partial(self._progress.__setitem__, plan.task),
            partial(self._connections.__setitem__, plan.task),
            in_epochs=self._state is not None,
            is_durable=self._state is not None and self._state.durable,
            is_traced=self._engine.tracing is not None,
        )

    def _schema(self, stream: StreamId) -> Schema:
        return self._description.components[stream.component].outputs[stream.stream].schema

    def _position(self, context: FeedContext) -> Position | None:
        """The position of a generator or an iterable, if another run has left one (law X8)."""
        position = self._kept_position(context.plan)
        return None if position is None else msgspec.msgpack.decode(position, type=Position)

    def _kept_position(self, plan: TaskPlan) -> bytes | None:
        return None if self._state is None else self._state.positions.get(position_name(plan))

    def _feed(self, spec: SpoutSpec, task_context: TaskContext, context: FeedContext) -> Feed:
        if spec.kind is SourceKind.FED:
            return Feed(context)
        if spec.kind is SourceKind.ITERABLE:
            feed = partial(_feed_of, context, spec.source, None, self._position(context))
            return self._instances.begun(spec, feed)
        if spec.kind is SourceKind.GENERATOR:
            function = cast("Callable[..., object]", spec.source)
            if takes_context(function):
                function = partial(function, task_context)
            position = self._position(context)
            if not takes_resume(function):
                return _feed_of(context, function(), None, position)
            resume = partial(_resumed, function)
            if position is None:
                return _feed_of(context, function(), resume)
            return _feed_of(context, resume(position.count - 1), resume, emitted=position.count)
        make = partial(self._instances.spout, spec, context.plan)
        return SpoutFeed(context, make, self._kit.receiver, task_context.config.idle_max)


def _state_of(state: KeptState, epoch: OpenEpoch, plan: TaskPlan, spec: BoltSpec) -> TaskState:
    return state.of(plan, spec, epoch)


def _open_epoch(state: KeptState, epoch: OpenEpoch) -> Epoch:
    return state.name_of(epoch.account.number, epoch.cut)


def _feed_of(
    context: FeedContext,
    values: object,
    resume: Resume | None = None,
    passing: Position | None = None,
    emitted: int = 0,
) -> Feed:
    if isinstance(values, AsyncIterable):
        source = aiter(cast("AsyncIterable[object]", values))
        return AsyncIteratorFeed(context, source, resume, emitted, passing)
    return IteratorFeed(context, iter(cast("Iterable[object]", values)), resume, emitted, passing)


def _resumed(function: Callable[..., object], last: object) -> object:
    return function(resume=last)
