"""Attempts at the open epoch: one that is spoilt is forgotten, and its messages are emitted again (law X7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.core.shortened import counted
from stormlet.core.state.lengths import Length
from stormlet.errors import EpochFailed
from stormlet.model.configuration import Configuration
from stormlet.report.failures import log_fields
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.context import Engine
from stormlet.runtime.epoch import CutEpoch, OpenEpoch
from stormlet.runtime.epochs.sources import Sources
from stormlet.runtime.epochs.states import KeptState
from stormlet.runtime.epochs.wave import Wave
from stormlet.runtime.spout.messages import Message

logger = logging.getLogger(__name__)

IN_VAIN: Final = 4
"""An epoch that its source has cut may fail this many times ``max_attempts`` in a row without a message being given
up."""
SHUTDOWN: Final = Failure(FailureKind.SHUTDOWN)


class Attempts:
    """The attempts at the epochs of one run."""

    def __init__(
        self,
        engine: Engine,
        epoch: OpenEpoch,
        configuration: Configuration,
        state: KeptState,
        sources: Sources,
        wave: Wave,
        bolts: Sequence[BoltTask],
        length: Length,
        look_again: Callable[[], None],
        crashed: Callable[[str, BaseException], None],
    ) -> None:
        """``look_again`` has the conductor look at the run; ``crashed`` takes the name of an epoch that cannot be
        done, and why."""
        self._loop = engine.loop
        self._topology = engine.plan.description.name
        self._epoch = epoch
        self._most = configuration.max_attempts
        self._policy = ReplayPolicy(
            configuration.max_attempts, configuration.replay_delay, configuration.replay_delay_max
        )
        self._random = Random(f"{engine.seed}/epochs")
        self._state = state
        self._sources = sources
        self._wave = wave
        self._bolts = bolts
        self._length = length
        self._look_again = look_again
        self._crashed = crashed
        self._waiting: Sequence[Message] = ()
        """Messages of an epoch that is tried again as a whole, after a pause."""
        self._pause: asyncio.TimerHandle | None = None
        self.last_failure: Failure | None = None
        """The last failure that no message is to blame for."""

    @property
    def waiting(self) -> int:
        """The number of messages that are emitted again after a pause."""
        return len(self._waiting)

    def forget_waiting(self) -> None:
        """Forget these: their source has them again."""
        self._waiting = ()

    def stop(self) -> None:
        """The epoch is over, or the run."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def repeat(self) -> None:
        """Forget the attempt, and begin another one, of the messages that the account names."""
        epoch, account = self._epoch, self._epoch.account
        self._state.roll_back()
        epoch.attempt.begin()
        self._length.repeat()
        for bolt in self._bolts:
            bolt.forget_finish()
        self._wave.begin_attempt()
        messages = account.repeat()
        # What the sources give from now on belongs to later epochs, also where all that is left was given up.
        epoch.closing = len(account) > 0
        if account.fruitless >= self._most:
            self._crashed(name_of(account.number), self._failed_for_good())
        elif account.is_whole and account.vain >= IN_VAIN * self._most:
            self._crashed(name_of(account.number), self._failed_in_vain())
        elif account.is_whole:
            self._emit_after_a_pause(messages)
        else:
            self.emit(messages, later=account.is_lone)

    def give_back(self, cut: CutEpoch) -> None:
        """Forget what a source has cut, and has again; what others have emitted beside that is tried again."""
        failure = cut.returned or SHUTDOWN
        self._sources.take_back(cut.spout, self._epoch.account, failure)
        self._epoch.cut = None
        self.repeat()
        cut.tell(failure)

    def emit(self, messages: Sequence[Message], *, later: bool = False) -> None:
        """Have them emitted again, in an attempt at a lone message after a pause (law X7)."""
        self._sources.emit(messages, later=later)
        if not messages:
            self._look_again()

    def _emit_after_a_pause(self, messages: Sequence[Message]) -> None:
        account = self._epoch.account
        pause = self._policy.pause(account.attempt - 1, self._random)
        logger.warning(
            "%s of topology %r has failed, attempt %s; its %s emitted again in %.3g s, except those that "
            "were given up",
            name_of(account.number),
            self._topology,
            f"{account.attempt - 1:,}",
            counted(len(account), "message is", "messages are"),
            pause,
            extra=log_fields(self._topology),
        )
        self._waiting = messages
        self._pause = self._loop.call_later(pause, self._emit_waiting)

    def _emit_waiting(self) -> None:
        messages, self._waiting, self._pause = self._waiting, (), None
        self.emit(messages)

    def _failed_in_vain(self) -> EpochFailed:
        account = self._epoch.account
        return EpochFailed(
            f"epoch {account.number} has failed {account.vain} times in a row, each time for other messages of "
            f"{len(account)}; have the bolt that fails them try again by itself, or have its source make it smaller"
        )

    def _failed_for_good(self) -> EpochFailed:
        account, failure = self._epoch.account, self.last_failure
        error = EpochFailed(
            f"epoch {account.number} has failed {account.fruitless} times in a row, without a message to blame: "
            f"{failure}"
        )
        error.__cause__ = None if failure is None else failure.exception
        return error


def name_of(epoch: int) -> str:
    """Return the name of an epoch, for people."""
    return f"epoch {epoch:,}"
