"""Messages on their way to the dead letters (law S6)."""

from __future__ import annotations

import asyncio
import gc
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from stormlet import DeadLetter, Failure, FailureKind, StrayCancellation
from stormlet.core.tuples import PLAIN
from stormlet.runtime.dead_letters import DeadLetters, DeadLetterSink
from stormlet.runtime.slices import Activity
from stormlet.runtime.spout.hand_overs import HandOvers
from stormlet.runtime.spout.messages import GivenUp, Message
from stormlet.runtime.usercode import UserCode
from tests.helpers import now

pytestmark = pytest.mark.simulated_time

LAST = Failure(FailureKind.FAILED, reason="no use")
SHUTDOWN = Failure(FailureKind.SHUTDOWN)


class Given:
    """The hand-overs of a spout task, with a sink, and what comes of them."""

    def __init__(self, sink: DeadLetterSink) -> None:
        self.at_once: list[object] = []
        self.arrived: list[tuple[object, float]] = []
        self.crashes: list[BaseException] = []
        self.unkept: list[object] = []
        self.activity = Activity()
        failures: Any = SimpleNamespace(
            given_up=lambda plan, letter: None,
            unkept=lambda plan, letter: self.unkept.append(letter.value),
        )
        engine: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            clock=asyncio.get_running_loop().time,
            activity=self.activity,
            failures=failures,
            crashed=lambda culprit, error: self.crashes.append(error),
            host_leaves=lambda: False,
            guarded=lambda plan, step, *arguments: step(*arguments),
        )
        plan: Any = SimpleNamespace(component="spout", name="spout[0]")
        self.user = UserCode()
        self.dead_letters = DeadLetters(sink, failures)
        self.hand_overs = HandOvers(plan, engine, self.user, self.dead_letters, self._arrived)

    def _arrived(self, outcome: GivenUp) -> None:
        self.arrived.append((outcome.message_id, now()))

    def give_up(self, value: object, failure: Failure = LAST) -> None:
        message = Message(value, "words", None, PLAIN, message_id=value)
        message.failed(failure, counts=failure is LAST)
        if self.hand_overs.give_up(message, failure):
            self.at_once.append(value)


async def slow(letter: DeadLetter) -> None:
    await asyncio.sleep(2)


async def test_a_letter_says_all_that_is_known() -> None:
    """The sink gets it before the message is released, which a plain sink has at once."""
    letters: list[DeadLetter] = []
    given = Given(letters.append)
    given.give_up("x")
    assert letters == [DeadLetter("spout", "x", "x", 1, LAST, None, (LAST,), "words")]
    assert (given.at_once, given.arrived, given.user.method) == (["x"], [], "dead_letters")
    assert (len(given.hand_overs), given.activity.busy) == (0, 0)


async def test_an_asynchronous_sink_is_awaited() -> None:
    """Until it has returned the letter is on its way, which keeps the topology busy; then the outcome arrives."""
    given = Given(slow)
    given.give_up("x")
    await asyncio.sleep(1)
    assert [letter.value for letter in given.hand_overs.letters.values()] == ["x"]
    assert (given.arrived, given.activity.busy) == ([], 1)
    await asyncio.sleep(2)
    assert (given.at_once, given.arrived) == ([], [("x", 2)])
    assert (len(given.hand_overs), given.activity.busy) == (0, 0)


async def test_letters_are_handed_over_beside_each_other() -> None:
    """One that takes long holds up no other."""

    async def slow_first(letter: DeadLetter) -> None:
        await asyncio.sleep(5 if letter.value == "a" else 1)

    given = Given(slow_first)
    given.give_up("a")
    given.give_up("b")
    await asyncio.sleep(10)
    assert given.arrived == [("b", 1), ("a", 5)]


def refuse(letter: DeadLetter) -> None:
    raise OSError("the disk is full")


async def refuse_late(letter: DeadLetter) -> None:
    await slow(letter)
    refuse(letter)


@pytest.mark.parametrize("sink", [refuse, refuse_late])
async def test_a_sink_that_raises_crashes_the_topology(sink: DeadLetterSink) -> None:
    """The message is not released: it is left over, and not lost."""
    given = Given(sink)
    given.give_up("x")
    await asyncio.sleep(5)
    assert [type(each) for each in given.crashes] == [OSError]
    assert (given.arrived, given.unkept, given.activity.busy) == ([], [], 0)


async def test_a_sink_that_lets_a_stray_cancellation_out_has_failed() -> None:
    """What it awaited was cancelled by somebody else; nobody has cancelled the sink."""

    async def await_the_cancelled(letter: DeadLetter) -> None:
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled

    given = Given(await_the_cancelled)
    given.give_up("x")
    await asyncio.sleep(5)
    assert [type(each) for each in given.crashes] == [StrayCancellation]
    assert (given.arrived, given.unkept) == ([], [])


async def test_the_end_cuts_off_what_has_not_arrived() -> None:
    """The log has each letter that its sink had not kept, and only those."""
    given = Given(slow)
    given.give_up("kept")
    await asyncio.sleep(1.5)
    given.give_up("cut off")
    await asyncio.sleep(1)
    await given.hand_overs.close()
    assert given.arrived == [("kept", 2)]
    assert (given.unkept, given.crashes) == (["cut off"], [])
    assert given.activity.busy == 0


async def test_an_end_before_the_first_step_of_the_sink_leaves_nothing_unawaited() -> None:
    """Its coroutine is closed; Python would warn of one that never ran."""
    given = Given(slow)
    given.give_up("x")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        await given.hand_overs.close()
        gc.collect()
    assert (given.unkept, [str(each.message) for each in warned]) == (["x"], [])


@pytest.mark.parametrize(("failure", "count"), [(LAST, 1), (SHUTDOWN, 0)])
async def test_what_is_left_over_is_no_dead_letter(failure: Failure, count: int) -> None:
    """It is handed to the sink, so that it is not lost, but not kept."""
    letters: list[object] = []
    given = Given(lambda letter: letters.append(letter.value))
    given.give_up("x", failure)
    assert letters == ["x"]
    assert len(given.dead_letters.last) == count


@pytest.mark.parametrize("sink", [refuse, refuse_late])
async def test_a_letter_that_its_sink_does_not_have_is_not_among_the_last(sink: DeadLetterSink) -> None:
    """It is no dead letter, but left over (law N1)."""
    given = Given(sink)
    given.give_up("x")
    await asyncio.sleep(5)
    assert not given.dead_letters.last


async def test_a_sink_that_somebody_cancels_crashes_the_topology() -> None:
    """Its letter has not arrived, and nobody would hear of that (law N3)."""
    given = Given(slow)
    given.give_up("x")
    (handing_over,) = given.hand_overs.letters
    await asyncio.sleep(1)
    handing_over.cancel()
    await asyncio.sleep(5)
    assert [type(each) for each in given.crashes] == [StrayCancellation]
    assert (given.arrived, given.unkept, given.activity.busy) == ([], ["x"], 0)
