"""The messages of one spout task that wait to be emitted again, or for the dead letter sink (law S6)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from heapq import heappop, heappush
from random import Random

import msgspec

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.errors import StrayCancellation
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.owners import Owner
from stormlet.runtime.usercode import all_ended, check_stray


class Waiting(msgspec.Struct, order=True, gc=False):
    """A message that waits for its time; the collector need not look into each of many (see
    :class:`~stormlet.core.ledger.OpenTree`)."""

    when: float
    number: int
    """No two are equal, so that messages are never compared."""
    message: Message


class Replays:
    """They wait for their time, and then, as ``due``, for room."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        policy: ReplayPolicy,
        random: Random,
        came_due: Callable[[], None],
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        self.due: deque[Message] = deque()
        """Those whose time has come."""
        self._loop = loop
        self._policy = policy
        self._random = random
        self._came_due = came_due
        self._guarded = guarded
        self._later: list[Waiting] = []
        self._scheduled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        return len(self._later) + len(self.due)

    def __iter__(self) -> Iterator[tuple[float, Message]]:
        """Each, in their order, and when it is due by the loop's clock."""
        yield from ((0.0, message) for message in self.due)
        yield from ((each.when, each.message) for each in sorted(self._later))

    def add(self, message: Message) -> None:
        """Have it wait for as long as the policy says after so many failures; in an outage, all that are pending
        do."""
        message.forget_frames()
        pause = self._policy.pause(message.failures, self._random)
        self._scheduled += 1
        heappush(self._later, Waiting(self._loop.time() + pause, self._scheduled, message))
        self._wait()

    def take_all(self) -> list[Message]:
        """None of them waits any more."""
        waiting = [message for _, message in self]
        self.due.clear()
        self._later.clear()
        return waiting

    def close(self) -> None:
        """The task ends: there are no more replays."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        """Have a timer for the first of them. One that comes no later stays, as many are added at a time."""
        if not self._later:
            return
        first = self._later[0].when
        if self._timer is None or first < self._timer_at:
            self.close()
            self._timer, self._timer_at = self._loop.call_at(first, self._guarded, self._come_due), first

    def _come_due(self) -> None:
        now = self._loop.time()
        self._timer = None
        while self._later and self._later[0].when <= now:
            self.due.append(heappop(self._later).message)
        self._wait()
        self._came_due()


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
