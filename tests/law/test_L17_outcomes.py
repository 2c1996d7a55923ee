"""No outcome is delivered inside of emit (law L17)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stormlet import Failure, Spout, SpoutCollector, Topology
from stormlet.errors import EndOfStream
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.law.puppets import Puppets, script


class Diary(Spout[int]):
    """Emits some messages in each of three calls, and writes down what is called when."""

    burst = 2

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.emitted = 0

    def __call__(self) -> Diary:
        return self

    def write(self, out: SpoutCollector[int]) -> None:
        """One call."""
        if self.emitted == 3 * self.burst:
            raise EndOfStream
        self.pages.append("next")
        for _ in range(self.burst):
            out.emit(self.emitted, message_id=self.emitted)
            self.emitted += 1
        self.pages.append("end")

    def next_tuple(self, out: SpoutCollector[int]) -> Awaitable[None] | None:
        self.write(out)
        return None

    def ack(self, message_id: object) -> None:
        self.pages.append("outcome")

    def fail(self, message_id: object, failure: Failure) -> None:
        self.pages.append("outcome")


class AsyncDiary(Diary):
    """The same, and each call goes on for long after its emits."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        self.write(out)
        await asyncio.sleep(60)


def unacked(spout: Diary) -> Topology:
    """Nothing is tracked (L9)."""
    topology = Topology("unacked", ackers=0)
    topology.bolt("bolt", ignore, topology.spout("diary", lambda: spout).shuffle())
    return topology


def unheard(spout: Diary) -> Topology:
    """Nobody subscribes (L11)."""
    topology = Topology("unheard")
    topology.spout("diary", lambda: spout)
    return topology


def overflowing(spout: Diary) -> Topology:
    """The only acker is full already (L13)."""
    topology = Topology("overflowing", acker_high_water=1)
    full = script(topology, *"ab")[1]
    topology.bolt("holds", Puppets(), full.shuffle(), topology.spout("diary", lambda: spout).shuffle())
    return topology


IMMEDIATE = [unacked, unheard, overflowing]


@pytest.mark.parametrize("diary", [Diary, AsyncDiary])
@pytest.mark.parametrize("topology", IMMEDIATE)
@pytest.mark.simulated_time
async def test_L17_immediate_outcomes_come_between_two_calls(
    topology: Callable[[Diary], Topology], diary: type[Diary]
) -> None:
    """None is delivered inside emit; all are after the call has returned and before the next one."""
    spout = diary()
    async with topology(spout).run(drain_timeout=0):
        await asyncio.sleep(1)
    assert spout.pages == ["next", "end", "outcome", "outcome"] * 3


@pytest.mark.simulated_time
async def test_L17_hundreds_of_outcomes_come_before_the_next_call() -> None:
    """However many messages one call emits, the next call comes after the last of their outcomes."""
    spout = Diary()
    spout.burst = 700
    async with unheard(spout).run() as running:
        await running.finished()
    assert spout.pages == (["next", "end"] + ["outcome"] * 700) * 3


@pytest.mark.simulated_time
async def test_L17_what_ack_emits_is_not_acked_inside_of_it() -> None:
    """An emit in ``ack`` returns before the outcome of what it emitted is told, and that comes before the
    next call too."""
    pages: list[str] = []

    class Chain(Spout[int]):
        def open(self, context: object, out: SpoutCollector[int]) -> None:
            self.out = out
            self.calls = 0

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            pages.append("next")
            self.calls += 1
            if self.calls == 2:
                raise EndOfStream
            out.emit(0, message_id=0)

        def ack(self, message_id: Any) -> None:
            pages.append(f"ack {message_id}")
            if message_id < 2:
                self.out.emit(message_id + 1, message_id=message_id + 1)
            pages.append("end")

    topology = Topology("chain")
    topology.spout("chain", Chain)
    await run_to_end(topology)
    assert pages == ["next", "ack 0", "end", "ack 1", "end", "ack 2", "end", "next"]


@pytest.mark.simulated_time
async def test_L17_other_outcomes_come_outside_of_emit_too() -> None:
    """Where bolts ack at once, the ack comes in a later step of the spout, never while a call runs."""
    spout = Diary()
    topology = Topology("plain")
    diary = topology.spout("diary", lambda: spout)
    topology.bolt("bolt", ignore, diary.shuffle())
    await run_to_end(topology)
    inside = False
    for page in spout.pages:
        inside = page == "next" or (inside and page != "end")
        assert not (inside and page == "outcome")
    assert spout.pages.count("outcome") == 6


class Busy(Spout[str]):
    """Emits untracked values without end, and writes down its calls and outcomes."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def open(self, context: object, out: SpoutCollector[str]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.pages.append("next")
        out.emit("x")

    def ack(self, message_id: object) -> None:
        self.pages.append("ack")


@pytest.mark.simulated_time
async def test_L17_outcomes_of_emits_from_outside_come_first_too() -> None:
    """A message that is emitted from elsewhere, reaches nobody and so is acked at once, is acked before the
    next call, even if the spout was about to make it."""
    spout = Busy()
    topology = Topology("outside", queue_capacity=2)
    stream = topology.spout("busy", lambda: spout, outputs={"default": None, "nobody": None})
    for number in range(5):
        topology.bolt(f"bolt {number}", ignore, stream.all(), parallelism=3)
    async with topology.run(drain_timeout=0):
        for number in range(300):
            await asyncio.sleep(0)
            spout.pages.append("emit")
            spout.out.emit("y", stream="nobody", message_id=number)
    words = " ".join(spout.pages)
    assert words.count("ack") > 250
    assert "emit next" not in words
