"""Messages on their way to the dead letters (law S6)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stormlet import DeadLetter, Failure, FailureKind, StrayCancellation
from stormlet.core.tuples import PLAIN
from stormlet.runtime.dead_letters import DeadLetters, DeadLetterSink
from stormlet.runtime.slices import Activity
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.replays import Burials
from tests.helpers import now

pytestmark = pytest.mark.simulated_time

LAST = Failure(FailureKind.FAILED, reason="no use")
SHUTDOWN = Failure(FailureKind.SHUTDOWN)


class Graveyard:
    """The burials of a spout task, with a sink, and what comes of them."""

    def __init__(self, sink: DeadLetterSink) -> None:
        self.buried: list[tuple[object, float]] = []
        self.crashes: list[BaseException] = []
        self.unkept: list[object] = []
        self.attended: list[float] = []
        self.activity = Activity()
        failures: Any = SimpleNamespace(
            given_up=lambda plan, letter: None,
            unkept=lambda plan, letter: self.unkept.append(letter.value),
        )
        engine = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            activity=self.activity,
            failures=failures,
            crashed=lambda owner, error: self.crashes.append(error),
            host_leaves=lambda: False,
        )
        owner: Any = SimpleNamespace(
            plan=SimpleNamespace(component="spout", name="spout[0]"),
            engine=engine,
            attend_soon=lambda: self.attended.append(now()),
            guarded=lambda step, *arguments: step(*arguments),
            doing="",
        )
        self.owner = owner
        self.dead_letters = DeadLetters(sink, failures)
        self.burials = Burials(owner, self.dead_letters, self._told)

    def _told(self, message: Message, failure: Failure) -> None:
        self.buried.append((message.value, now()))

    def bury(self, value: object, failure: Failure = LAST) -> None:
        message = Message(value, "words", None, PLAIN, message_id=7)
        message.failed(failure, counts=failure is LAST)
        self.burials.bury_message(message, failure)


async def slow(letter: DeadLetter) -> None:
    await asyncio.sleep(2)


async def test_a_letter_says_all_that_is_known() -> None:
    """The sink gets it before the message is released, which a plain sink has at once."""
    letters: list[DeadLetter] = []
    graveyard = Graveyard(letters.append)
    graveyard.bury("x")
    assert letters == [DeadLetter("spout", "x", 7, 1, LAST, None, (LAST,), "words")]
    assert (graveyard.buried, graveyard.owner.doing) == ([("x", 0)], "dead_letters")
    assert (len(graveyard.burials), graveyard.activity.busy) == (0, 0)


async def test_an_asynchronous_sink_is_awaited() -> None:
    """Until it has returned the letter is on its way, which keeps the topology busy; then its task is called."""
    graveyard = Graveyard(slow)
    graveyard.bury("x")
    await asyncio.sleep(1)
    assert [letter.value for letter in graveyard.burials.letters.values()] == ["x"]
    assert (graveyard.buried, graveyard.activity.busy) == ([], 1)
    await asyncio.sleep(2)
    assert (graveyard.buried, graveyard.attended) == ([("x", 2)], [2])
    assert (len(graveyard.burials), graveyard.activity.busy) == (0, 0)


async def test_letters_are_handed_over_beside_each_other() -> None:
    """One that takes long holds up no other."""

    async def slow_first(letter: DeadLetter) -> None:
        await asyncio.sleep(5 if letter.value == "a" else 1)

    graveyard = Graveyard(slow_first)
    graveyard.bury("a")
    graveyard.bury("b")
    await asyncio.sleep(10)
    assert graveyard.buried == [("b", 1), ("a", 5)]


def refuse(letter: DeadLetter) -> None:
    raise OSError("the disk is full")


async def refuse_late(letter: DeadLetter) -> None:
    await slow(letter)
    refuse(letter)


@pytest.mark.parametrize("sink", [refuse, refuse_late])
async def test_a_sink_that_raises_crashes_the_topology(sink: DeadLetterSink) -> None:
    """The message is not released: it is left over, and not lost."""
    graveyard = Graveyard(sink)
    graveyard.bury("x")
    await asyncio.sleep(5)
    assert [type(each) for each in graveyard.crashes] == [OSError]
    assert (graveyard.buried, graveyard.unkept, graveyard.activity.busy) == ([], [], 0)


async def test_a_sink_that_lets_a_stray_cancellation_out_has_failed() -> None:
    """What it awaited was cancelled by somebody else; nobody has cancelled the sink."""

    async def await_the_cancelled(letter: DeadLetter) -> None:
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled

    graveyard = Graveyard(await_the_cancelled)
    graveyard.bury("x")
    await asyncio.sleep(5)
    assert [type(each) for each in graveyard.crashes] == [StrayCancellation]
    assert (graveyard.buried, graveyard.unkept) == ([], [])


async def test_the_end_cuts_off_what_has_not_arrived() -> None:
    """The log has each letter that its sink had not kept, and only those."""
    graveyard = Graveyard(slow)
    graveyard.bury("kept")
    await asyncio.sleep(1.5)
    graveyard.bury("cut off")
    await asyncio.sleep(1)
    await graveyard.burials.close()
    assert graveyard.buried == [("kept", 2)]
    assert (graveyard.unkept, graveyard.crashes) == (["cut off"], [])
    assert graveyard.activity.busy == 0


@pytest.mark.parametrize(("failure", "count"), [(LAST, 1), (SHUTDOWN, 0)])
async def test_what_is_left_over_is_no_dead_letter(failure: Failure, count: int) -> None:
    """It is handed to the sink, so that it is not lost, but not kept."""
    letters: list[object] = []
    graveyard = Graveyard(lambda letter: letters.append(letter.value))
    graveyard.bury("x", failure)
    assert letters == ["x"]
    assert len(graveyard.dead_letters.last) == count


@pytest.mark.parametrize("sink", [refuse, refuse_late])
async def test_a_letter_that_its_sink_does_not_have_is_not_among_the_last(sink: DeadLetterSink) -> None:
    """It is no dead letter, but left over (law N1)."""
    graveyard = Graveyard(sink)
    graveyard.bury("x")
    await asyncio.sleep(5)
    assert not graveyard.dead_letters.last


async def test_a_sink_that_somebody_cancels_crashes_the_topology() -> None:
    """Its letter has not arrived, and nobody would hear of that (law N3)."""
    graveyard = Graveyard(slow)
    graveyard.bury("x")
    (burying,) = graveyard.burials.letters
    await asyncio.sleep(1)
    burying.cancel()
    await asyncio.sleep(5)
    assert [type(each) for each in graveyard.crashes] == [StrayCancellation]
    assert (graveyard.buried, graveyard.unkept, graveyard.activity.busy) == ([], ["x"], 0)
