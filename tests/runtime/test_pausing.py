"""Spouts that pause until everything is settled, replay by themselves and share objects with bolts."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    EndOfStream,
    Failure,
    FailureKind,
    Spout,
    SpoutCollector,
    StillHeld,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Ack, Batches, ignore
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Rounds(Spout[int]):
    """Emits rounds of three, each after the one before is settled, and notes what happens in between."""

    def __init__(self, notes: list[object], rounds: int = 2) -> None:
        self.notes = notes
        self.rounds = rounds
        self.round = 0
        self.paused = False

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.paused:
            self.paused = False
            self.notes.append(("settled", out.pending))
        if self.round == self.rounds:
            raise EndOfStream
        self.round += 1
        for number in range(3):
            out.emit(number, message_id=(self.round, number), attempt=self.round)
        self.paused = True
        out.pause_until_settled()

    def ack(self, message_id: object) -> None:
        self.notes.append(message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.notes.append((message_id, failure.kind))


async def test_a_paused_spout_is_asked_again_when_all_is_settled() -> None:
    """A round is flushed out of the batch that holds it, and only then comes the next one (law B8)."""
    notes: list[object] = []
    topology = Topology("rounds", message_timeout=None)
    topology.bolt(
        "batch", partial(Batches, 1000, 1e9), topology.spout("rounds", lambda: Rounds(notes)).shuffle()
    )
    await run_to_end(topology)
    first = [(1, 0), (1, 1), (1, 2)]
    second = [(2, 0), (2, 1), (2, 2)]
    assert notes == [*first, ("settled", 0), *second, ("settled", 0)]


class FailsFirst(Bolt[int, None]):
    """Fails the first input at once, holds the others, and settles those when it is flushed."""

    def __init__(self, *, settles: bool) -> None:
        self.settles = settles
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if tup.value:
            self.held.append(tup)
        else:
            out.fail(tup, "first")

    def flush(self, out: Collector[None]) -> None:
        while self.held and self.settles:
            out.ack(self.held.pop())


async def test_failed_trees_are_waited_for_too() -> None:
    """What a bolt holds of trees that are over is settled before the spout goes on."""
    notes: list[object] = []
    topology = Topology("rounds", message_timeout=10.0)
    spout = topology.spout("rounds", lambda: Rounds(notes, 1))
    topology.bolt("hold", lambda: FailsFirst(settles=True), spout.shuffle())
    await run_to_end(topology)
    assert notes[0] == ((1, 0), FailureKind.FAILED)
    assert notes[-1] == ("settled", 0)


async def test_what_is_held_for_ever_crashes() -> None:
    """A bolt that keeps inputs whose trees have timed out is named, as nothing would end the wait."""
    topology = Topology("rounds", message_timeout=10.0)
    spout = topology.spout("rounds", lambda: Rounds([]))
    topology.bolt("hold", lambda: FailsFirst(settles=False), spout.shuffle())
    with pytest.raises(TopologyCrashed, match=r"flush of hold\[0\] raised .*still holds inputs") as crash:
        await run_to_end(topology)
    assert isinstance(crash.value.__cause__, StillHeld)


async def test_a_pause_with_nothing_pending_ends_at_once() -> None:
    """A spout that pauses although all is settled goes on."""

    class Nothing(Spout[int]):
        asked = 0

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            self.asked += 1
            if self.asked == 3:
                raise EndOfStream
            out.pause_until_settled()

    topology = Topology("nothing")
    topology.spout("nothing", Nothing)
    await run_to_end(topology)


class PausesInAck(Spout[int]):
    """Emits a message at each call, and pauses at the outcome of the twentieth."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self._out = out

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if len(self.asked) == 40:
            raise EndOfStream
        self.asked.append(now())
        out.emit(len(self.asked), message_id=len(self.asked))

    def ack(self, message_id: object) -> None:
        if message_id == 20:
            self._out.pause_until_settled()


