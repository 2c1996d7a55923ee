"""The kit of a disturbed run: each part does its work, lets the witness know, and suffers the injector's faults."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NoReturn

import msgspec

from stormlet.core.groupings import Fields, Grouping, PartialKey
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter
from stormlet.core.tuples import Tuple
from stormlet.errors import TaskKilled
from stormlet.model.components import BoltBase, Spout, TaskContext
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.report.explanation import Explanation
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Worker, raised_on
from stormlet.runtime.dead_letters import DeadLetterSink
from stormlet.runtime.run.handle import Running
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.spout.spout_feed import OutcomeReceiver
from stormlet.runtime.task import Task
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Control, Post
from stormlet.testing.chaos.disturbances import EngineError, InjectedError, Raising, Steps
from stormlet.testing.chaos.endings import check_pending
from stormlet.testing.chaos.faults import FaultKind, Injector
from stormlet.testing.chaos.hearings import HeardSpout
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.witness import Witness

LONGEST_SLOWNESS = 20.0
LONGEST_DELAY = 10.0
LONGEST_JUMP = 40.0
MOST_EXPLAINED = 3


class DisturbedKit(Kit):
    """Makes the parts of one run."""

    def __init__(self, injector: Injector, *, explains: bool = False) -> None:
        self.injector = injector
        self.explains = explains
        """True if the kit shall explain what was stuck when the law was broken."""
        self.explanations: Sequence[Explanation] = ()
        self.journal = Journal(self._now)
        self.witness = Witness(self._now, self.journal)
        self.steps = Steps(injector, self.journal, self.witness)
        self.raising = Raising(injector, self.journal)
        self.running: Running | None = None
        """Set when the topology has started: before, nothing is disturbed."""
        self.tasks: Tasks
        self.engine_raised = False
        """After that messages may be in nobody's hands, until the end counts them."""
        self.immortal: frozenset[str] = frozenset()
        """Components whose tasks cannot be restarted."""
        self.infallible: frozenset[str] = frozenset()
        """Bolts whose exceptions stop the topology."""
        self.jump: Callable[[float], None]
        self._time: Callable[[], float] = float

    @property
    def progress(self) -> int:
        """Grows with every message that is emitted, and with every outcome."""
        trackers = [spout.tracker for spout in self.tasks.all_spouts]
        return sum(tracker.emitted + tracker.counts.settled for tracker in trackers)

    def explain(self) -> None:
        """Note what keeps the oldest trees open."""
        if self.explains and self.running is not None and self.tasks.ackers:
            self.explanations = self.running.explain_oldest(MOST_EXPLAINED)

    def use(self, time: Callable[[], float], jump: Callable[[float], None]) -> None:
        """The clock of the loop, and how to set it forward."""
        self._time = time
        self.jump = jump

    def assembled(self, tasks: Tasks) -> None:
        """Find out what must not be disturbed."""
        self.tasks = tasks
        every = [*tasks.all_spouts, *tasks.all_bolts]
        self.injector.check_places(task.name for task in (*every, *tasks.ackers))
        self.immortal = frozenset(task.plan.component for task in every if not task.survives_kills)
        self.infallible = frozenset(
            task.plan.component for task in tasks.all_bolts if task.on_error == "stop"
        )
        self.witness.calls = {
            **{task.plan.task: 1 for task in tasks.all_spouts},
            **{task.plan.task: task.concurrency for task in tasks.all_bolts},
        }
        self.witness.unbounded = frozenset(task.plan.task for task in tasks.all_spouts if task.feed.dies)
        self.witness.in_cycles = frozenset(_fed_without_waiting(tasks.all_bolts))

    def begin(self, running: Running) -> None:
        """The topology has started: from now on it is disturbed."""
        self.running = running
        every: list[Task] = [*self.tasks.ackers, *self.tasks.all_spouts, *self.tasks.all_bolts]
        self.raising.begin({task.plan.task: task for task in every if task.plan.component != ACKER})
        self.steps.count(task for task in every if task.plan.component not in self.immortal)

    def executing(self, plan: TaskPlan, tup: AnyTuple) -> None:
        """A bolt task is about to execute an input: a good moment to look at the books of the spouts."""
        self.witness.executes(plan, tup)
        for spout in () if self.engine_raised else self.tasks.all_spouts:
            check_pending(self.witness, spout)

    def finishing(self, plan: TaskPlan) -> None:
        """``finish`` of a task is called: its upstreams must have finished (law C2)."""
        for component in () if self.engine_raised else self._upstream(plan.component):
            for spout in self.tasks.spouts.get(component, ()):
                if not spout.ended:
                    self.witness.violation("{} finishes before {} has ended", plan.name, spout.name)
            for bolt in self.tasks.bolts.get(component, ()):
                has_just_died = self.witness.has_just_finished_and_died(bolt.plan)
                if bolt.inbox.items or (bolt.finished_after < bolt.executed and not has_just_died):
                    self.witness.violation("{} finishes before {}", plan.name, bolt.name)

    def _upstream(self, component: str) -> Iterable[str]:
        order = self.tasks.all_bolts[0].engine.plan
        cycle = next(group for group in order.order if component in group)
        inputs = (each.source.component for each in order.description.bolts[component].inputs)
        return [each for each in dict.fromkeys(inputs) if each not in cycle]

    def _now(self) -> float:
        return self._time()

    def strikes(self, kind: FaultKind, place: str) -> Random | None:
        """The randomness of a fault that happens here and now; None if none does."""
        return None if self.running is None else self.injector.strikes(kind, place)

    def engine_fault(self, plan: TaskPlan) -> None:
        """The engine does something for this task, which may raise, but not when the topology ends by that already."""
        struck = self.strikes(FaultKind.ENGINE, plan.name) is not None
        if struck and self.running is not None and self.running.health().crash is None:
            self.journal.note("FAULT: stormlet raises for {}", plan.name)
            self.engine_raised = True
            self.witness.disturbed([attempt.root for attempt in self.witness.open.values()])
            raise EngineError(f"stormlet was to raise for {plan.name}")

    def slowness(self, random: Random) -> float:
        """The seconds that a slow input takes longer."""
        return random.uniform(0.0, LONGEST_SLOWNESS)

    def kill(self, plan: TaskPlan) -> None:
        """Have a task die."""
        assert self.running is not None
        self.journal.note("FAULT: {} is killed", plan.name)
        self.running.kill(plan.component, plan.index)

    def inbox(self, plan: TaskPlan, capacity: int, wake_consumer: Callable[[], None]) -> Inbox:
        """A queue whose tuples are seen."""
        self.witness.queue(plan, capacity)
        fault = partial(self.engine_fault, plan)
        return WatchedInbox(capacity, wake_consumer, partial(self.witness.delivered, plan), fault)

    def outcomes(self, plan: TaskPlan) -> deque[OpenTree]:
        """Outcomes that are judged when they are taken."""
        return WatchedOutcomes(partial(self.witness.told, plan), partial(self.engine_fault, plan))

    def receiver(self, plan: TaskPlan, spout: Spout[Any]) -> OutcomeReceiver:
        """An instance that is listened to."""
        self.witness.tellings.listens(plan)
        return HeardSpout(spout, partial(self.witness.tellings.heard, plan), partial(self.raising.call, plan))

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        """One that may raise, unless its class has slots instead of attributes."""
        name = "next_tuple" if isinstance(instance, Spout) else "execute_batch"
        method: Callable[..., Awaitable[None] | None] | None = getattr(instance, name, None)
        if method is not None:
            with suppress(AttributeError):
                setattr(instance, name, partial(self._call, plan, name, method))

    def _call(
        self, plan: TaskPlan, name: str, method: Callable[..., Awaitable[None] | None], *arguments: object
    ) -> Awaitable[None] | None:
        return self.raising.call(plan, name, partial(method, *arguments))

    def grouping(self, plan: TaskPlan, grouping: Grouping) -> Grouping:
        """One whose key function may raise."""
        if isinstance(grouping, Fields | PartialKey) and grouping.key is not None:
            return msgspec.structs.replace(grouping, key=partial(self.raising.key, plan, grouping.key))
        return grouping

    def dead_letters(self, sink: DeadLetterSink | None) -> DeadLetterSink:
        """A sink that is watched."""

        def bury(letter: DeadLetter) -> Awaitable[None] | None:
            spouts = self.tasks.spouts[letter.component]
            self.witness.burials.buried(letter, expected=not spouts[0].feed.dies)
            return None if sink is None else sink(letter)

        return bury

    def posts(self, plan: TaskPlan, posts: Sequence[Post]) -> Sequence[Post]:
        """Ways on which messages come late, twice or not at all."""
        ackers = [TaskPlan(ACKER, index + 1, index, len(posts)) for index in range(len(posts))]
        return [
            DisturbedPost(self, plan, post, acker).post for post, acker in zip(posts, ackers, strict=True)
        ]

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        """A worker that may die, raise or take its time."""
        return DisturbedWorker(self, plan, worker)


