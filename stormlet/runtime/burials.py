"""Messages of one spout task on their way to the dead letters (law S6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.errors import StrayCancellation
from stormlet.runtime.cancellation import all_ended, check_stray
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.messages import Message
from stormlet.runtime.owners import Owner


class Burials:
    """Hands letters over, and says when the dead letters have them."""

    def __init__(
        self, owner: Owner, dead_letters: DeadLetters, buried: Callable[[Message, Failure], None]
    ) -> None:
        self._owner = owner
        self._dead_letters = dead_letters
        self._buried = buried
        self._letters: dict[asyncio.Task[None], DeadLetter] = {}
        self._closing = False

    def __len__(self) -> int:
        return len(self._letters)

    @property
    def letters(self) -> Mapping[asyncio.Task[None], DeadLetter]:
        """Those that are being handed over, by what does so."""
        return self._letters

    def bury_message(self, message: Message, failure: Failure) -> None:
        """Give up a message that the engine has kept; what a stop leaves over is no dead letter, and only handed to the
        sink (law S5)."""
        owner, letter = self._owner, _letter(self._owner.plan.component, message, failure)
        owner.doing = "dead_letters"
        try:
            pause = self._dead_letters.hand_over(letter)
        except (Exception, asyncio.CancelledError) as error:  # a restart would not bring the message back
            owner.engine.crashed(owner, error)
            return
        if pause is None:
            self._arrived(letter)
            self._buried(message, failure)
            return
        burying = owner.engine.loop.create_task(
            self._await(pause, letter, message, failure), name=f"{owner.plan.name} dead_letters"
        )
        self._letters[burying] = letter
        owner.engine.activity.begin()
        burying.add_done_callback(partial(owner.guarded, self._ended))

    async def bury(self, letter: DeadLetter) -> None:
        """Give a message of a ``Spout`` class to the dead letters."""
        pause = self._dead_letters.hand_over(letter)
        if pause is not None:
            await pause
        self._arrived(letter)

    async def close(self) -> None:
        """The task ends: what has not arrived is told by the log, and left over."""
        self._closing = True
        for burying in self._letters:
            burying.cancel()
        await all_ended(list(self._letters))

    def _arrived(self, letter: DeadLetter) -> None:
        """The sink has it; what a stop leaves over is no dead letter, and only handed to the sink (law S5)."""
        if letter.failure.kind is not FailureKind.SHUTDOWN:
            self._dead_letters.note(self._owner.plan, letter)

    async def _await(
        self, pause: Awaitable[None], letter: DeadLetter, message: Message, failure: Failure
    ) -> None:
        try:
            await pause
        except asyncio.CancelledError as error:
            check_stray(error)
            raise
        self._arrived(letter)
        self._buried(message, failure)

    def _ended(self, burying: asyncio.Task[None]) -> None:
        owner, letter = self._owner, self._letters.pop(burying)
        if burying.cancelled():
            owner.engine.failures.unkept(owner.plan, letter)
            if not self._closing and not owner.engine.host_leaves():
                owner.engine.crashed(owner, StrayCancellation("somebody has cancelled the sink's coroutine"))
        elif (error := burying.exception()) is not None:
            owner.engine.crashed(owner, error)
        owner.engine.activity.end()
        owner.attend_soon()


def _letter(component: str, message: Message, failure: Failure) -> DeadLetter:
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
