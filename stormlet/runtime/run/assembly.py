"""A plan turned into tasks that are wired to each other and not yet started."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec

from stormlet.core.groupings import AnyRoutes, Chooser, One
from stormlet.core.ids import IdSource
from stormlet.core.ledger import Ledger
from stormlet.core.schema import Schema
from stormlet.core.shortened import shortened
from stormlet.core.tuples import Source
from stormlet.errors import InvalidTopology, StartFailed
from stormlet.model.components import (
    BasicBolt,
    BatchBolt,
    Bolt,
    BoltBase,
    SharedObjects,
    Spout,
    TaskContext,
    overrides,
)
from stormlet.model.configuration import Configuration
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind, check_bolt, check_spout, takes_context
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Link, Plan
from stormlet.model.signatures import takes_resume
from stormlet.model.streams import Output, StreamId
from stormlet.report.statistics import Progress
from stormlet.runtime.acker.bookkeeper import Verdicts
from stormlet.runtime.acker.holders import Unsettled
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.batches import BatchRunner, BatchWorker, check_batch
from stormlet.runtime.bolt.functions import BasicWorker, BoltWorker, FunctionWorker
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.threads import ThreadedBatchBolt, ThreadWorker
from stormlet.runtime.bolt.worker import Wiring, Worker
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.spout.context import FeedContext
from stormlet.runtime.spout.feeds import AsyncIteratorFeed, Feed, IteratorFeed, Resume
from stormlet.runtime.spout.spout_feed import SpoutFeed
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import (
    CheckedOutlet,
    DirectOutlet,
    FanOutlet,
    FixedOutlet,
    Outlet,
    SingleOutlet,
    Target,
)

R = TypeVar("R")

UNMADE: Final[ContextVar[str]] = ContextVar("stormlet_unmade", default="a component")
"""The component whose constructor has ended the process, for whoever catches that: by then no run is there to ask."""


class Junction(msgspec.Struct, frozen=True):
    """A link, and what all tasks of its producer share of it."""

    link: Link
    label: str
    """The name of the link in error messages."""
    targets: list[Target]
    routes: AnyRoutes | None


class Assembly:
    """Builds the tasks of one run."""

    def __init__(
        self,
        engine: Engine,
        kit: Kit,
        configurations: Mapping[str, Configuration],
        dead_letters: DeadLetters,
        unsettled: Unsettled,
    ) -> None:
        self._engine = engine
        self._kit = kit
        self._plan: Plan = engine.plan
        self._description: Description = engine.plan.description
        self._configurations = configurations
        self._dead_letters = dead_letters
        self._verdicts = [
            Verdicts(kit.outcomes(plan)) for id in self._description.spouts for plan in self._plan.tasks[id]
        ]
        self._ackers = [self._acker(each, unsettled) for each in self._plan.ackers]
        self._inboxes = dict[int, BoltTask]()
        self._shared = SharedObjects()
        self._progress = dict[int, Progress]()

    def tasks(self) -> Tasks:
        """Make all tasks and wire them."""
        # The constructors of user code run in the order in which users declare: spouts come before their bolts.
        spouts = self._spouts()
        bolts = {
            id: [self._bolt(spec, each) for each in self._plan.tasks[id]]
            for id, spec in self._description.bolts.items()
        }
        self._inboxes = {task.plan.task: task for tasks in bolts.values() for task in tasks}
        for id, spec in self._description.components.items():
            self._wire([*bolts.get(id, ()), *spouts.get(id, ())], id, spec.outputs)
        return Tasks(self._ackers, spouts, bolts, self._progress)

    def _acker(self, plan: TaskPlan, unsettled: Unsettled) -> AckerTask:
        configuration = self._description.configuration
        ledger = Ledger(configuration.timeout_buckets, configuration.timeout_restarts_on == "activity")
        timeouts = configuration.message_timeout is not None
        high_water = self._plan.high_water
        return AckerTask(plan, self._engine, ledger, high_water, timeouts, self._verdicts, unsettled)

    def _bolt(self, spec: BoltSpec, plan: TaskPlan) -> BoltTask:
        context = self._context(plan, tuple(self._schema(each.source) for each in spec.inputs))
        bound = min(context.config.queue_capacity, sys.maxsize)  # which no list exceeds
        with _making(f"bolt {spec.id!r}"):
            return BoltTask(
                plan,
                self._engine,
                context,
                self._outbox(plan),
                make_inbox=partial(self._kit.inbox, plan, bound),
                make_worker=partial(self._worker, spec),
                concurrency=spec.concurrency,
                on_error=spec.on_error,
            )

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
        with _making(f"spout {spec.id!r}"):
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
            )

    def _outbox(self, plan: TaskPlan) -> Outbox:
        engine = self._engine
        posts = self._kit.posts(plan, [acker.post for acker in self._ackers])
        return Outbox(engine.loop, posts, engine.clock, partial(engine.failed, plan))

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
        )

    def _schema(self, stream: StreamId) -> Schema:
        return self._description.components[stream.component].outputs[stream.stream].schema

    # Wiring.

    def _wire(self, tasks: Sequence[SpoutTask | BoltTask], id: str, outputs: Mapping[str, Output]) -> None:
        junctions = {
            stream: [self._junction(id, link) for link in self._plan.links[StreamId(id, stream)]]
            for stream in outputs
        }
        targets = (target for each in junctions.values() for junction in each for target in junction.targets)
        # One list for all tasks of the component, which only look at it.
        consumers = list({target.ids[0]: target.inbox for target in targets}.values())
        for task in tasks:
            ids = self._engine.ids(task.plan)
            for stream, output in outputs.items():
                source = Source(id, stream, task.plan.task, output.schema)
                outlet = self._outlet(task, source, ids, junctions[stream], direct=output.direct)
                task.outlets[stream] = CheckedOutlet(outlet) if output.schema.enforced else outlet
            task.outbox.consumers = consumers

    def _junction(self, producer: str, link: Link) -> Junction:
        label = f"{producer!r} -> {link.consumer!r}"
        targets = [Target(task, self._inboxes[task].inbox, link.waits) for task in link.targets]
        return Junction(link, label, targets, link.grouping.routes(len(targets), label))

    def _outlet(
        self,
        task: SpoutTask | BoltTask,
        source: Source,
        ids: IdSource,
        junctions: Sequence[Junction],
        *,
        direct: bool,
    ) -> Outlet:
        outbox = task.outbox
        if direct:
            receivers = [target for junction in junctions for target in junction.targets]
            return DirectOutlet(
                source, {each.ids[0]: FixedOutlet(source, ids, outbox, each) for each in receivers}
            )
        if not junctions:
            return Outlet(source)
        choosers = [(self._chooser(task, junction), junction.targets) for junction in junctions]
        first, targets = choosers[0]
        # The shape is decided now, so that no emit has to ask for it.
        if len(choosers) == 1 and isinstance(first, One):
            return SingleOutlet(source, ids, outbox, first, targets)
        return FanOutlet(source, ids, outbox, choosers)

    def _chooser(self, task: SpoutTask | BoltTask, junction: Junction) -> Chooser:
        link = junction.link
        grouping = self._kit.grouping(task.plan, link.grouping)
        random = self._engine.random(task.plan, f"to {link.consumer}")
        return grouping.chooser(link.targets, random, junction.label, junction.routes)

    # User code.

    def _worker(self, spec: BoltSpec, wiring: Wiring) -> Worker:
        # Under simulated time threads would break the order of events: their code runs inline (law B9).
        threads = spec.concurrency if spec.executor == "thread" and not self._engine.simulated else 0
        worker = self._worker_of(spec, wiring, threads)
        if threads and not isinstance(worker, BatchWorker):
            worker = ThreadWorker(worker, threads)
        return self._kit.worker(wiring.plan, worker)

    def _worker_of(self, spec: BoltSpec, wiring: Wiring, threads: int) -> Worker:
        if spec.kind is LogicKind.FUNCTION:
            return FunctionWorker(wiring, cast("Callable[[Any], object]", spec.logic))
        bolt = self._make(f"bolt {spec.id!r}", cast("Callable[[], BoltBase[Any, Any]]", spec.logic))
        if not isinstance(cast("object", bolt), BoltBase):
            raise InvalidTopology(
                f"bolt {spec.id!r}: the factory made {shortened(bolt)}, which is no Bolt, BasicBolt or BatchBolt; "
                f"{_instead_of(bolt, 'a function of the value takes one argument')}"
            )
        check_bolt(f"bolt {spec.id!r}", bolt, spec.executor)
        self._check_acks(f"bolt {spec.id!r}", bolt)
        if spec.options.get("tick") is not None and not overrides(bolt, BoltBase, "tick"):
            raise InvalidTopology(
                f"bolt {spec.id!r} has tick={spec.tick}, but {type(bolt).__name__} defines no tick(self, out)"
            )
        self._kit.instance(wiring.plan, bolt)
        if isinstance(bolt, BatchBolt):
            check_batch(spec.id, bolt)
            batches = ThreadedBatchBolt(bolt, wiring, threads) if threads else bolt
            return BatchWorker(wiring, BatchRunner(batches, wiring))
        if isinstance(bolt, BasicBolt):
            return BasicWorker(wiring, bolt)
        return BoltWorker(wiring, cast("Bolt[Any, Any]", bolt))

    def _check_acks(self, where: str, component: BoltBase[Any, Any] | Spout[Any]) -> None:
        if component.needs_acks and not self._ackers:
            raise InvalidTopology(
                f"{where}: {type(component).__name__} lives by acks and cannot run with ackers=0; set ackers to 1"
            )

    def _make(self, component: str, factory: Callable[[], R]) -> R:
        try:
            return factory()
        except Exception as error:
            raise StartFailed(self._description.name, component, "the constructor") from error

    def _feed(self, spec: SpoutSpec, task_context: TaskContext, context: FeedContext) -> Feed:
        if spec.kind is SourceKind.FED:
            return Feed(context)
        if spec.kind is SourceKind.ITERABLE:
            return _feed_of(context, spec.source)
        if spec.kind is SourceKind.GENERATOR:
            function = cast("Callable[..., object]", spec.source)
            if takes_context(function):
                function = partial(function, task_context)
            resume = partial(_resumed, function) if takes_resume(function) else None
            return _feed_of(context, function(), resume)
        make = partial(self._spout_of, spec, context.plan)
        return SpoutFeed(context, make, self._kit.receiver, task_context.config.idle_max)

    def _spout_of(self, spec: SpoutSpec, plan: TaskPlan) -> Spout[Any]:
        spout = self._make(f"spout {spec.id!r}", cast("Callable[[], Spout[Any]]", spec.source))
        if not isinstance(cast("object", spout), Spout):
            raise InvalidTopology(
                f"spout {spec.id!r}: the factory made {shortened(spout)}, which is no Spout; "
                f"{_instead_of(spout, 'let the function yield its values, or pass what it returns')}"
            )
        check_spout(f"spout {spec.id!r}", spout)
        self._check_acks(f"spout {spec.id!r}", spout)
        self._kit.instance(plan, spout)
        return spout


@contextmanager
def _making(component: str) -> Generator[None]:
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        UNMADE.set(component)
        raise


def _instead_of(made: object, else_: str) -> str:
    """Advice: the right way to use an object that a factory has made."""
    if isinstance(made, type) and issubclass(made, BoltBase | Spout):
        return f"pass {made.__name__} itself, or let the factory call it"
    if isinstance(made, Spout):
        return "add it with topology.spout(...)"
    return "add it with topology.bolt(...)" if isinstance(made, BoltBase) else else_


def _feed_of(context: FeedContext, values: object, resume: Resume | None = None) -> Feed:
    if isinstance(values, AsyncIterable):
        return AsyncIteratorFeed(context, aiter(cast("AsyncIterable[object]", values)), resume)
    return IteratorFeed(context, iter(cast("Iterable[object]", values)), resume)


def _resumed(function: Callable[..., object], last: object) -> object:
    return function(resume=last)