def _fed_without_waiting(bolts: Sequence[BoltTask]) -> Iterator[int]:
    """Tasks with an input from inside a cycle."""
    for links in bolts[0].engine.plan.links.values() if bolts else ():
        for link in links:
            if not link.waits:
                yield from link.targets


class WatchedInbox(Inbox):
    """An inbox whose list reports each append."""

    __slots__ = ("_delivered", "_fault")

    def __init__(
        self,
        capacity: int,
        wake_consumer: Callable[[], None],
        delivered: Callable[[Tuple[Any], int], None],
        fault: Callable[[], None],
    ) -> None:
        super().__init__(capacity, wake_consumer)
        self._delivered = delivered
        self._fault = fault
        self.items = WatchedList(delivered, fault)

    def take(self) -> list[Tuple[Any]]:
        self._fault()
        items = super().take()
        if type(self.items) is list:
            self.items = WatchedList(self._delivered, self._fault)
        return items


class WatchedList(list[Tuple[Any]]):
    """Tuples that wait."""

    __slots__ = ("_delivered", "_fault")

    def __init__(self, delivered: Callable[[Tuple[Any], int], None], fault: Callable[[], None]) -> None:
        super().__init__()
        self._delivered = delivered
        self._fault = fault

    def append(self, tup: Tuple[Any]) -> None:
        self._fault()
        super().append(tup)
        self._delivered(tup, len(self))


