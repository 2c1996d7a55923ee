"""Room and values for messages of the host (law C4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    FailureKind,
    InvalidTopology,
    Running,
    To,
    Topology,
    TopologyStopping,
    Tuple,
    TupleFailed,
)
from tests.cast import Forget, Slow, ignore
from tests.helpers import now
from tests.law.hosts import host_topology, tree_of


def words_topology() -> tuple[Topology, Any, Any, Any]:
    """Lines are split, and every word reaches two tasks; short words go to a stream of their own."""

    def split(line: str) -> Iterator[object]:
        for word in line.split():
            yield word if len(word) > 1 else To(word, stream="short")

    topology = Topology("words")
    lines = topology.spout("lines")
    words = topology.bolt("split", split, lines.shuffle(), outputs={"default": None, "short": None})
    counts = topology.bolt("measure", len, words.all(), parallelism=2)
    topology.bolt("ignore", ignore, counts.shuffle())
    return topology, lines, words, counts


@pytest.mark.simulated_time
async def test_C4_collect_returns_what_this_tree_sent_there() -> None:
    """Every value once, however many tasks it reaches, and none of another tree."""
    topology, lines, words, _ = words_topology()
    async with topology.run() as running:
        first = await running.emit(lines, "one a two", collect=words)
        second = await running.emit(lines, "three b", collect=words.named("short"))
        without = await running.emit(lines, "four")
        assert [await first, await second, await without] == [["one", "two"], ["b"], []]
        assert await first == ["one", "two"]


@pytest.mark.simulated_time
async def test_C4_collect_reaches_any_depth() -> None:
    """The stream may be that of the last bolt, or that of the spout itself."""
    topology, lines, _, counts = words_topology()
    async with topology.run() as running:
        deep = await running.emit(lines, "one three", collect=counts)
        itself = await running.emit(lines, "one three", collect=lines)
        assert sorted(await deep) == [3, 3, 5, 5]
        assert await itself == ["one three"]


@pytest.mark.simulated_time
async def test_C4_collect_returns_the_values_of_the_last_attempt_alone() -> None:
    """What a failed attempt has sent is forgotten."""
    attempts: list[int] = []

    class FailFirst(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            attempts.append(tup.attempt)
            out.emit(f"attempt {tup.attempt}")
            if tup.attempt == 1:
                raise ValueError(tup.value)

    topology = Topology("attempts")
    fed = topology.spout("fed")
    sent = topology.bolt("logic", FailFirst, fed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=2, collect=sent)
        assert await tree == ["attempt 2"]
    assert attempts == [1, 2]


@pytest.mark.simulated_time
async def test_C4_emit_waits_for_room() -> None:
    """With one message pending at most, the second emit returns when the first tree is acked; in order."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    emitted: list[tuple[int, float]] = []

    async def emit(running: Running, number: int) -> None:
        await running.emit(fed, number)
        emitted.append((number, now()))

    async with topology.run() as running:
        await asyncio.gather(*(emit(running, number) for number in range(3)))
    assert emitted == [(0, 0), (1, 3), (2, 6)]


@pytest.mark.simulated_time
async def test_C4_a_waiting_emit_can_be_cancelled() -> None:
    """Its message is never sent, and the next one in line gets the room."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    async with topology.run() as running:
        await running.emit(fed, "first")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.emit(fed, "second"), 1)
        await running.emit(fed, "third")
        assert now() == 3
    assert running.statistics().components["logic"].executed == 2


@pytest.mark.simulated_time
async def test_C4_emit_waits_for_room_in_the_queues() -> None:
    """It returns when every queue that the spout has filled has room."""
    topology, fed = host_topology(partial(Slow, 3), queue_capacity=2)
    async with topology.run() as running:
        times: list[float] = []
        for number in range(8):
            await running.emit(fed, number)
            times.append(now())
            assert running.statistics().components["logic"].pending <= 5
    assert times[-1] > 3


@pytest.mark.simulated_time
async def test_C4_waiting_emits_raise_when_the_topology_drains() -> None:
    """Those that wait for room, and those that come later; the message under way is settled."""
    topology, fed = host_topology(partial(Slow, 3), max_spout_pending=1)
    async with topology.run() as running:
        tree = await running.emit(fed, "first")
        waiting = [asyncio.ensure_future(running.emit(fed, number)) for number in range(3)]
        await asyncio.sleep(1)
        running.stop()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert now() == 1
        assert [type(each) for each in outcomes] == [TopologyStopping] * 3
        with pytest.raises(TopologyStopping):
            await running.emit(fed, "later")
        await tree
    assert running.statistics().components["logic"].executed == 1


@pytest.mark.simulated_time
async def test_C4_a_tree_that_the_deadline_cuts_off_fails_with_shutdown() -> None:
    """Whoever awaits it beyond the block gets its outcome too."""
    topology, fed = host_topology(Forget, drain_timeout=1.0)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=5)
        waiting = asyncio.ensure_future(tree_of(tree))
    for outcome in (waiting, tree_of(tree)):
        with pytest.raises(TupleFailed) as failed:
            await outcome
        assert failed.value.failure.kind is FailureKind.SHUTDOWN


@pytest.mark.simulated_time
async def test_C4_only_a_spouts_stream_takes_messages() -> None:
    """A bolt's stream, or one of another topology, is refused by name."""
    topology, fed = host_topology(ignore)
    bolt = topology.bolt("more", ignore, fed.shuffle())
    _, stranger = host_topology(ignore)
    async with topology.run() as running:
        for stream in (bolt, stranger):
            with pytest.raises(InvalidTopology, match="no spout's stream"):
                await running.emit(stream, "x")