async def test_a_pause_in_ack_holds_where_outcomes_are_known_at_once() -> None:
    """Nobody subscribes to its stream; another spout's message is under way for ten seconds."""
    spout = PausesInAck()
    topology = Topology("known")
    topology.spout("spout", lambda: spout)
    topology.bolt("slow", partial(asyncio.sleep, 10.0), topology.spout("other", [1]).shuffle())
    await run_to_end(topology)
    assert [time < 10 for time in spout.asked] == [True] * 20 + [False] * 20


async def test_the_attempt_a_spout_counts_travels_with_the_tuple() -> None:
    """``attempt`` of an emit is that of its tuples."""
    attempts: list[int] = []

    class Look(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            attempts.append(tup.attempt)
            out.ack(tup)

    topology = Topology("rounds")
    topology.bolt("look", Look, topology.spout("rounds", lambda: Rounds([])).shuffle())
    await run_to_end(topology)
    assert attempts == [1, 1, 1, 2, 2, 2]


async def test_a_spout_gives_messages_to_the_dead_letters() -> None:
    """A spout that replays by itself hands over what it gives up, and goes on when the sink has it."""
    letters: list[DeadLetter] = []

    class GivesUp(Rounds):
        failed: Failure | None = None

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            if self.failed is not None:
                await out.dead_letter("value", self.failed, message_id=(1, 0), attempts=3, origin="row 0")
                self.notes.append("buried")
            super().next_tuple(out)

        def fail(self, message_id: object, failure: Failure) -> None:
            self.failed = failure

    async def keep(letter: DeadLetter) -> None:
        letters.append(letter)

    notes: list[object] = []
    topology = Topology("rounds")
    spout = topology.spout("rounds", lambda: GivesUp(notes, 1))
    topology.bolt("hold", lambda: FailsFirst(settles=True), spout.shuffle())
    async with topology.run(dead_letters=keep) as running:
        await running.finished()
        assert running.statistics().components["rounds"].dead_letters == 1
    assert "buried" in notes
    [letter] = letters
    assert (letter.component, letter.value, letter.message_id) == ("rounds", "value", (1, 0))
    assert (letter.attempts, letter.origin, letter.failure.reason) == (3, "row 0", "first")


async def test_components_of_a_run_share_objects() -> None:
    """``context.shared`` gives all tasks of one run the same object, and each run its own."""

    class Register:
        def __init__(self) -> None:
            self.names: list[str] = []

    registers: list[Register] = []

    class Registered(Ack):
        def prepare(self, context: TaskContext) -> None:
            register = context.shared.one(Register)
            register.names.append(f"{context.component}[{context.task_index}]")
            registers.append(register)

    topology = Topology("shared")
    topology.bolt("bolt", Registered, topology.spout("numbers", [1]).shuffle(), parallelism=2)
    for _ in range(2):
        await run_to_end(topology)
    assert registers[0] is registers[1] is not registers[2] is registers[3]
    assert registers[0].names == ["bolt[0]", "bolt[1]"]


class OwnRounds(Rounds):
    """Pauses for its own messages only."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        super().next_tuple(out)
        out.pause_until_own_settled()


async def test_a_pause_for_its_own_messages_ends_with_them() -> None:
    """It waits for no other spout, which may be busy for ever; bolts are flushed where they may be."""
    notes: list[object] = []

    class Busy(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            await asyncio.sleep(0.1)
            out.emit(-1, message_id=-1)

    topology = Topology("rounds")
    topology.spout("busy", Busy)
    topology.bolt("ack", ignore, topology.spout("rounds", lambda: OwnRounds(notes)).shuffle())
    async with topology.run():
        await asyncio.sleep(1.0)
    assert notes == [(1, 0), (1, 1), (1, 2), ("settled", 0), (2, 0), (2, 1), (2, 2), ("settled", 0)]


async def test_a_pause_for_its_own_messages_flushes_bolts() -> None:
    """While it lasts the spout stands still, so that batches are flushed (law B8)."""
    notes: list[object] = []

    topology = Topology("rounds", message_timeout=None)
    topology.bolt(
        "batch", partial(Batches, 1000, 1e9), topology.spout("rounds", lambda: OwnRounds(notes)).shuffle()
    )
    await run_to_end(topology)
    assert notes[3:] == [("settled", 0), (2, 0), (2, 1), (2, 2), ("settled", 0)]