class WatchedOutcomes(deque[OpenTree]):
    """Outcomes that wait."""

    def __init__(self, told: Callable[[OpenTree], None], fault: Callable[[], None]) -> None:
        super().__init__()
        self._told = told
        self._fault = fault

    def append(self, tree: OpenTree) -> None:
        self._fault()
        self._told(tree)
        super().append(tree)

    def extend(self, trees: Iterable[OpenTree]) -> None:
        for tree in trees:
            self.append(tree)


class DisturbedPost:
    """The way from one task to one acker."""

    def __init__(self, kit: DisturbedKit, plan: TaskPlan, post: Post, acker_plan: TaskPlan) -> None:
        self._kit = kit
        self._plan = plan
        self._post = post
        self._acker_plan = acker_plan

    def post(self, control: Control) -> None:
        """Hand on a control message, or parts of it."""
        kit, place = self._kit, self._plan.name
        kit.engine_fault(self._plan)
        for root, tree in control.inits.items():
            kit.witness.emitted(self._plan, root, tree)
        kit.witness.extended(control.resets)
        for each in self._lossy(control):
            if (random := kit.strikes(FaultKind.DELAY, place)) is not None:
                self._delay(each, random.uniform(0.0, LONGEST_DELAY))
            else:
                self._post(each)
        self._kill(place)
        if (random := kit.strikes(FaultKind.JUMP, "clock")) is not None:
            seconds = random.uniform(0.0, LONGEST_JUMP)
            kit.journal.note("FAULT: the clock jumps by {} s", round(seconds, 3))
            kit.jump(seconds)
            kit.witness.jumped()

    def _lossy(self, control: Control) -> list[Control]:
        """Inits cannot be lost in one process, and a lost one would never be heard of; acks and fails are (L5)."""
        kit, place = self._kit, self._plan.name
        if not control.acks and not control.fails:
            return [control]
        roots = [*control.acks, *(root for root, _ in control.fails)]
        again = Control({}, control.acks, control.fails, [])
        if kit.witness.timeout is not None and kit.strikes(FaultKind.DROP, place) is not None:
            kit.journal.note("FAULT: acks and fails of {} are lost", place)
            kit.witness.disturbed(roots)
            return [Control(control.inits, {}, [], control.resets)]
        if kit.witness.timeout is not None and kit.strikes(FaultKind.DUPLICATE, place) is not None:
            kit.journal.note("FAULT: acks and fails of {} arrive twice", place)
            kit.witness.disturbed(roots)
            return [control, again]
        return [control]

    def _delay(self, control: Control, seconds: float) -> None:
        self._kit.journal.note("FAULT: a message of {} comes {} s late", self._plan.name, round(seconds, 3))
        roots = [*control.inits, *control.acks, *(root for root, _ in control.fails), *control.resets]
        self._kit.witness.disturbed(roots)
        self._kit.witness.extended(roots)
        asyncio.get_running_loop().call_later(seconds, self._post, control)

    def _kill(self, place: str) -> None:
        kit = self._kit
        if kit.strikes(FaultKind.KILL, self._acker_plan.name) is not None:
            kit.witness.latest = None  # until it is there again, trees wait for it
            kit.kill(self._acker_plan)
        may_die = self._plan.component in kit.tasks.spouts and self._plan.component not in kit.immortal
        if may_die and kit.strikes(FaultKind.KILL, place) is not None:
            kit.kill(self._plan)


