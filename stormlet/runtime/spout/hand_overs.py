"""The messages of one spout task that are given up: on their way to the dead letters (law S6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import iscoroutine

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.errors import StrayCancellation
from stormlet.model.plan import TaskPlan
from stormlet.runtime.context import CrashSite, Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.spout.messages import GivenUp, Message
from stormlet.runtime.usercode import UserCode, all_ended, check_stray


class HandOvers:
    """Hands letters over to the sink, which may take its time.

    A sink that raises crashes the topology: the message would be lost, and a restart of the task does not bring it
    back.
    """

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        user: UserCode,
        dead_letters: DeadLetters,
        arrived: Callable[[GivenUp], None],
    ) -> None:
        """``arrived`` takes the outcome of a message whose letter the sink has taken later."""
        self._plan = plan
        self._engine = engine
        self._user = user
        self._dead_letters = dead_letters
        self._arrived = arrived
        self._letters: dict[asyncio.Task[None], DeadLetter] = {}
        self._closing = False
        self.seconds = 0.0
        """Seconds for which the sink has held the loop, the coroutines that it gives back left out."""

    def __len__(self) -> int:
        return len(self._letters)

    @property
    def letters(self) -> Mapping[asyncio.Task[None], DeadLetter]:
        """Those that the sink has not taken yet, by the coroutine that hands each over."""
        return self._letters

    def give_up(self, message: Message, failure: Failure) -> bool:
        """Hand over a message that the engine has kept. Returns True if the sink has it; an asynchronous one will."""
        letter = letter_of(self._plan.component, message, failure)
        # A sink that holds the loop is then reported by its own name, and not by that of next_tuple.
        self._user.method = "dead_letters"
        try:
            pause = self._timed(letter)
        except (Exception, asyncio.CancelledError) as error:
            self._crash(error)
            return False
        if pause is None:
            self._note(letter)
            return True
        # In a coroutine of its own, for the spout goes on meanwhile; one slow letter holds up no other.
        handing_over = self._engine.loop.create_task(_taken(pause), name=f"{self._plan.name} dead_letters")
        self._letters[handing_over] = letter
        self._engine.activity.begin()
        outcome = GivenUp(message_id=message.message_id, failure=failure)
        handing_over.add_done_callback(partial(self._engine.guarded, self._plan, self._ended, outcome, pause))
        return False

    async def hand_over(self, letter: DeadLetter) -> None:
        """Hand over a message that a ``Spout`` class gives up. Raises what the sink raises."""
        pause = self._timed(letter)
        if pause is not None:
            await pause
        self._note(letter)

    def _timed(self, letter: DeadLetter) -> Awaitable[None] | None:
        clock = self._engine.clock
        began = clock()
        try:
            return self._dead_letters.hand_over(letter)
        finally:
            self.seconds += clock() - began

    async def close(self) -> None:
        """The task ends: what the sink has not taken is logged, and left over."""
        self._closing = True
        for handing_over in self._letters:
            handing_over.cancel()
        await all_ended(list(self._letters))

    def _note(self, letter: DeadLetter) -> None:
        # What a stop leaves over is no dead letter, and only handed to the sink (law S5).
        if letter.failure.kind is not FailureKind.SHUTDOWN:
            self._dead_letters.note(self._plan, letter)

    def _ended(self, outcome: GivenUp, pause: Awaitable[None], handing_over: asyncio.Task[None]) -> None:
        engine, letter = self._engine, self._letters.pop(handing_over)
        if handing_over.cancelled():
            if iscoroutine(pause):
                pause.close()  # which has not begun if its task had no step
            # Its line in the log is all that is left of the letter, for the message is only counted as left over.
            engine.failures.unkept(self._plan, letter)
            if not self._closing and not engine.host_leaves():
                self._crash(StrayCancellation("somebody has cancelled the sink's coroutine"))
        elif (error := handing_over.exception()) is not None:
            self._crash(error)
        else:
            # In the same step as its removal above, so that the message is always in one account (law N1).
            self._note(letter)
            self._arrived(outcome)
        engine.activity.end()

    def _crash(self, error: BaseException) -> None:
        self._engine.crashed(CrashSite(self._plan, "dead_letters"), error)


async def _taken(pause: Awaitable[None]) -> None:
    try:
        await pause
    except asyncio.CancelledError as error:
        check_stray(error)
        raise


def letter_of(component: str, message: Message, failure: Failure) -> DeadLetter:
    """Return the dead letter of a message that the engine has kept."""
    return DeadLetter(
        component,
        message.value,
        message.message_id,
        message.attempts,
        failure,
        message.lineage.origin,
        message.history,
        message.stream,
    )
