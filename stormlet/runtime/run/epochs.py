"""The keeper of the epochs: closes the open one, has it tried again or made durable, and tells of it (law X1 to X7).

Theory of operation
-------------------
An epoch is *closing* when it is full, when ``epoch_seconds`` have passed since its first message, when the host waits
for something and no source has anything now, or when it is spoilt. From then on the sources have no room, so that the
run comes to rest: the conductor finds everything settled, bolts that hold inputs flushed, and calls :meth:`end`.

1. A *spoilt* attempt is forgotten: the tables of all tasks with state are rolled back, the account says which messages
   the next attempt is made of, and their trackers emit them again.
2. Otherwise the epoch is *sealed*: positions of the sources and changes of the tables are gathered as one record. From
   that moment the next epoch is open, and messages flow again.
3. The record is *written* in a thread, or at once under simulated time (law L16). At most one is being written; the
   next epoch waits for that before it is sealed (law X4).
4. When it is durable, it is *told*: spouts hear of their acks, the host's trees are settled, dead letters go to their
   sink (law X3).

A write that fails crashes the run. Nothing was told, and the store has everything up to the epoch before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import time
from typing import TypeAlias

from stormlet.core.commits import Commit
from stormlet.core.epochs import Closed
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.progress import EpochState
from stormlet.core.timers import NAME
from stormlet.errors import EpochFailed, StillHeld
from stormlet.model.configuration import Configuration
from stormlet.runtime.acker.bookkeeper import Verdicts
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.epoch import OpenEpoch
from stormlet.runtime.run.kept_letters import hand_over, kept
from stormlet.runtime.run.states import KeptState, position_name
from stormlet.runtime.spout.epoch_tracker import EpochTracker
from stormlet.runtime.spout.hand_overs import letter_of
from stormlet.runtime.spout.messages import HostMessage, Message
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks

LEAST_PAUSE = 0.1
"""Seconds between two epochs that end for a timer alone, at least."""
Spout: TypeAlias = tuple[SpoutTask, EpochTracker]


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
    ) -> None:
        """``verdicts`` are those of the epochs' own trees; ``look_again`` has the conductor look at the run;
        ``crashed`` takes what went wrong, of which epoch, and the error."""
        self._engine = engine
        self._loop = engine.loop
        self._epoch = epoch
        self._configuration = configuration
        self._store = state.store
        self._state = state
        self._tasks = tasks
        self._spouts = [
            (task, task.tracker) for task in tasks.all_spouts if isinstance(task.tracker, EpochTracker)
        ]
        self._verdicts = verdicts
        self._look_again = look_again
        self._crashed = crashed
        self._timer: asyncio.TimerHandle | None = None
        """For the end of an epoch that has messages."""
        self._alarm: asyncio.TimerHandle | None = None
        """For the first timer of a bolt that is due."""
        self._alarm_for = 0.0
        self._wave: float | None = None
        """The time at which the epoch ends, once it does: it stands still from then on."""
        self._calls_timers = False
        """True if timers are called at its end."""
        self._last_wave = float("-inf")
        """The time at which timers were called last."""
        self._last_failure: Failure | None = None
        self._durable = state.stored.epoch
        """The last epoch that is durable."""
        self._wall_clock = engine.loop.time if engine.simulated else time
        self._thread = (
            None if engine.simulated else ThreadPoolExecutor(1, f"{engine.plan.description.name} state")
        )
        self._writing: asyncio.Future[None] | None = None
        epoch.happened = self._happened
        verdicts.notify = self._verdicts_came

    async def deliver_letters(self, sink: DeadLetters) -> None:
        """Hand over the dead letters of earlier runs that their sink may not have; raises what it raises."""
        await hand_over([letter for _, letter in self._state.stored.letters], sink)

    def begin(self) -> None:
        """The run begins."""
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
        """Open trees that belong to no message, and messages that are to be emitted again."""
        return self._epoch.own + sum(tracker.backlog for _, tracker in self._spouts)

    @property
    def _has_work(self) -> bool:
        if len(self._epoch.account) or any(each.changes for each in self._state.states):
            return True
        return self._are_timers_due(self._wall_clock())

    def _are_timers_due(self, now: float) -> bool:
        """Return True if a timer is to be called; one that sets itself again holds up neither the sources nor the end
        (law K7)."""
        due = self._next_timer()
        return due is not None and due <= now and now >= self._last_wave + LEAST_PAUSE

    def _next_timer(self) -> float | None:
        times = (task.timers.next for task in self._state.tasks if task.timers is not None)
        return min((each for each in times if each is not None), default=None)

    def quiet(self) -> None:
        """Nothing moves now. An epoch that the host waits for has no reason to go on."""
        self._wait_for_timers()
        if len(self._epoch.account) and any(tracker.is_awaited for _, tracker in self._spouts):
            self._epoch.closing = True

    def end(self) -> None:
        """Nothing is under way: try the epoch again, or make it durable."""
        held = next((bolt for bolt in self._tasks.all_bolts if bolt.holds_inputs), None)
        if held is not None:
            held.crash(StillHeld("it still holds inputs at the end of an epoch; settle them in flush"))
        elif self._epoch.spoilt:
            self._repeat()
        elif not self._fires_timers():
            self._seal()

    async def close(self) -> None:
        """The run ends: wait for what is being written."""
        self._stop_timers()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._thread is None:
            self._end_store()
        else:
            await self._loop.run_in_executor(self._thread, self._end_store)
            self._thread.shutdown(wait=False)

    def _end_store(self) -> None:
        try:
            if all(tracker.has_told for _, tracker in self._spouts):
                self._store.note_letters(self._durable)
        finally:
            self._store.close()

    # What happens in the epoch.

    def _happened(self) -> None:
        epoch = self._epoch
        if epoch.spoilt:
            for _, tracker in self._spouts:
                tracker.withdraw()
        elif self._timer is None:
            self._tell_time(self._wall_clock())
            self._timer = self._loop.call_later(self._configuration.epoch_seconds, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._epoch.closing = True
        self._look_again()

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._alarm):
            if timer is not None:
                timer.cancel()
        self._timer = self._alarm = None

    def _verdicts_came(self) -> None:
        trees = self._verdicts.trees
        while trees:
            self._settle_own(trees.popleft())

    def _settle_own(self, tree: OpenTree) -> None:
        self._epoch.own -= 1
        if tree.failure is not None:
            self._last_failure = tree.failure
            self._epoch.spoil()

    # Timers.

    def _wait_for_timers(self) -> None:
        due = self._next_timer()
        if due is not None and (self._alarm is None or due < self._alarm_for):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_for = due
            # At most ten times a second, however many there are (law K7).
            pause = max(due - self._wall_clock(), LEAST_PAUSE)
            self._alarm = self._loop.call_later(pause, self._alarm_rings)

    def _alarm_rings(self) -> None:
        self._alarm = None
        if self._has_work:
            self._time_is_up()
        else:  # the two clocks differ, or it was cancelled
            self._wait_for_timers()

    def _fires_timers(self) -> bool:
        """Have the timers called that are due, upstream first. Returns True if there were any: what they emit is
        settled before the rest (law K7)."""
        if self._wave is None:
            self._wave = self._wall_clock()
            self._tell_time(self._wave)
            self._calls_timers = self._are_timers_due(self._wave)
        if not self._calls_timers:
            return False
        self._last_wave = self._wave
        for group in self._engine.plan.order:
            due = [
                task
                for component in group
                for task in self._tasks.bolts.get(component, ())
                if self._is_due(task, self._wave)
            ]
            for task in due:
                task.ask(NAME)
            if due:
                return True
        return False

    def _is_due(self, task: BoltTask, now: float) -> bool:
        state = self._state.found(task.plan)
        if state is None or state.timers is None:
            return False
        at = state.timers.next
        return at is not None and at <= now

    def _tell_time(self, now: float) -> None:
        for task in self._state.tasks:
            task.now = now
        for state in self._state.states:
            state.tell(now)

    # Another attempt.

    def _repeat(self) -> None:
        epoch, account = self._epoch, self._epoch.account
        self._state.roll_back()
        epoch.attempt.begin()
        for bolt in self._tasks.all_bolts:
            bolt.forget_finish()
        self._wave = None
        epoch.closing = True  # what the sources give from now on belongs to later epochs
        messages = account.repeat()
        if account.fruitless >= self._configuration.max_attempts:
            self._crashed("the end", self._name_of(account.number), self._failed_for_good())
        else:
            self._emit(messages, later=account.is_lone)

    def _failed_for_good(self) -> EpochFailed:
        account, failure = self._epoch.account, self._last_failure
        error = EpochFailed(
            f"epoch {account.number} has failed {account.fruitless} times in a row, without a message to blame: "
            f"{failure}"
        )
        error.__cause__ = None if failure is None else failure.exception
        return error

    def _emit(self, messages: Sequence[Message], *, later: bool = False) -> None:
        """Have them emitted again, in an attempt at a lone message after a pause (law X7)."""
        for (task, tracker), own in self._by_task(messages):
            tracker.emit_again(own, later=later)
            task.attend_soon()
        if not messages:
            self._look_again()

    def _by_task(self, messages: Sequence[Message]) -> Sequence[tuple[Spout, Sequence[Message]]]:
        if len(self._spouts) == 1:
            return [(self._spouts[0], messages)]
        own: list[list[Message]] = [[] for _ in self._spouts]
        for message in messages:
            own[message.spout].append(message)
        return list(zip(self._spouts, own, strict=True))

    # The commit.

    def _seal(self) -> None:
        epoch = self._epoch
        closed = epoch.account.close()
        try:
            commit = self._commit_of(closed)
        except Exception as error:  # such as a message id that cannot be kept
            self._crashed("the commit", self._name_of(closed.number), error)
            return
        epoch.attempt.begin()
        epoch.closing = False
        self._wave = None
        self._stop_timers()
        self._write(commit, partial(self._tell, closed))
        self._emit(epoch.account.resume())
        if len(epoch.account):
            self._happened()
        self._wait_for_timers()
        for task in self._tasks.all_spouts:
            task.room_came()

    def _commit_of(self, closed: Closed[Message]) -> Commit:
        positions: dict[str, bytes] = {}
        for (task, _), own in self._by_task(closed.messages):
            position = task.feed.position_after(own)
            if position is not None:
                positions[position_name(task.plan)] = position
        return Commit(
            closed.number,
            self._wall_clock(),
            positions,
            self._state.seal(),
            letters=[kept(letter, self._wall_clock()) for letter in self._letters_of(closed)],
            # What is under way keeps an epoch open, and a letter that its sink does not have is under way.
            letters_delivered=closed.number - 1,
        )

    def _letters_of(self, closed: Closed[Message]) -> Iterator[DeadLetter]:
        for message in closed.given_up:
            if not isinstance(message, HostMessage) and message.failure is not None:
                task, _ = self._spouts[message.spout]
                yield letter_of(task.plan.component, message, message.failure)

    def _write(self, commit: Commit, then: Callable[[], None]) -> None:
        if self._thread is None:
            try:
                self._store.commit(commit)
            except Exception as error:
                self._crashed("the commit", self._name_of(commit.epoch), error)
            else:
                then()
            return
        self._engine.activity.begin()
        self._writing = self._loop.run_in_executor(self._thread, self._store.commit, commit)
        self._writing.add_done_callback(partial(self._written, commit.epoch, then))

    def _written(self, epoch: int, then: Callable[[], None], writing: asyncio.Future[None]) -> None:
        self._writing = None
        try:
            if writing.cancelled():  # the loop is being closed
                return
            error = writing.exception()
            if error is None:
                then()
            else:
                self._crashed("the commit", self._name_of(epoch), error)
        finally:
            self._engine.activity.end()

    def _name_of(self, epoch: int) -> str:
        return f"epoch {epoch:,}"

    def _tell(self, closed: Closed[Message]) -> None:
        self._durable = closed.number
        for (task, tracker), own in self._by_task(closed.messages):
            tracker.tell(own)
            task.attend_soon()
