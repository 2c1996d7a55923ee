"""``SpoutCollector.emit_many``: what as many single emits do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    EndOfStream,
    Failure,
    InvalidEmit,
    ReliableSpout,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyStopping,
    Tuple,
)
from tests.cast import Silent
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time

Emit = Callable[[SpoutCollector[Any]], None]
request: ContextVar[str] = ContextVar("request", default="none")
Told = list[tuple[object, bool]]


def once(emit: Emit, told: Told, kind: type[Spout[Any]] = Spout) -> Spout[Any]:
    """A spout that calls this once, and notes of each message whether it was acked."""

    class Once(kind):  # type: ignore[misc, valid-type]
        asked = False

        def next_tuple(self, out: SpoutCollector[Any]) -> None:
            if self.asked:
                raise EndOfStream
            self.asked = True
            emit(out)

        def ack(self, message_id: object) -> None:
            told.append((message_id, True))

        def fail(self, message_id: object, failure: Failure) -> None:
            told.append((message_id, False))

    return Once()


class Note(BasicBolt[Any, None]):
    """Notes what it gets, and fails what is negative."""

    def __init__(self, seen: list[tuple[object, ...]]) -> None:
        self.seen = seen

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        """Note it first."""
        self.seen.append((tup.value, tup.origin, tup.attempt, request.get()))
        assert tup.value >= 0


async def run(
    emit: Emit, kind: type[Spout[Any]] = Spout, outputs: object = None, **options: Any
) -> tuple[list[tuple[object, ...]], Told]:
    seen, told = list[tuple[object, ...]](), Told()
    topology = Topology("many", **options)
    spout = topology.spout("spout", lambda: once(emit, told, kind), outputs=outputs)
    topology.bolt("note", lambda: Note(seen), spout.shuffle())
    running = await run_to_end(topology)
    counts = running.statistics().components["spout"]
    assert (counts.emitted, counts.pending) == (len(told) + counts.replayed, 0)
    return seen, told


async def test_each_is_a_message_of_its_own() -> None:
    """With its own id, origin and outcome; they are executed in order."""
    seen, told = await run(
        lambda out: out.emit_many([1, -2, 3], message_ids="abc", origins=["A", "B", "C"], attempt=7)
    )
    assert seen == [(1, "A", 7, "none"), (-2, "B", 7, "none"), (3, "C", 7, "none")]
    assert sorted(told) == [("a", True), ("b", False), ("c", True)]


async def test_those_of_a_reliable_spout_are_replayed() -> None:
    """As often as others are, with what they have of their source; and its user hears the final outcome."""
    seen, told = await run(
        lambda out: out.emit_many([1, -2], message_ids="ab", origins=["A", "B"]),
        ReliableSpout,
        max_attempts=2,
    )
    assert [each[:3] for each in seen] == [(1, "A", 1), (-2, "B", 1), (-2, "B", 2)]
    assert told == [("a", True), ("b", False)]


@pytest.mark.parametrize("origins", [None, ["A", "B"]])
async def test_context_variables_travel_with_all_of_them(origins: list[str] | None) -> None:
    """Those that are set when it is called (law B10)."""

    def emit(out: SpoutCollector[Any]) -> None:
        request.set("first")
        out.emit_many([1, 2], message_ids="ab", origins=origins)
        request.set("second")
        out.emit_many([3, 4], message_ids="cd", origins=origins)

    seen, _ = await run(emit)
    assert [(each[0], each[3]) for each in seen] == [(1, "first"), (2, "first"), (3, "second"), (4, "second")]


@pytest.mark.parametrize(
    ("message_ids", "origins", "message"),
    [
        ("ab", None, "3 values with 2 message ids"),
        ("abcd", "ABC", "3 values with 4 message ids and 3 origins"),
        ("abc", "AB", "3 values with 3 message ids and 2 origins"),
        (["a", None, "c"], None, "message ids that are not None"),
    ],
)
async def test_of_each_there_must_be_as_many(message_ids: Any, origins: Any, message: str) -> None:
    """Otherwise nothing is emitted."""

    def emit(out: SpoutCollector[Any]) -> None:
        with pytest.raises(ValueError, match=message):
            out.emit_many([1, 2, 3], message_ids=message_ids, origins=origins)
        assert out.pending == 0

    assert await run(emit) == ([], [])


async def test_those_before_a_refused_value_are_emitted() -> None:
    """They have their outcomes, and those after it do not exist."""

    def emit(out: SpoutCollector[Any]) -> None:
        with pytest.raises(InvalidEmit, match="emits 'two'"):
            out.emit_many([Whole(1), "two", Whole(3)], message_ids="abc")
        assert out.pending == 1

    class Whole(msgspec.Struct):
        """What the stream carries."""

        value: int

        def __ge__(self, other: int) -> bool:
            return self.value >= other

    seen, told = await run(emit, outputs=Whole)
    assert ([each[0] for each in seen], told) == ([Whole(1)], [("a", True)])


async def test_without_ackers_all_count_as_acked_afterwards() -> None:
    """Not within the call (law L9, L17)."""
    told = Told()

    def emit(out: SpoutCollector[Any]) -> None:
        out.emit_many([1, 2], message_ids="ab")
        assert told == []

    topology = Topology("unacked", ackers=0)
    topology.spout("spout", lambda: once(emit, told))
    await run_to_end(topology)
    assert told == [("a", True), ("b", True)]


async def test_while_draining_it_is_refused() -> None:
    """As a single emit is (law C3)."""
    refused: list[str] = []

    class Late(Silent):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.out = out
            out.emit(1, message_id="first")

        def ack(self, message_id: object) -> None:
            try:
                self.out.emit_many([2], message_ids=["second"])
            except TopologyStopping as error:
                refused.append(str(error))

    topology = Topology("draining")

    async def slow(value: int) -> None:
        await asyncio.sleep(5)

    topology.bolt("slow", slow, topology.spout("late", Late).shuffle())
    async with topology.run():
        pass
    assert refused == ["late[0] emits while the topology is draining"]
