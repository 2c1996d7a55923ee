"""Emits an epoch until an attempt succeeds, then commits it; and the base of the two spouts that do so.

See :mod:`stormlet.spark.epochs` for the theory of operation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, cast

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.errors import NotExactlyOnce
from stormlet.model.components import Spout, SpoutCollector, TaskContext
from stormlet.spark.epochs import EpochAccount, Epochs, GivenUp, SourceKey
from stormlet.spark.frames import Origin
from stormlet.spark.threads import in_thread

logger = logging.getLogger(__name__)

FRUITLESS = 4
"""An epoch may fail this many times ``max_attempts`` in a row without a row being given up."""

Record = Callable[[EpochAccount], Awaitable[None]]
"""Records durably that the source has done this epoch."""


class EpochEmitter:
    """One epoch at a time, from its first row to its commit.

    The spout calls :meth:`begin`, :meth:`add` for each row that it reads, and :meth:`complete` after the last one.
    Its ``next_tuple`` returns :meth:`proceed` while there is something :attr:`to_do`. A row's message id is its
    origin.
    """

    def __init__(
        self, context: TaskContext, out: SpoutCollector[Any], source: SourceKey, record: Record
    ) -> None:
        config = context.config
        self._name = f"{context.topology}: {context.component}"
        self._epochs = context.shared.one(Epochs)
        self._out = out
        self._source = source
        self._record = record
        self._sync_letters = context.sync_dead_letters
        self._policy = ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
        self._random = Random(0)  # for the jitter of the pauses only
        self._loop = asyncio.get_running_loop()
        self._account: EpochAccount | None = None
        self._paused = False
        self._emit_from = 0.0
        self._replay_at: float | None = None
        self._committing: asyncio.Task[None] | None = None
        self._has_raised = False

    @property
    def account(self) -> EpochAccount | None:
        """The account of the epoch under way."""
        return self._account

    @property
    def to_do(self) -> bool:
        """True if :meth:`proceed` has something to do; otherwise the spout must read first."""
        return self._account is not None and (self._account.has_waiting or self._account.whole)

    @property
    def committable(self) -> bool:
        """True if the epoch can be committed, or a commit is under way or has an error to raise yet."""
        done = self._account is not None and self._account.done
        return done and not self._has_raised and not self._epochs.spoilt

    def begin(self, epoch: int) -> None:
        """Begin an epoch, to which the next rows belong."""
        self._account = EpochAccount(epoch, self._policy)
        self._paused = False
        self._replay_at = None
        self._account.begin(self._epochs.begin(epoch))

    def add(self, origin: Origin, value: object) -> None:
        """Add a row that was read."""
        self._running.add(origin, value)

    def add_all(self, origins: Sequence[Origin], values: Sequence[object]) -> None:
        """Add rows that were read together."""
        self._running.add_all(origins, values)

    def complete(self) -> None:
        """Note that the epoch has no more rows."""
        self._running.whole = True

    def acked(self) -> None:
        """Note that a row is done."""
        self._running.acked()

    def failed(self, origin: Origin, failure: Failure) -> None:
        """Note that a row has failed."""
        self._running.failed(origin, failure)
        if failure.kind is FailureKind.OVERFLOW:  # it waits, but only for room
            self._emit_from = self._loop.time() + self._policy.pause(1, self._random)

    def abandon(self) -> None:
        """Forget the epoch, which will begin anew from its first row. No tuple of it may be under way."""
        self._account = None
        self._paused = False
        self._replay_at = None

    def proceed(self, most: int) -> Awaitable[None] | None:
        """Emit at most ``most`` rows. When all are emitted, pause until everything is settled; then commit, or begin
        the next attempt. If the awaitable is cancelled, this may be called again.

        Raises :class:`~stormlet.errors.SparkFailed` if the epoch cannot be written, and
        :class:`~stormlet.errors.NotExactlyOnce` if its attempts go on failing.
        """
        if not self._running.emitted:
            self._emit(most)
        elif self._paused:
            return self._settle()
        else:  # not in the call that emits the last row, which may overflow and wait again
            self._paused = True
            self._out.pause_until_settled()
        return None

    async def commit(self) -> None:
        """Write the epoch, hand over its dead letters, and record it. A commit that has begun goes on if the wait for
        it is cancelled."""
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit(), name=f"{self._name} commit")
        try:
            await asyncio.shield(self._committing)
        except Exception:
            self._has_raised = True
            raise

    async def close(self, within: float | None) -> None:
        """End with the run: commit the epoch within ``within`` seconds if it is done; otherwise log that its rows are
        left."""
        if self.committable:
            await self._commit_within(within)
        elif self._account is not None and len(self._account):
            logger.warning(
                "%s: the run ends within epoch %d, of which nothing was written; its rows are left for the next run",
                self._name,
                self._account.number,
            )

    async def _commit_within(self, seconds: float | None) -> None:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self.commit()
        except TimeoutError:
            if not limit.expired():  # the write itself timed out
                raise
            logger.warning(
                "%s: the epoch was not written within drain_timeout=%g s, and is left for the next run",
                self._name,
                seconds,
            )
        finally:
            if self._committing is not None and not self._committing.done():
                self._committing.cancel()
                await asyncio.wait([self._committing])

    @property
    def _running(self) -> EpochAccount:
        assert self._account is not None, "no epoch was begun"
        return self._account

    def _emit(self, most: int) -> None:
        account = self._running
        if self._loop.time() < self._emit_from:
            return
        rows = account.next(most)
        origins = list(rows)
        self._out.emit_many(
            list(rows.values()), message_ids=origins, origins=origins, attempt=account.attempt
        )

    async def _settle(self) -> None:
        account = self._running
        if account.done:
            await self.commit()
        else:
            await self._wait(account)
            account.begin(self._epochs.begin(account.number))
        self._paused = False
        self._out.wake()

    async def _wait(self, account: EpochAccount) -> None:
        if self._replay_at is None:
            self._check_progress(account)
            pause = self._policy.pause(account.attempt, self._random)
            self._replay_at = self._loop.time() + pause
            logger.warning(
                "%s: attempt %d at epoch %d has failed for %d of its %d rows; they are all emitted again in %.3g s, "
                "except those that were given up",
                self._name,
                account.attempt,
                account.number,
                account.failed_rows,
                len(account),
                pause,
            )
        await asyncio.sleep(self._replay_at - self._loop.time())
        self._replay_at = None

    def _check_progress(self, account: EpochAccount) -> None:
        if account.fruitless >= FRUITLESS * self._policy.max_attempts:
            raise NotExactlyOnce(
                f"{self._name}: epoch {account.number} has failed {account.fruitless} times in a row, each time for "
                f"other rows, the last time for {account.failed_rows} of {len(account)}; have the bolt that fails them "
                f"try again by itself, or make epochs smaller"
            )

    async def _commit(self) -> None:
        account = self._running
        await self._epochs.commit(self._source)
        letters = list(account.given_up())
        for letter in letters:
            await self._bury(letter)
        if letters and self._sync_letters is not None:  # first: the record counts them as done
            await in_thread(self._sync_letters, "stormlet dead letters")
        await self._record(account)
        self._account = self._committing = None

    async def _bury(self, letter: GivenUp) -> None:
        await self._out.dead_letter(
            letter.value,
            letter.history[-1],
            message_id=letter.origin,
            attempts=letter.attempts,
            origin=letter.origin,
            history=letter.history,
        )


class EpochSpout(Spout[object]):
    """Base of the spouts that give epochs. They make :attr:`emitter` when they are opened."""

    needs_acks = True
    single_task = True
    restartable = False  # it replays by itself, and the next run goes on with the epoch that was not recorded
    resumes = True
    gives_epochs = True

    emitter: EpochEmitter

    def ack(self, message_id: object) -> None:
        """Note that a row is done in this attempt."""
        self.emitter.acked()

    def fail(self, message_id: object, failure: Failure) -> None:
        """Note that a row has failed, and with it this attempt."""
        self.emitter.failed(cast("Origin", message_id), failure)
