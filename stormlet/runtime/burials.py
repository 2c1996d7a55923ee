"""Messages of one spout task on their way to the dead letters (law S6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.runtime.cancellation import check_stray
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
            pause = self._hand_over(letter)
        except Exception as error:  # a restart would not bring the message back
            owner.engine.crashed(owner, error)
            return
        if pause is None:
            self._buried(message, failure)
            return
        burying = owner.engine.loop.create_task(
            self._await(pause, message, failure), name=f"{owner.plan.name} dead_letters"
        )
        self._letters[burying] = letter
        owner.engine.activity.begin()
        burying.add_done_callback(self._ended)

    async def bury(self, letter: DeadLetter) -> None:
        """Give a message of a ``Spout`` class to the dead letters."""
        pause = self._dead_letters.bury(self._owner.plan, letter)
        if pause is not None:
            await pause

    def close(self) -> None:
        """The task ends: what has not arrived is told by the log."""
        for burying in self._letters:
            burying.cancel()

    def _hand_over(self, letter: DeadLetter) -> Awaitable[None] | None:
        if letter.failure.kind is FailureKind.SHUTDOWN:
            return self._dead_letters.hand_over(letter)
        return self._dead_letters.bury(self._owner.plan, letter)

    async def _await(self, pause: Awaitable[None], message: Message, failure: Failure) -> None:
        try:
            await pause
        except asyncio.CancelledError as error:
            check_stray(error)
            raise
        self._buried(message, failure)

    def _ended(self, burying: asyncio.Task[None]) -> None:
        owner, letter = self._owner, self._letters.pop(burying)
        owner.engine.activity.end()
        if burying.cancelled():
            owner.engine.failures.unkept(owner.plan, letter)
        elif (error := burying.exception()) is not None:
            owner.engine.crashed(owner, error)
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
