"""Executions of recorded trees, with their times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    BoltExecuteInfo,
    Collector,
    Execution,
    Explanation,
    Running,
    Stream,
    TaskHook,
    Timeline,
    Topology,
    Tuple,
)
from stormlet.runtime.bolt.wrapped import ObservedWorker
from stormlet.runtime.explain.recorder import MOST_EXECUTIONS
from tests.cast import Hold, Join, Slow, ignore, same
from tests.runtime.explain.reading import one_bolt

pytestmark = pytest.mark.simulated_time


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def spans(timeline: Timeline | None) -> list[tuple[str, float, float | None, str]]:
    """The name of each execution, its begin and its end since that of the attempt, and how it ended."""
    assert timeline is not None
    return [_span(timeline, each) for each in timeline.executions]


def _span(timeline: Timeline, each: Execution) -> tuple[str, float, float | None, str]:
    ended = None if each.ended is None else round(each.ended - timeline.began, 6)
    return each.name, round(each.began - timeline.began, 6), ended, each.ending.value


def waits(timeline: Timeline | None) -> list[float]:
    """The seconds that each has waited before it was executed."""
    assert timeline is not None
    return [round(each.waited, 6) for each in timeline.executions]


@asynccontextmanager
async def kept_open(
    *bolts: Any, record_edges: float = 1.0, **options: Any
) -> AsyncIterator[tuple[Running, Stream[Any]]]:
    """A fed spout, bolts in a row, and one that keeps the tree of each message open."""
    topology = Topology("row", record_edges=record_edges, drain_timeout=0, message_timeout=None)
    last = source = topology.spout("source")
    for number, bolt in enumerate(bolts, start=1):
        last = topology.bolt(f"bolt{number}", bolt, last.shuffle(), **options)
    topology.bolt("keep", Hold, source.shuffle())
    async with topology.run() as running:
        yield running, source


def of_bolts(explanation: Explanation) -> Timeline:
    """Without the bolt that keeps the tree open."""
    timeline = explanation.timeline
    assert timeline is not None
    executions = tuple(each for each in timeline.executions if each.component != "keep")
    return Timeline(timeline.began, executions, timeline.left_out)


async def two_seconds(value: object) -> object:
    await asyncio.sleep(2)
    return value


async def three_seconds(value: object) -> object:
    await asyncio.sleep(3)
    return value


async def test_known_sleeps_give_known_spans() -> None:
    """One bolt after the other; the last one is still at it."""
    async with kept_open(two_seconds, three_seconds, sleep) as (running, source):
        tree = await running.emit(source, 10)
        await asyncio.sleep(9)
        assert spans(of_bolts(tree.explain())) == [
            ("bolt1[0]", 0, 2, "acked"),
            ("bolt2[0]", 2, 5, "acked"),
            ("bolt3[0]", 5, None, "running"),
        ]


async def test_the_wait_in_a_queue_is_known() -> None:
    """From the delivery to the call: here until two others were executed."""
    async with kept_open(two_seconds) as (running, source):
        trees = [await running.emit(source, number) for number in range(3)]
        await asyncio.sleep(9)
        assert [waits(of_bolts(each.explain())) for each in trees] == [[0], [2], [4]]
        assert spans(of_bolts(trees[2].explain())) == [("bolt1[0]", 4, 6, "acked")]


async def test_a_fan_out_has_a_span_for_each_tuple() -> None:
    """They are executed one after the other by one task."""

    def three(value: object) -> Iterator[object]:
        yield from (value, value, value)

    async with kept_open(three, sleep) as (running, source):
        tree = await running.emit(source, 2)
        await asyncio.sleep(9)
        timeline = of_bolts(tree.explain())
        assert spans(timeline)[1:] == [
            ("bolt2[0]", 0, 2, "acked"),
            ("bolt2[0]", 2, 4, "acked"),
            ("bolt2[0]", 4, 6, "acked"),
        ]
        assert waits(timeline) == [0, 0, 2, 4]


async def test_concurrent_calls_overlap() -> None:
    """As many at a time as there may be (law B3)."""

    async def named(value: float) -> Iterator[float]:
        return iter([value] * 3)

    async with kept_open(named, sleep, concurrency=2) as (running, source):
        tree = await running.emit(source, 4)
        await asyncio.sleep(9)
        assert spans(of_bolts(tree.explain()))[1:] == [
            ("bolt2[0]", 0, 4, "acked"),
            ("bolt2[0]", 0, 4, "acked"),
            ("bolt2[0]", 4, 8, "acked"),
        ]


async def test_each_attempt_has_a_timeline() -> None:
    """A replay begins another one; that of the attempt before is in its failure."""

    async def fail_once(tries: list[object], value: object) -> None:
        await asyncio.sleep(1)
        tries.append(value)
        if len(tries) == 1:
            raise ValueError(value)
        await asyncio.sleep(100)

    topology = Topology("again", record_edges=1, replay_delay=5, drain_timeout=0)
    topology.bolt("bolt", partial(fail_once, []), topology.spout("source", ["a"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(8)
        (explanation,) = running.explain_oldest()
        (failure,) = explanation.failures
        assert spans(failure.timeline) == [("bolt[0]", 0, 1, "failed")]
        assert spans(explanation.timeline) == [("bolt[0]", 0, None, "running")]
        assert failure.timeline is not None
        assert explanation.timeline is not None
        assert explanation.timeline.began - failure.timeline.began > 5


async def test_what_times_out_was_running() -> None:
    """The timeline of a failed attempt is that of the moment at which it has failed."""
    topology = Topology("late", record_edges=1, message_timeout=5, replay_delay=1, drain_timeout=0)
    topology.bolt("bolt", sleep, topology.spout("source", [30.0]).shuffle())
    async with topology.run(dead_letters=ignore) as running:
        await asyncio.sleep(14)
        failure = running.explain_oldest()[0].failures[0]
        assert spans(failure.timeline) == [("bolt[0]", 0, None, "running")]


async def test_a_bolt_may_settle_later() -> None:
    """The span is that of its call."""
    async with kept_open(Hold) as (running, source), kept_open(partial(Slow, 4)) as (other, slow):
        held, late = await running.emit(source, 1), await other.emit(slow, 1)
        await asyncio.sleep(1)
        assert spans(of_bolts(held.explain())) == [("bolt1[0]", 0, 0, "held")]
        await asyncio.sleep(9)
        assert spans(of_bolts(late.explain()))[0][3] == "acked"


class AcksFirst(Bolt[Any, int]):
    """Acks its input, and goes on with it."""

    async def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        out.ack(tup)
        await asyncio.sleep(3)


async def test_what_is_acked_may_go_on() -> None:
    """Its span ends when the call does, however many other tuples of the tree there are meanwhile."""

    async def many(value: object) -> Iterator[int]:
        await asyncio.sleep(1)
        return iter(range(200))

    topology = Topology("row", record_edges=1, drain_timeout=0)
    source = topology.spout("source", [1])
    topology.bolt("acks", AcksFirst, source.shuffle())
    topology.bolt("hold", Hold, topology.bolt("many", many, source.shuffle()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(2)
        assert ("acks[0]", 0, None, "acked") in spans(running.explain_oldest()[0].timeline)
        await asyncio.sleep(2)
        assert ("acks[0]", 0, 3, "acked") in spans(running.explain_oldest()[0].timeline)


class Write(BatchBolt[Any, None]):
    """Takes two seconds for two values."""

    size, within = 2, 60.0

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once

    async def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        await asyncio.sleep(2)


@pytest.mark.parametrize("at_once", [1, 2])
async def test_members_of_a_batch_are_executed_together(at_once: int) -> None:
    """From then on when it is; before, they wait."""
    async with kept_open(partial(Write, at_once)) as (running, source):
        first = await running.emit(source, 1)
        await asyncio.sleep(3)
        assert spans(of_bolts(first.explain())) == [("bolt1[0]", 0, 0, "held")]
        second = await running.emit(source, 2)
        await asyncio.sleep(1)
        assert spans(of_bolts(first.explain())) == [("bolt1[0]", 3, None, "running")]
        await asyncio.sleep(3)
        assert spans(of_bolts(first.explain())) == [("bolt1[0]", 3, 5, "acked")]
        assert spans(of_bolts(second.explain())) == [("bolt1[0]", 0, 2, "acked")]
        assert [waits(of_bolts(each.explain())) for each in (first, second)] == [[3], [0]]


class Refused(Write):
    """Raises at once, or after a while."""

    def __init__(self, *, late: bool) -> None:
        super().__init__()
        self._late = late

    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> Any:
        if self._late:
            return self._refuse()
        raise ValueError(tups)

    async def _refuse(self) -> None:
        await asyncio.sleep(1)
        raise ValueError


@pytest.mark.parametrize("late", [False, True])
async def test_a_batch_may_fail(late: bool) -> None:
    """With all its members, at the time at which it has raised."""
    topology = Topology("refuses", record_edges=1, drain_timeout=0, replay_delay=20)
    source = topology.spout("source")
    topology.bolt("bolt", partial(Refused, late=late), source.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(source, number, attempts=2) for number in range(2)]
        await asyncio.sleep(3)
        for tree in trees:
            (failure,) = tree.explain().failures
            assert spans(failure.timeline) == [("bolt[0]", 0, int(late), "failed")]


async def test_a_task_that_dies_fails_what_it_executes() -> None:
    """Its call ends with it."""
    async with one_bolt(sleep, on_error="restart") as (running, source):
        tree = await running.emit(source, 50, attempts=2)
        await asyncio.sleep(3)
        running.kill("bolt")
        await asyncio.sleep(0.001)
        (failure,) = tree.explain().failures
        assert spans(failure.timeline) == [("bolt[0]", 0, 3, "failed")]
        await asyncio.sleep(5)
        assert workers_of(running) == {True}  # also that of the next instance


async def test_a_wait_for_room_is_no_part_of_an_execution() -> None:
    """Neither while it lasts nor afterwards (law B6)."""

    async def emits_two(value: float) -> AsyncIterator[float]:
        await asyncio.sleep(1)
        yield value
        yield value

    async with kept_open(emits_two, sleep, queue_capacity=1) as (running, source):
        trees = [await running.emit(source, 5) for _ in range(3)]
        await asyncio.sleep(2)
        assert spans(of_bolts(trees[0].explain()))[0] == ("bolt1[0]", 0, 1, "acked")
        await asyncio.sleep(50)
        firsts = [spans(of_bolts(each.explain()))[0] for each in trees]
        assert [(ended or 0) - began for _, began, ended, _ in firsts] == [1, 1, 1]


async def test_what_was_executed_has_ended_while_its_output_waits() -> None:
    """Its task waits for room in a full queue, and does not execute it any more."""
    async with kept_open(same, sleep, queue_capacity=1) as (running, source):
        trees = [await running.emit(source, 5) for _ in range(3)]
        await asyncio.sleep(2)
        assert [spans(of_bolts(each.explain()))[0] for each in trees[:2]] == [("bolt1[0]", 0, 0, "acked")] * 2


async def test_a_tuple_of_two_trees_is_in_both_timelines() -> None:
    """An output that is anchored to several inputs is executed once (law L7)."""
    async with kept_open(Join, two_seconds) as (running, source):
        trees = [await running.emit(source, number) for number in range(2)]
        await asyncio.sleep(1)
        assert [spans(of_bolts(each.explain()))[-1] for each in trees] == [
            ("bolt2[0]", 0, None, "running")
        ] * 2


async def test_few_executions_are_kept_and_the_others_counted() -> None:
    """So that a tree of a million tuples does not fill the memory."""

    def many(value: int) -> Iterator[int]:
        yield from range(value)

    async with kept_open(many, ignore) as (running, source):
        tree = await running.emit(source, 1000)
        await asyncio.sleep(1)
        timeline = tree.explain().timeline
        assert timeline is not None
        assert (len(timeline.executions), timeline.left_out) == (MOST_EXECUTIONS, 1002 - MOST_EXECUTIONS)


async def test_a_failure_keeps_fewer() -> None:
    """As there may be many failures; the one that has failed is among them."""

    def many(value: int) -> Iterator[int]:
        yield from range(value)

    def refuse_the_last(value: int) -> None:
        if value == 99:
            raise ValueError

    topology = Topology("many", record_edges=1, replay_delay=20, drain_timeout=0)
    source = topology.spout("source", [100])
    topology.bolt("refuse", refuse_the_last, topology.bolt("many", many, source.shuffle()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        timeline = running.explain_oldest()[0].failures[0].timeline
        assert timeline is not None
        assert (len(timeline.executions), timeline.left_out) == (20, 81)
        assert [each for _, _, _, each in spans(timeline)].count("failed") == 1


def workers_of(running: Running) -> set[bool]:
    """If their executions are observed."""
    tasks = running._tasks.all_bolts  # pyright: ignore[reportPrivateUsage] - nobody else can see workers
    return {isinstance(task.worker, ObservedWorker) for task in tasks}


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_workers_are_observed_only_while_it_is_on(concurrency: int) -> None:
    """Also where calls go on beside each other without an end; off, they are those of a run that was never recorded."""
    async with kept_open(sleep, record_edges=0, concurrency=concurrency) as (running, source):
        running.record_edges(0)
        assert workers_of(running) == {False}
        before = [await running.emit(source, 2) for _ in range(concurrency)]
        await asyncio.sleep(1)
        running.record_edges()
        during = [await running.emit(source, 2) for _ in range(concurrency)]
        await asyncio.sleep(5)
        assert workers_of(running) == {True}
        assert [each.explain().timeline for each in before] == [None] * concurrency
        assert [spans(of_bolts(each.explain()))[0][3] for each in during] == ["acked"] * concurrency
        running.record_edges(0)
        assert workers_of(running) == {False}


async def test_those_who_look_on_leave_workers_as_they_are() -> None:
    """Tests on simulated time record every tree, and go the ways of a run that is not recorded."""
    async with kept_open(sleep, record_edges=0) as (running, source):
        tree = await running.emit(source, 1)
        await asyncio.sleep(3)
        assert tree.explain().recorded
        assert tree.explain().timeline is None
        assert workers_of(running) == {False}


class Notes(TaskHook):
    """Notes how long each execution took."""

    def __init__(self, seen: list[float]) -> None:
        self._seen = seen

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        self._seen.append(info.execute_latency)


async def test_hooks_hear_of_executions_all_the_same() -> None:
    """They are around the user's code, and the observer around them."""
    seen: list[float] = []
    topology = Topology("hooked", record_edges=1, drain_timeout=0)
    source = topology.spout("source", [2.0])
    topology.bolt("bolt", sleep, source.shuffle())
    topology.bolt("keep", Hold, source.shuffle())
    async with topology.run(hooks=[partial(Notes, seen)]) as running:
        await asyncio.sleep(5)
        assert ("bolt[0]", 0, 2, "acked") in spans(running.explain_oldest()[0].timeline)
        assert 2.0 in seen
