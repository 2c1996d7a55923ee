"""User code that does anything it is allowed to do, at random, and reports all of it to the witness."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from stormlet import (
    AlreadySettled,
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    Reject,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
    TopologyStopping,
    Tuple,
)
from tests.helpers import now
from tests.oracle.witness import Attempt, Copy, Said, Value, Witness

PAUSES = (0.0, 0.0, 0.0, 0.01, 0.3, 1.1, 2.3)
KEYS = 4
DEEPEST = 5
MOST_EMISSIONS = 300


class Planned(Exception):
    """What bolts raise on purpose."""


@dataclass(frozen=True)
class Plot:
    """What one component is like."""

    id: str
    kind: str
    streams: dict[str, tuple[int, ...] | None]
    """Its streams; of direct ones the tasks that can be named."""
    verbs: dict[str, int]
    """How a bolt ends with an input, by weight."""
    outputs: tuple[int, ...] = (0, 1, 1, 2)
    """How many outputs an input has; one is drawn."""
    pauses: bool = False
    messages: int = 0
    slow: bool = False
    """Whether its ack and fail take time."""
    parallelism: int = 1
    inputs: tuple[tuple[str, str, str], ...] = ()
    """Component, stream, and the name of the grouping."""
    options: dict[str, Any] = field(default_factory=dict)
    in_cycle: bool = False
    finish_after: frozenset[str] = frozenset()
    """Bolts upstream of it that report when they are finished."""


class Stage:
    """What all actors of one run share."""

    def __init__(self, seed: int, witness: Witness) -> None:
        self.seed = seed
        self.witness = witness
        self.ending = False
        """Whether the topology was asked to stop."""
        self.wrong: list[BaseException] = []
        """What the engine would take for a failure of user code."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Keep what user code raises without meaning to."""
        try:
            yield
        except (Planned, Reject, EndOfStream, TopologyStopping, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            self.wrong.append(error)
            raise

    def random(self, *names: object) -> Random:
        return Random(f"{self.seed}/{names}")


def pick_stream(plot: Plot, random: Random) -> tuple[str, int | None]:
    """One of the component's streams, and a task for direct ones; those that nobody subscribes to cannot be used."""
    usable = [name for name, tasks in plot.streams.items() if tasks is None or tasks]
    name = random.choice(usable)
    tasks = plot.streams[name]
    return name, (random.choice(tasks) if tasks else None)


# Spouts.


class RandomSpout(Spout[Value]):
    """Emits tracked and untracked values, replays some of those that fail, now and then has nothing."""

    def __init__(self, stage: Stage, plot: Plot) -> None:
        self.stage = stage
        self.plot = plot
        self.left = plot.messages
        self.untold: dict[int, Attempt] = {}
        self.immediate: set[int] = set()
        """Messages whose outcome was known when they were emitted (L17)."""
        self.retries = 2 * plot.messages
        self.active = False
        self.busy = ""
        self.next_id = 0

    def open(self, context: TaskContext, out: SpoutCollector[Value]) -> None:
        self.random = self.stage.random(context.component, context.task_index)
        self.out = out
        self.most = context.config.max_spout_pending

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        with self.stage.watch():
            assert self.busy == "", f"{what} during {self.busy} (S1)"
            self.busy = what
            try:
                yield
            finally:
                self.busy = ""

    def activate(self) -> None:
        self.active = True

    def deactivate(self) -> None:
        self.active = False

    def look_around(self) -> None:
        """What must hold whenever the spout is asked for tuples."""
        assert self.active
        assert self.out.pending == len(self.untold)
        assert self.most is None or len(self.untold) < self.most, "asked while too many are pending (S3)"
        assert not self.immediate, "an immediate outcome is overdue (L17)"

    def emit(self, out: SpoutCollector[Value], *, tracked: bool) -> None:
        stream, task = pick_stream(self.plot, self.random)
        witness = self.stage.witness
        value = witness.value(self.random.randrange(KEYS))
        if not tracked:
            reached = out.emit(value, stream=stream, task=task)
            witness.emitted(value, self.plot.id, stream, (), task, reached)
            return
        self.next_id += 1
        reached = out.emit(value, message_id=self.next_id, stream=stream, task=task)
        attempt = witness.tracked(value, self.plot.id, stream, task, reached)
        self.untold[self.next_id] = attempt
        if not reached or witness.terms.ackers == 0:
            self.immediate.add(self.next_id)

    def step(self, out: SpoutCollector[Value]) -> Iterator[float]:
        self.look_around()
        if self.left <= 0:
            raise EndOfStream
        if self.random.random() < 0.2:
            yield self.random.choice(PAUSES)
        for _ in range(self.random.choice((0, 1, 1, 1, 3))):
            self.left -= 1
            self.emit(out, tracked=self.random.random() < 0.8)
            if self.random.random() < 0.2:
                yield self.random.choice(PAUSES)

    def told(self, message_id: object, failure: Failure | None) -> None:
        assert isinstance(message_id, int)
        self.immediate.discard(message_id)
        attempt = self.untold.pop(message_id)
        assert self.out.pending == len(self.untold)
        self.stage.witness.tells(attempt, failure, prompt=not self.plot.slow)
        if failure is not None and self.retries > 0 and self.random.random() < 0.5:
            self.retries -= 1
            try:
                self.emit(self.out, tracked=True)
            except TopologyStopping:
                assert self.stage.ending
                raise


class SyncSpout(RandomSpout):
    """All plain calls."""

    def next_tuple(self, out: SpoutCollector[Value]) -> None:
        with self.calling("next_tuple"):
            for _ in self.step(out):
                pass

    def ack(self, message_id: object) -> None:
        with self.calling("ack"):
            self.told(message_id, None)

    def fail(self, message_id: object, failure: Failure) -> None:
        with self.calling("fail"):
            self.told(message_id, failure)


class AsyncSpout(RandomSpout):
    """Waits before, between and after its emits, and is cancelled in there (S7); some take their time to hear."""

    async def next_tuple(self, out: SpoutCollector[Value]) -> None:
        with self.calling("next_tuple"):
            for pause in self.step(out):
                await asyncio.sleep(pause)

    async def ack(self, message_id: object) -> None:
        await self.hear("ack", message_id, None)

    async def fail(self, message_id: object, failure: Failure) -> None:
        await self.hear("fail", message_id, failure)

    async def hear(self, verb: str, message_id: object, failure: Failure | None) -> None:
        with self.calling(verb):
            self.told(message_id, failure)
            if self.plot.slow:
                await asyncio.sleep(self.random.choice(PAUSES))


def kept_values(stage: Stage, plot: Plot, index: int) -> Iterator[tuple[float, Value | To[Value]]]:
    """What a generator yields, and how long it waits before."""
    random = stage.random(plot.id, index)
    for _ in range(plot.messages):
        pause = random.choice(PAUSES)
        stream, task = pick_stream(plot, random)
        value = stage.witness.value(random.randrange(KEYS), kept=True)
        stage.witness.keep(value, plot.id, stream, task)
        yield pause, value if (stream, task) == ("default", None) else To(value, stream, task)


def generator(stage: Stage, plot: Plot) -> Callable[[TaskContext], Iterator[Value | To[Value]]]:
    def values(context: TaskContext) -> Iterator[Value | To[Value]]:
        return (value for _, value in kept_values(stage, plot, context.task_index))

    def source(context: TaskContext) -> Iterator[Value | To[Value]]:
        yield from values(context)

    return source


def async_generator(stage: Stage, plot: Plot) -> Callable[[TaskContext], AsyncIterator[Value | To[Value]]]:
    async def source(context: TaskContext) -> AsyncIterator[Value | To[Value]]:
        random = stage.random(plot.id, context.task_index, "pauses")
        for _, value in kept_values(stage, plot, context.task_index):
            yield value
            await asyncio.sleep(random.choice(PAUSES))

    return source


# Bolts.


class Actor:
    """What all bolts share: inputs and their copies, and how to emit."""

    def __init__(self, stage: Stage, plot: Plot) -> None:
        self.stage = stage
        self.witness = stage.witness
        self.plot = plot
        self.copies: dict[Tuple[Value], Copy] = {}
        self.held: list[Tuple[Value]] = []
        self.dropped: list[Tuple[Value]] = []
        self.prolonged: Counter[Tuple[Value]] = Counter()
        self.running: list[str] = []
        self.last_from: dict[tuple[str, int], int] = {}

    def prepare(self, context: TaskContext) -> None:
        self.context = context
        self.random = self.stage.random(context.component, context.task_index)
        self.alone = self.plot.options.get("concurrency", 1) == 1

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        with self.stage.watch():
            assert not (self.alone and self.running), f"{what} during {self.running} (B7)"
            self.running.append(what)
            try:
                yield
            finally:
                self.running.remove(what)

    def begin(self, tup: Tuple[Value]) -> Copy:
        """An input arrives: what it looks like must agree with what was emitted."""
        value = tup.value
        copy = self.witness.executed(self.plot.id, value, tup.attempt if value.kept else 1, self.context.task)
        emission = copy.emission
        assert (tup.component, tup.stream) == (emission.component, emission.stream)
        assert len(set(tup.roots)) == (len(emission.roots) if self.witness.terms.ackers else 0)
        if not value.kept and self.plot.kind != "batch":
            producer = (tup.component, tup.task)
            assert self.last_from.get(producer, 0) <= value.number, "out of order (B3)"
            self.last_from[producer] = value.number
        self.copies[tup] = copy
        return copy

    def play(self, tup: Tuple[Value], out: Collector[Value]) -> Iterator[float]:
        """What is done with an input; every value is a pause that an asynchronous bolt makes."""
        raise NotImplementedError

    def said(self, reason: str = "", exception: BaseException | None = None, permanent: bool = False) -> Said:
        return Said(now(), self.plot.id, self.context.task, reason, exception, permanent)

    def value_from(self, anchors: Sequence[Tuple[Value]]) -> Value:
        depth = 1 + max((anchor.value.depth for anchor in anchors), default=0)
        return self.witness.value(self.random.randrange(KEYS), depth)

    def emit(
        self, out: Collector[Value], anchors: Sequence[Tuple[Value]], *, by_default: bool = False
    ) -> None:
        """Emit anchored to these; ``by_default`` leaves it to the engine to say so."""
        stream, task = pick_stream(self.plot, self.random)
        value = self.value_from(anchors)
        if by_default:
            reached = out.emit(value, stream=stream, task=task)
        else:
            reached = out.emit(
                value, anchors=anchors[0] if len(anchors) == 1 else anchors, stream=stream, task=task
            )
        roots = [root for anchor in anchors for root in self.copies[anchor].emission.roots]
        self.witness.emitted(value, self.plot.id, stream, roots, task, reached)

    def outputs(self, tup: Tuple[Value]) -> int:
        if tup.value.depth >= DEEPEST or len(self.witness.emissions) > MOST_EMISSIONS:
            return 0
        return self.random.choice(self.plot.outputs)

    def choose_verb(self) -> str:
        return self.random.choices(list(self.plot.verbs), list(self.plot.verbs.values()))[0]

    def settle(self, out: Collector[Value], tup: Tuple[Value], *, failing: bool) -> None:
        if failing:
            permanent = self.random.random() < 0.3
            self.witness.fail(self.copies[tup], self.said("because", permanent=permanent))
            out.fail(tup, "because", permanent=permanent)
        else:
            self.witness.ack(self.copies[tup])
            out.ack(tup)

    def misuse(self, out: Collector[Value], tup: Tuple[Value]) -> None:
        """Whatever is tried with a settled input raises and changes nothing (L15)."""
        match self.random.randrange(8):
            case 0:
                with pytest.raises(AlreadySettled):
                    out.ack(tup)
            case 1:
                with pytest.raises(AlreadySettled):
                    out.fail(tup)
            case 2 if self.plot.streams.get("default", ()) is None:
                with pytest.raises(AlreadySettled):
                    out.emit(Value(0, 0, 99), anchors=tup)


class SyncPlay(Actor):
    """Plays without a pause."""

    def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        with self.calling("execute"):
            for _ in self.play(tup, out):
                pass


class AsyncPlay(Actor):
    """Takes its time."""

    async def execute(self, tup: Tuple[Value], out: Collector[Value]) -> None:
        with self.calling("execute"):
            for pause in self.play(tup, out):
                await asyncio.sleep(pause)


class HoldingBolt(Actor):
    """Anchors and acks by itself: joins, holds, drops, and acks what it held when it is asked to."""

    def anchors(self, tup: Tuple[Value]) -> list[Tuple[Value]]:
        others = self.random.sample(self.held, min(len(self.held), self.random.randint(1, 2)))
        return self.random.choice(
            [[tup], [tup], [], [tup, *others], [tup, *others], [tup, tup], others or [tup]]
        )

    def play(self, tup: Tuple[Value], out: Collector[Value]) -> Iterator[float]:
        copy = self.begin(tup)
        for _ in range(self.outputs(tup)):
            yield self.random.choice(PAUSES)
            self.emit(out, self.anchors(tup))
        yield self.random.choice(PAUSES)
        self.let_go(out)
        match self.choose_verb():
            case "raise":
                error = self.random.choice([Planned("x"), Reject("y")])
                rejected = isinstance(error, Reject)
                self.witness.fail(copy, self.said("y" if rejected else "", error, rejected))
                raise error
            case "hold":
                self.held.append(tup)
                return
            case "drop":
                self.dropped.append(tup)
                return
            case verb:
                self.settle(out, tup, failing=verb == "fail")
        self.misuse(out, tup)
        if self.random.random() < 0.1:
            raise Planned("after the end")
        yield self.random.choice(PAUSES)

    def let_go(self, out: Collector[Value], share: float = 0.2) -> None:
        """Settle some of what is held, and prolong the life of some of what never will be."""
        for tup in [each for each in (*self.held, *self.dropped) if self.random.random() < 0.3]:
            if self.prolonged[tup] == 3:  # or a run might never end
                continue
            self.prolonged[tup] += 1
            self.witness.reset(self.copies[tup])
            out.reset_timeout(tup)
        for tup in [each for each in self.held if self.random.random() < share]:
            if self.random.random() < 0.3 and self.outputs(tup):
                self.emit(out, self.random.sample(self.held, 1))
            self.held.remove(tup)
            self.settle(out, tup, failing=self.random.random() < 0.1 and "fail" in self.plot.verbs)

    def errand(self, what: str, out: Collector[Value], share: float) -> None:
        with self.calling(what):
            self.witness.note(f"{self.plot.id}[{self.context.task}] {what}")
            self.let_go(out, share)

    def tick(self, out: Collector[Value]) -> None:
        self.errand("tick", out, 0.5)

    def flush(self, out: Collector[Value]) -> None:
        self.errand("flush", out, 1.0)

    def finish(self, out: Collector[Value]) -> None:
        copies = (copy for emission in self.witness.emissions for copy in emission.copies)
        here = [copy for copy in copies if copy.component == self.plot.id]
        assert self.plot.in_cycle or all(copy.executed for copy in here), "finished too early (C2)"
        self.witness.unfinished.pop((self.plot.id, self.context.task), None)
        before = [id for id, _ in self.witness.unfinished if id in self.plot.finish_after]
        assert not before, f"finished before {before} (C2)"
        self.errand("finish", out, 1.0)


class SyncHoldingBolt(HoldingBolt, SyncPlay, Bolt[Value, Value]):
    pass


class AsyncHoldingBolt(HoldingBolt, AsyncPlay, Bolt[Value, Value]):
    pass


class AutoBolt(Actor):
    """A ``BasicBolt``: acked on return, failed on an exception."""

    def play(self, tup: Tuple[Value], out: Collector[Value]) -> Iterator[float]:
        copy = self.begin(tup)
        for _ in range(self.outputs(tup)):
            yield self.random.choice(PAUSES)
            anchors = self.random.choice([[tup], [tup], []])
            self.emit(out, anchors, by_default=bool(anchors) and self.random.random() < 0.7)
        yield self.random.choice(PAUSES)
        match self.choose_verb():
            case "raise":
                error = Planned("x")
                self.witness.fail(copy, self.said("", error))
                raise error
            case "fail":
                self.settle(out, tup, failing=True)
                self.misuse(out, tup)
            case _ if self.random.random() < 0.2:
                self.settle(out, tup, failing=False)
                yield self.random.choice(PAUSES)
            case _:
                self.witness.ack(copy)


class SyncAutoBolt(AutoBolt, SyncPlay, BasicBolt[Value, Value]):
    pass


class AsyncAutoBolt(AutoBolt, AsyncPlay, BasicBolt[Value, Value]):
    pass


class RandomBatchBolt(Actor, BatchBolt[Value, Value]):
    """Works on batches by key; fails single members, or the whole batch."""

    size = 3
    within = 0.7

    def key(self, value: Value) -> int:
        return value.key % 2

    def execute_batch(self, tups: Sequence[Tuple[Value]], out: Collector[Value]) -> None:
        with self.calling("execute_batch"):
            assert 0 < len(tups) <= self.size
            for tup in tups:
                self.begin(tup)
            for _ in range(self.outputs(tups[0])):
                self.emit(out, tups, by_default=True)
            match self.choose_verb():
                case "raise":
                    error = Planned("x")
                    for tup in tups:
                        self.witness.fail(self.copies[tup], self.said("", error))
                    raise error
                case "fail":
                    self.settle(out, tups[0], failing=True)
                    rest = tups[1:]
                case _:
                    rest = tups
            for tup in rest:
                self.witness.ack(self.copies[tup])


class FunctionScript:
    """Functions see only values."""

    def __init__(self, stage: Stage, plot: Plot) -> None:
        self.stage = stage
        self.witness = stage.witness
        self.plot = plot
        self.random = stage.random(plot.id)

    def begin(self, value: Value) -> Copy:
        return self.witness.executed(self.plot.id, value)

    def outputs(self, value: Value) -> int:
        if value.depth >= DEEPEST or len(self.witness.emissions) > MOST_EMISSIONS:
            return 0
        return self.random.choice(self.plot.outputs)

    def output(self, copy: Copy) -> Value | To[Value]:
        stream, task = pick_stream(self.plot, self.random)
        value = self.witness.value(self.random.randrange(KEYS), copy.emission.value.depth + 1)
        self.witness.emitted(value, self.plot.id, stream, copy.emission.roots, task)
        return value if (stream, task) == ("default", None) else To(value, stream, task)

    def end(self, copy: Copy) -> None:
        """Settle the input: a function can only return or raise."""
        self.end_badly(copy)
        self.witness.ack(copy)

    def end_badly(self, copy: Copy) -> None:
        verb = self.random.choices(list(self.plot.verbs), list(self.plot.verbs.values()))[0]
        if verb in ("raise", "fail"):
            error = self.random.choice([Planned("x"), Reject("y")])
            rejected = isinstance(error, Reject)
            self.witness.fail(copy, Said(now(), self.plot.id, None, "y" if rejected else "", error, rejected))
            raise error

    def plain(self, value: Value) -> Value | To[Value] | None:
        with self.stage.watch():
            copy = self.begin(value)
            self.end_badly(copy)
            result = self.output(copy) if self.outputs(value) else None
            self.witness.ack(copy)
            return result

    async def coroutine(self, value: Value) -> Value | To[Value] | None:
        with self.stage.watch():
            copy = self.begin(value)
            await asyncio.sleep(self.random.choice(PAUSES))
            self.end_badly(copy)
            result = self.output(copy) if self.outputs(value) else None
            self.witness.ack(copy)
            return result

    def generator(self, value: Value) -> Iterator[Value | To[Value]]:
        with self.stage.watch():
            copy = self.begin(value)
            for _ in range(self.outputs(value)):
                yield self.output(copy)
            self.end(copy)

    async def async_generator(self, value: Value) -> AsyncIterator[Value | To[Value]]:
        with self.stage.watch():
            copy = self.begin(value)
            for _ in range(self.outputs(value)):
                await asyncio.sleep(self.random.choice(PAUSES))
                yield self.output(copy)
            await asyncio.sleep(self.random.choice(PAUSES))
            self.end(copy)


SPOUTS = {"sync": SyncSpout, "async": AsyncSpout}
GENERATORS = {"generator": generator, "async generator": async_generator}
BOLTS = {
    "holding": SyncHoldingBolt,
    "async holding": AsyncHoldingBolt,
    "auto": SyncAutoBolt,
    "async auto": AsyncAutoBolt,
    "batch": RandomBatchBolt,
}
FUNCTIONS = ("plain", "coroutine", "generator", "async_generator")


def make_source(stage: Stage, plot: Plot) -> Any:
    if plot.kind in SPOUTS:
        return partial(SPOUTS[plot.kind], stage, plot)
    return GENERATORS[plot.kind](stage, plot) if plot.kind in GENERATORS else None


def make_logic(stage: Stage, plot: Plot) -> Any:
    if plot.kind in FUNCTIONS:
        return getattr(FunctionScript(stage, plot), plot.kind)
    return partial(BOLTS[plot.kind], stage, plot)
