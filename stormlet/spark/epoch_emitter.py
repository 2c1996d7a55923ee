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
from stormlet.errors import EndOfStream, NotExactlyOnce
from stormlet.model.components import Spout, SpoutCollector, TaskContext
from stormlet.spark.epoch_account import EpochAccount, GivenUp
from stormlet.spark.epochs import Epochs, SealedEpoch, SourceKey
from stormlet.spark.frames import Origin
from stormlet.spark.threads import in_thread

logger = logging.getLogger(__name__)

FRUITLESS = 4
"""An epoch may fail this many times ``max_attempts`` in a row without a row being given up."""

Record = Callable[[], Awaitable[None]]
"""Records durably that the source has done an epoch."""
Seal = Callable[[int], Record]
"""Notes the source's position after the epoch of this number, and returns what will record it."""


class EpochEmitter:
    """One epoch at a time, from its first row to its seal, and the commit of the one before.

    The spout calls :meth:`begin`, :meth:`add` for each row that it reads, and :meth:`complete` after the last one.
    Its ``next_tuple`` returns :meth:`proceed` while there is something :attr:`to_do`, and :meth:`end` after the last
    epoch. A row's message id is its origin. ``seal`` is called when an epoch has succeeded; the next one may begin
    then.
    """

    def __init__(self, context: TaskContext, out: SpoutCollector[Any], source: SourceKey, seal: Seal) -> None:
        config = context.config
        self._name = f"{context.topology}: {context.component}"
        self._epochs = context.shared.one(Epochs)
        self._out = out
        self._source = source
        self._seal_source = seal
        self._sync_letters = context.sync_dead_letters
        self._policy = ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
        self._random = Random(0)  # for the jitter of the pauses only
        self._loop = asyncio.get_running_loop()
        self._account: EpochAccount | None = None
        self.acked: Callable[[], None]
        """Notes that a row of the epoch under way is done. It is the account's own, as it is called for each row."""
        self._paused = False
        self._emit_from = 0.0
        self._replay_at: float | None = None
        self._commit: asyncio.Task[None] | None = None
        """The commit under way, or the one that has failed."""
        self._has_raised = False

    @property
    def account(self) -> EpochAccount | None:
        """The account of the epoch under way."""
        return self._account

    @property
    def to_do(self) -> bool:
        """True if :meth:`proceed` has something to do or to raise; otherwise the spout must read first."""
        account = self._account
        return self._has_failed or (account is not None and (account.has_waiting or account.whole))

    @property
    def committing(self) -> bool:
        """True while an epoch is being written, and once that has failed."""
        return self._commit is not None

    def begin(self, epoch: int) -> None:
        """Begin an epoch, to which the next rows belong."""
        self._account = EpochAccount(epoch, self._policy)
        self.acked = self._account.acked
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
        """Emit at most ``most`` rows. When all are emitted, pause until everything is settled; then seal the epoch, or
        begin the next attempt. If the awaitable is cancelled, this may be called again.

        Raises :class:`~stormlet.errors.SparkFailed` if the epoch before cannot be written, and
        :class:`~stormlet.errors.NotExactlyOnce` if the attempts at this one go on failing.
        """
        if self._has_failed:
            return self.committed()
        if not self._running.emitted:
            self._emit(most)
        elif self._paused:
            return self._settle()
        else:  # not in the call that emits the last row, which may overflow and wait again
            self._paused = True
            self._out.pause_until_settled()
        return None

    async def committed(self) -> None:
        """Wait for the commit under way, if there is one, and raise its error. It goes on if the wait is cancelled."""
        if self._commit is None:
            return
        try:
            await asyncio.shield(self._commit)
        except Exception:
            self._has_raised = True
            raise

    def end(self) -> Awaitable[None]:
        """End after the last epoch: return the wait for its commit. Raises :class:`~stormlet.errors.EndOfStream` if
        that has ended."""
        if self._commit is None:
            raise EndOfStream
        return self.committed()

    async def close(self, within: float | None) -> None:
        """End with the run: within ``within`` seconds finish the commit under way, and commit the epoch if it is done;
        otherwise log that its rows are left."""
        try:
            if not self._has_raised and not self._epochs.spoilt:
                await self._commit_within(within)
        finally:
            await self._interrupt()
        if self._account is not None and len(self._account):
            logger.warning(
                "%s: the run ends within epoch %d, of which nothing was written; its rows are left for the next run",
                self._name,
                self._account.number,
            )

    async def _commit_within(self, seconds: float | None) -> None:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self._commit_all()
        except TimeoutError:
            if not limit.expired():  # the write itself timed out
                raise
            logger.warning(
                "%s: the epoch was not written within drain_timeout=%g s, and is left for the next run",
                self._name,
                seconds,
            )

    async def _interrupt(self) -> None:
        """Interrupt a commit that nobody waits for any more: the next run writes its epoch."""
        if self._commit is not None and not self._commit.done():
            self._commit.cancel()
            await asyncio.wait([self._commit])

    async def _commit_all(self) -> None:
        await self.committed()
        if self._account is not None and self._account.done:
            self._seal(self._account)
            await self.committed()

    @property
    def _has_failed(self) -> bool:
        """True if the commit of the last epoch has failed."""
        commit = self._commit
        return commit is not None and commit.done() and (commit.cancelled() or commit.exception() is not None)

    @property
    def _running(self) -> EpochAccount:
        assert self._account is not None, "no epoch was begun"
        return self._account

    def _emit(self, most: int) -> None:
        account = self._running
        if self._loop.time() < self._emit_from:
            return
        origins, values = account.next(most)
        self._out.emit_many(values, message_ids=origins, origins=origins, attempt=account.attempt)

    async def _settle(self) -> None:
        account = self._running
        if account.done:
            await self.committed()
            self._seal(account)
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

    def _seal(self, account: EpochAccount) -> None:
        """Begin to commit an epoch that is done; the one before must be committed."""
        commit = self._write(self._epochs.seal(), list(account.given_up()), self._seal_source(account.number))
        self._commit = asyncio.create_task(commit, name=f"{self._name} commit")
        self._commit.add_done_callback(self._ended)
        self._account = None

    def _ended(self, commit: asyncio.Task[None]) -> None:
        if commit is self._commit and not self._has_failed:
            self._commit = None
        self._out.wake()  # there may be an error to raise

    async def _write(self, epoch: SealedEpoch, letters: Sequence[GivenUp], record: Record) -> None:
        """Write the epoch, hand over its dead letters, and record it."""
        await self._epochs.write(self._source, epoch)
        for letter in letters:
            await self._bury(letter)
        if letters and self._sync_letters is not None:  # first: the record counts them as done
            await in_thread(self._sync_letters, "stormlet dead letters")
        await record()

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