class DisturbedWorker(Worker):
    """Around another worker, which has the tuples between two faults for itself."""

    def __init__(self, kit: DisturbedKit, plan: TaskPlan, inner: Worker) -> None:
        super().__init__(inner.wiring)
        self.auto_acks = inner.auto_acks
        self.resets_timeouts = inner.resets_timeouts
        self.chunk = inner.chunk
        self._kit = kit
        self._plan = plan
        self._inner = inner
        self._met: tuple[AnyTuple, FaultKind, Random] | None = None

    @property
    def restartable(self) -> bool:
        return self._inner.restartable

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        # After an input before the fault has raised, the inner worker is called again, and may have others in hand.
        happened = self._inner.work(self._until_fault(tuples) if self._met is None else ())
        if self._met is None or isinstance(happened, Raised):
            return happened
        if happened is not None:  # of threads, which take what is before the fault at once
            return self._suffer_after(happened)
        (tup, kind, random), self._met = self._met, None
        if kind is FaultKind.KILL and random.random() < 0.5:
            self._die()  # with what is unsent
        return self._suffer(tup, kind, random, self.out)

    async def _suffer_after(self, pause: Pause) -> Raised | None:
        raised = await pause
        if raised is None and self._met is not None:
            met, self._met = self._met, None
            raised = await self._suffer(*met, self.out)
        return raised

    def _until_fault(self, tuples: Iterable[AnyTuple]) -> Iterator[AnyTuple]:
        for tup in tuples:
            self._kit.executing(self._plan, tup)
            fault = self._fault()
            if fault is not None:
                self._met = (tup, *fault)
                return
            yield tup

    def _fault(self) -> tuple[FaultKind, Random] | None:
        plan, kit = self._plan, self._kit
        for kind, spared in (
            (FaultKind.KILL, kit.immortal),
            (FaultKind.ERROR, kit.infallible),
            (FaultKind.SLOW, frozenset[str]()),
        ):
            if plan.component not in spared and (random := kit.strikes(kind, plan.name)) is not None:
                return kind, random
        return None

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        self._kit.executing(self._plan, tup)
        fault = self._fault()
        if fault is None:
            return await self._inner.execute(tup, out)
        return await self._suffer(tup, *fault, out)

    async def _suffer(
        self, tup: AnyTuple, kind: FaultKind, random: Random, out: BoltCollector
    ) -> Raised | None:
        name, journal = self._plan.name, self._kit.journal
        if kind is FaultKind.ERROR:
            journal.note("FAULT: {} raises on {}", name, tup.value)
            return await self._raised_on(tup, random, out)
        if kind is FaultKind.KILL:
            if random.random() < 0.5:
                await self._inner.execute(tup, out)
            self._die()
        seconds = self._kit.slowness(random)
        journal.note("FAULT: {} takes {} s for {}", name, round(seconds, 3), tup.value)
        await self.awaited(asyncio.sleep(seconds), None)
        self._kit.witness.moved()
        raised = await self._inner.execute(tup, out)
        if raised is None:
            await self.outbox.room()
        return raised

    async def _raised_on(self, tup: AnyTuple, random: Random, out: BoltCollector) -> Raised:
        """Instead of executing an input, or, where the engine acks, when everything is emitted that comes of it."""
        error: Exception = InjectedError(f"{self._plan.name} was to raise")
        if self.auto_acks and random.random() < 0.5:
            try:
                await self._inner.process(tup, out)
            except Exception as own:
                error = own
        return raised_on(tup, error)

    def _die(self) -> NoReturn:
        self._kit.journal.note("FAULT: {} dies", self._plan.name)
        raise TaskKilled("the simulation has killed it")

    def method(self, name: str) -> Method | None:
        method = self._inner.method(name)
        return None if method is None else partial(self._call, name, method)

    def _call(self, name: str, method: Method, out: Any) -> Awaitable[None] | None:
        self._kit.witness.begins(self._plan)
        self._kit.journal.note("{}: {}", self._plan.name, name)
        if name == "finish":
            self._kit.finishing(self._plan)
        return self._kit.raising.call(self._plan, name, partial(method, out))

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self._inner.threads()

    def why_held(self, tup: AnyTuple) -> str:
        return self._inner.why_held(tup)

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self._inner.prepare(context)

    def cleanup(self) -> Awaitable[None] | None:
        return self._inner.cleanup()
