"""The keeper of the epochs: closes the open one, has it tried again or made durable, and tells of it (law X1 to X7).

Theory of operation
-------------------
An epoch is *closing* when it is full, when its time is up (:mod:`~stormlet.core.state.lengths`), when the host waits
for something and no source has anything now, or when it is spoilt. From then on the sources have no room, so that the
run comes to rest: the conductor finds everything settled, bolts that hold inputs flushed, and calls :meth:`end`.

1. A *spoilt* attempt is forgotten: the tables of all tasks with state are rolled back, the account says which messages
   the next attempt is made of, and their trackers emit them again.
2. Otherwise the epoch is *sealed*: positions of the sources and changes of the tables are gathered as one record. From
   that moment the next epoch is open, and messages flow again.
3. The record is *written* in a thread; or at once, under simulated time (law L16) and into memory. At most one is being
   written; the next epoch waits for that before it is sealed (law X4).
4. When it is durable, it is *told*: spouts hear of their acks, the host's trees are settled, dead letters go to their
   sink, and committers get its rows (law X3). The next epoch waits for the committers before it is sealed (law X4).

A source may *cut* epochs itself (law X8). While it emits what it has cut, it has room, so that the open epoch does not
end, and each attempt at it goes on to its end and is repeated as a whole. What such a source has back, as one of its
messages may not be given up, is forgotten. Without ``state=`` it is the source that makes its epochs durable: it is
told when the committers have had their rows, and brings the same epoch again if the process dies before.

A write that fails crashes the run. Nothing was told, and the store has everything up to the epoch before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import time
from typing import Final

from stormlet.core.progress import EpochState
from stormlet.core.shortened import counted
from stormlet.core.state.commits import Commit
from stormlet.core.state.committed import Committed
from stormlet.core.state.epochs import Closed
from stormlet.core.state.lengths import Length
from stormlet.core.state.states import State
from stormlet.core.trees import OpenTree
from stormlet.errors import StillHeld
from stormlet.model.configuration import Configuration
from stormlet.report.failures import log_fields
from stormlet.report.statistics import EpochStatistics, StateStatistics
from stormlet.runtime.acker.bookkeeper import Verdicts
from stormlet.runtime.bolt.committer import CommitterTask
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.epoch import CutEpoch, OpenEpoch
from stormlet.runtime.epochs.attempts import Attempts, name_of
from stormlet.runtime.epochs.letters import hand_over, kept
from stormlet.runtime.epochs.sources import Sources
from stormlet.runtime.epochs.states import KeptState
from stormlet.runtime.epochs.wave import LEAST_PAUSE, Wave
from stormlet.runtime.epochs.writer import EpochWriter
from stormlet.runtime.slow_ends import PATIENCE, log_slow_epoch
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.positions import CutPosition
from stormlet.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

COME_AGAIN: Final = "the next run begins with it"
LOST: Final = "it is lost, as there is no state="


class EpochKeeper:
    """Keeps the epochs of one run."""

    def __init__(
        self,
        engine: Engine,
        epoch: OpenEpoch,
        configuration: Configuration,
        state: KeptState,
        tasks: Tasks,
        verdicts: Verdicts,
        look_again: Callable[[], None],
        crashed: Callable[[str, str, BaseException], None],
        sync_letters: Callable[[], None] | None,
    ) -> None:
        """``verdicts`` are those of the epochs' own trees; ``look_again`` has the conductor look at the run;
        ``crashed`` takes what went wrong, of which epoch, and the error; ``sync_letters`` has the device hold the dead
        letters that their sink has."""
        self._engine = engine
        self._loop = engine.loop
        self._topology = engine.plan.description.name
        self._epoch = epoch
        self._configuration = configuration
        self._state = state
        self._tasks = tasks
        self._sources = Sources(tasks)
        self._committers = [task for task in tasks.all_bolts if isinstance(task, CommitterTask)]
        description = engine.plan.description
        by_epochs = [id for id, spec in description.bolts.items() if spec.by_epochs]
        self._wave = Wave(engine.plan.order, tasks.bolts, by_epochs, state)
        self._verdicts = verdicts
        self._look_again = look_again
        self._crashed = crashed
        self._length = Length(configuration.epoch_seconds)
        self._attempts = Attempts(
            engine,
            epoch,
            configuration,
            state,
            self._sources,
            self._wave,
            tasks.all_bolts,
            self._length,
            look_again,
            partial(crashed, "the end"),
        )
        self._timer: asyncio.TimerHandle | None = None
        """For the end of an epoch that has messages."""
        self._notice: asyncio.TimerHandle | None = None
        """For the log of an epoch that does not end."""
        self._began = 0.0
        """The time on the loop at which it began."""
        self._alarm: asyncio.TimerHandle | None = None
        """For the first timer of a bolt that is due."""
        self._alarm_for = 0.0
        self._has_failed = False
        """True once an epoch was not written: the run crashes, and none follows."""
        # An epoch that ends with the run does not say of a letter that it is there.
        self._sync_letters = sync_letters if state.durable else None
        self._has_unsynced = bool(state.stored.letters)
        """True if the sink has got dead letters since they were synced last."""
        self._has_delivered = False
        """True once the dead letters of earlier runs have their sink."""
        self._durable = state.stored.epoch
        """The last epoch that is durable."""
        self._wall_clock = engine.loop.time if engine.simulated else time
        self._writer = EpochWriter(
            state.store,
            engine.loop,
            engine.activity,
            self._not_written,
            f"{self._topology} state",
            inline=engine.simulated or not state.durable,
        )
        self._committed_at = state.stored.closed_at
        self._untold: Callable[[], None] | None = None
        """Tells the sources of an epoch when its committers have had it, where it is durable by that."""
        self._ended_with = 0
        """The number of messages of the epoch when bolts were first told of its end."""
        epoch.happened = self._happened
        epoch.cut_changed = self._cut_changed
        verdicts.notify = self._verdicts_came
        for committer in self._committers:
            committer.notify = self._delivered

    async def deliver_letters(self, sink: DeadLetters) -> None:
        """Hand over the dead letters of earlier runs that their sink may not have; raises what it raises."""
        await hand_over([letter for _, letter in self._state.stored.letters], sink)
        self._has_delivered = True

    def begin(self) -> None:
        """The run begins."""
        self._state.tell_time(self._wall_clock())
        self._wait_for_timers()

    @property
    def state(self) -> EpochState:
        """The open epoch as it is now."""
        epoch = self._epoch
        if epoch.abandoned or not (epoch.spoilt or self._has_work):
            return EpochState.NONE
        return EpochState.CLOSING if epoch.room <= 0 else EpochState.OPEN

    @property
    def pending(self) -> int:
        """Open trees that belong to no message, messages that are to be emitted again, and committers that have not had
        an epoch: the next one waits for them (law X4)."""
        backlog = self._sources.backlog + self._attempts.waiting
        return self._epoch.own + backlog + sum(task.is_due for task in self._committers)

    @property
    def _has_work(self) -> bool:
        epoch = self._epoch
        if len(epoch.account) or epoch.cut is not None or self._state.has_changes:
            return True
        return self._wave.are_timers_due(self._wall_clock())

    def quiet(self) -> None:
        """Nothing moves now. An epoch that the host waits for has no reason to go on."""
        self._wait_for_timers()
        if len(self._epoch.account) and self._sources.is_awaited:
            self._epoch.closing = True

    def end(self) -> None:
        """Nothing is under way: try the epoch again, or make it durable."""
        if self._has_failed:
            # One that is durable all the same must not be overtaken by the next.
            return
        held = next((bolt for bolt in self._tasks.all_bolts if bolt.holds_inputs), None)
        cut = self._epoch.cut
        if held is not None:
            held.crash(StillHeld("it still holds inputs at the end of an epoch; settle them in flush"))
        elif cut is not None and not (cut.ended and cut.returned is None):
            self._give_back(cut)
        elif self._epoch.spoilt or self._is_too_late():
            self._repeat()
        elif joining := self._epoch.account.rejoin():
            self._attempts.emit(joining)
        elif not self._moves_wave():
            self._seal()

    def _is_too_late(self) -> bool:
        """Return True if a source has emitted after bolts were told of the end: its message is of a later epoch, and
        the attempt is repeated without it. It joins an epoch that has no message of its own, as that cannot be cut."""
        account = self._epoch.account
        if not self._wave.has_acted or len(account) <= self._ended_with:
            return False
        if self._ended_with:
            account.spoil(account.messages[self._ended_with])
        else:
            account.spoil_by_newcomers()
        return True

    def _moves_wave(self) -> bool:
        if not self._wave.has_begun:
            self._ended_with = len(self._epoch.account)
        return self._wave.moves(self._wall_clock())

    def is_ending(self) -> bool:
        """Return True once bolts were told of the end of the epoch."""
        return self._wave.has_acted

    def statistics(self) -> EpochStatistics:
        """The epoch that is durable, and the states."""
        return EpochStatistics(
            self._durable,
            self.age,
            self._sources.withheld,
            {str(each.id): StateStatistics(each.size, each.size_in_bytes) for each in self._state.states},
            self._state.durable or bool(self._state.outgoing),
        )

    @property
    def durable(self) -> int:
        """The last epoch that is durable."""
        return self._durable

    @property
    def age(self) -> float | None:
        """Seconds since that was committed; None before the first."""
        return None if self._committed_at is None else max(self._wall_clock() - self._committed_at, 0.0)

    def look(self, state: State) -> Committed:
        """A view of what is durable of a state (law X3, K8). Raises what the write of an epoch has raised."""
        # Its values are in the tables already. This holds up the loop for one write, once for a state.
        self._writer.block()
        state.remember()
        return Committed(state)

    async def close(self) -> None:
        """The run ends: wait for what is being written."""
        self._stop_timers()
        await self._writer.wait()
        self._log_undelivered()
        try:
            await self._writer.close(self._note_delivered)
        except Exception as error:  # the next run brings again what could not be noted
            self._crashed("the end", name_of(self._durable), error)

    def _log_undelivered(self) -> None:
        comes_again = self._state.durable or self._state.by_source
        for committer, number, rows in self._state.undelivered():
            logger.log(
                logging.WARNING if comes_again else logging.ERROR,
                "committer %r has not committed %s (%s); %s",
                committer,
                self._state.epoch_of(number),
                counted(rows, "row"),
                COME_AGAIN if comes_again else LOST,
                extra=log_fields(self._topology, committer),
            )

    def _note_delivered(self) -> None:
        told = self._has_delivered and self._sources.has_told
        if told and self._has_unsynced and self._sync_letters is not None:
            self._sync_letters()
        self._state.store.note_delivered(self._state.delivered, self._durable if told else 0)

    # What happens in the epoch.

    def _happened(self) -> None:
        account = self._epoch.account
        if account.is_broken_off and not account.is_whole:
            self._sources.forget_attempt()
        elif self._timer is None:
            now = self._loop.time()
            self._state.tell_time(self._wall_clock())
            self._length.begin(now)
            self._timer = self._loop.call_later(self._configuration.epoch_seconds, self._time_is_up)
            if self._notice is None:
                self._began = now
                self._notice = self._loop.call_later(self._length.seconds + PATIENCE, self._lasts_long)

    def _cut_changed(self) -> None:
        cut = self._epoch.cut
        if cut is not None and cut.returned is not None:
            self._attempts.forget_waiting()
            self._sources.forget_attempt()
        self._look_again()

    def _lasts_long(self) -> None:
        self._notice = None
        if self._has_work and not self._epoch.abandoned:
            seconds = self._loop.time() - self._began
            log_slow_epoch(self._topology, self._epoch.account.number, seconds, self._tasks)
            self._notice = self._loop.call_later(PATIENCE, self._lasts_long)

    def _time_is_up(self) -> None:
        self._timer = None
        left = 0.0 if self._sources.is_awaited else self._length.left(self._loop.time())
        if self._epoch.own and not self._has_work:
            self._happened()  # nothing has reached state yet
        elif left:
            # Looked at now and then, as the host may begin to wait.
            self._timer = self._loop.call_later(
                min(left, self._configuration.epoch_seconds), self._time_is_up
            )
        else:
            self._close()

    def _close(self) -> None:
        # One that is empty would not end, and the sources would wait for that.
        if self._has_work:
            self._epoch.closing = True
            self._length.close(self._loop.time())
            self._look_again()

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._alarm, self._notice):
            if timer is not None:
                timer.cancel()
        self._timer = self._alarm = self._notice = None
        self._attempts.stop()

    def _verdicts_came(self) -> None:
        trees = self._verdicts.trees
        while trees:
            self._settle_own(trees.popleft())

    def _settle_own(self, tree: OpenTree) -> None:
        self._epoch.own -= 1
        if tree.failure is not None:
            self._attempts.last_failure = tree.failure
            self._epoch.spoil()
        elif not len(self._epoch.account):
            self._epoch.account.fruitless = 0  # there is no commit that would end the row of failures

    # Timers.

    def _wait_for_timers(self) -> None:
        due = self._wave.next_timer()
        if due is not None and (self._alarm is None or due < self._alarm_for):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_for = due
            # At most ten times a second, however many there are (law K7).
            pause = max(due - self._wall_clock(), LEAST_PAUSE)
            self._alarm = self._loop.call_later(pause, self._alarm_rings)

    def _alarm_rings(self) -> None:
        self._alarm = None
        self._close()
        self._wait_for_timers()  # again, if the two clocks differ or it was cancelled

    # Another attempt.

    def _repeat(self) -> None:
        self._attempts.repeat()
        self._wait_for_timers()

    def _give_back(self, cut: CutEpoch) -> None:
        self._attempts.give_back(cut)
        self._wait_for_timers()
        self._sources.room_came()

    # The commit.

    def _seal(self) -> None:
        epoch, cut = self._epoch, self._epoch.cut
        closed = epoch.account.close()
        try:
            commit = self._commit_of(closed, cut)
        except Exception as error:  # such as a message id that cannot be kept
            self._not_written(closed.number, error)
            return
        epoch.attempt.begin()
        epoch.closing, epoch.cut = False, None
        self._wave.begin_attempt()
        self._stop_timers()
        self._length.end(self._loop.time())
        # The commit says that the sink has the letters of the epochs before.
        first = self._sync_letters if self._has_unsynced else None
        self._has_unsynced = bool(commit.letters)
        self._writer.write(commit, partial(self._tell, closed, cut, commit.closed_at), first)
        self._attempts.emit(epoch.account.resume())
        if len(epoch.account):
            self._happened()
        self._wait_for_timers()
        self._sources.room_came()

    def _commit_of(self, closed: Closed[Message], cut: CutEpoch | None) -> Commit:
        positions = self._sources.positions_after(closed.messages)
        if cut is not None:
            name = self._sources.position_name(cut.spout)
            positions[name] = CutPosition(cut.line, cut.number).encoded()
        sealed = self._state.seal(closed.number, cut)
        return Commit(
            closed.number,
            self._wall_clock(),
            positions,
            sealed.appends,
            sealed.outbox,
            delivered=self._state.delivered,
            letters=[
                kept(letter, self._wall_clock()) for letter in self._sources.letters_of(closed.given_up)
            ],
            # What is under way keeps an epoch open, and a letter that its sink does not have is under way.
            letters_delivered=closed.number - 1,
            tables=sealed.tables,
            history=self._configuration.history if self._state.durable else 0.0,
        )

    def _not_written(self, epoch: int, error: Exception) -> None:
        self._has_failed = True
        self._crashed("the commit", name_of(epoch), error)

    def _tell(self, closed: Closed[Message], cut: CutEpoch | None, closed_at: float) -> None:
        self._durable = closed.number
        self._committed_at = closed_at
        self._state.told()
        if self._state.by_source:
            self._untold = partial(self._tell_sources, closed, cut)
        else:
            self._tell_sources(closed, cut)
        for committer in self._committers:
            committer.deliver()
        self._tell_untold()

    def _tell_sources(self, closed: Closed[Message], cut: CutEpoch | None) -> None:
        self._sources.tell(closed.messages)
        if cut is not None:
            cut.tell(None)

    def _delivered(self) -> None:
        self._tell_untold()
        self._look_again()

    def _tell_untold(self) -> None:
        """Tell the sources whose epochs are durable when their committers have had them."""
        if self._untold is not None and not any(task.is_due for task in self._committers):
            tell, self._untold = self._untold, None
            tell()
