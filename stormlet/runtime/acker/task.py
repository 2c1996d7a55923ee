"""The acker tasks: each owns one shard of the ledger and rotates it when the ticker says so (law L6, L12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from stormlet.core.ledger import AckerLoad, Ledger
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree
from stormlet.model.plan import TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.acker.bookkeeper import Bookkeeper, Verdicts
from stormlet.runtime.acker.holders import HolderScan, Unsettled
from stormlet.runtime.context import Engine
from stormlet.runtime.slices import Pace
from stormlet.runtime.task import Task
from stormlet.runtime.wire.outbox import Control

EXPIRED_PER_CHUNK = 256
SCANNED_PER_CHUNK = 512
"""Looking at a tuple takes about half of what failing a tree does."""

LITTLE = 4
"""Entries of a control message: so few are done in less time than the acker takes to wake up."""


class DeadSpout(NamedTuple):
    """An instance of a ``Spout`` class that died: its successor gets a fail for each message it had pending."""

    spout: int
    """The index of its task."""
    failure: Failure


class AckerTask(Task):
    """One acker (component ``__acker``)."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        ledger: Ledger,
        high_water: int | None,
        timeouts: bool,
        verdicts: Sequence[Verdicts],
        unsettled: Unsettled,
    ) -> None:
        """``verdicts`` are those for each spout task, by the index that open trees name."""
        super().__init__(plan, engine, engine.plan.description.configuration)
        self.ledger = ledger
        self.load = AckerLoad(high_water)
        self._bookkeeper = Bookkeeper(ledger, self.load, self.activity, verdicts)
        self.stirred: Callable[[], None] = _nobody
        """Called when a message arrives: from now on something may expire."""
        self._inbox: deque[Control | DeadSpout | None] = deque()
        self._pace = Pace()
        self._timeouts = timeouts
        self._unsettled = unsettled
        self._expiring: dict[int, OpenTree] | None = None
        self._scan: HolderScan | None = None
        self._expired_late = 0
        self._rotated = 0.0

    @property
    def ages(self) -> Sequence[tuple[float, int]]:
        """The numbers of open trees with the seconds that they are open at least."""
        config = self.engine.plan.description.configuration
        interval = (config.message_timeout or 0.0) / (config.timeout_buckets - 1)
        since = self.loop.time() - self._rotated
        # One that has seen a rotation was there before it; between two rotations lies an interval at least.
        ages = (since + (seen - 1) * interval if seen else 0.0 for seen in count())
        return list(zip(ages, self.ledger.cohorts, strict=False))

    @property
    def idle(self) -> bool:
        """True if nothing waits here, open trees apart."""
        return not self._inbox and not self.ledger.expiring

    @property
    def may_expire(self) -> bool:
        """True if rotations would let something expire, or may: a message that waits."""
        ledger = self.ledger
        if ledger.expiring or ledger.orphans or (self._timeouts and len(ledger)):
            return True
        return any(message is not None for message in self._inbox)

    def post(self, control: Control) -> None:
        """Take a control message; never blocks (law F4). A little one is applied at once if the acker sleeps, and so
        has read all that came before: most of the latency of a lone message would be wake-ups of ackers."""
        # A sleeping acker has read all that came before, so that nothing is overtaken. Its slice is not asked for: that
        # would take longer than the work.
        if self._asleep and control.size <= LITTLE:
            try:
                self._bookkeeper.apply_at_once(control)
            except Exception as error:  # in the name of another task, which has no part in it
                self.engine.failed(self.plan, error)
        else:
            self._inbox.append(control)
            self.wake()
        self.stirred()

    @property
    def unread(self) -> Iterator[Control]:
        """The messages that have arrived and were not applied."""
        return (message for message in self._inbox if isinstance(message, Control))

    def rotate_soon(self) -> None:
        """Rotate after the control messages that arrived before (law L12)."""
        self._inbox.append(None)
        self.wake()

    def fail_of_soon(self, dead: DeadSpout) -> None:
        """Fail what a spout that died had pending, after the control messages that arrived before."""
        self._inbox.append(dead)
        self.wake()

    async def run(self) -> None:
        while True:
            if self.idle:
                await self.sleep()
            if not self.slices.begin():
                await self.slices.turn()
            while not self.idle:
                if self.slices.spent(self._pace, self._work()):
                    await self.slices.turn()

    def fail_all(self, failure: Failure) -> None:
        """Fail every open tree, after the messages that have arrived (law C3)."""
        # Acks among them still count: a tree that they complete is acked, and not failed by the end.
        while self._inbox:
            self._apply()
        self.ledger.fail_all(failure)
        self._expiring = self._scan = None
        self._bookkeeper.give_verdicts()

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        books = self._bookkeeper
        counts = TaskStatistics(
            executed=books.applied,
            acked=books.acked,
            failed=books.failed,
            pending=len(self.ledger),
            expired_late=self._expired_late,
            restarts=self.restarts.count,
        )
        return self.with_shares(counts)

    def lose(self, error: Exception) -> None:
        """Its ledger is lost: fail every tree at once, so that none waits for its timeout."""
        # Those whose inits are still on their way fail when they arrive (law L4); the ledger itself goes on.
        self.ledger.lose(Failure(FailureKind.TASK_LOST, reason=f"{self.name} died", exception=error))
        self._expiring = self._scan = None
        self._bookkeeper.give_verdicts()

    def _work(self) -> int:
        """A chunk of a large expiry and a chunk of messages, so that neither makes the other wait."""
        # Both in every chunk: an expiry of 100,000 trees must not keep acks waiting, which may yet save some of them.
        late = self._expire()
        applied = self._apply()
        self._expired_late += late
        if not self.ledger.expiring:
            self._expiring = self._scan = None
        self._bookkeeper.give_verdicts()
        return late + applied

    def _apply(self) -> int:
        inbox, done = self._inbox, 0
        while inbox and done < self._pace.chunk:
            message = inbox.popleft()
            if message is None:
                self._rotate()
            elif isinstance(message, DeadSpout):
                self.ledger.fail_of(message.spout, message.failure)
            else:
                done += self._bookkeeper.apply(message)
        return done

    def _rotate(self) -> None:
        if not self._timeouts:
            # Without timeouts trees never leave, but acks of trees that are over would gather for ever (law L5).
            self.ledger.forget_orphans()
            return
        self.ledger.rotate()
        self._rotated = self.loop.time()
        self._expire()

    def _expire(self) -> int:
        """Go on with the trees that have timed out: look for who holds them, then fail them; returns how many were."""
        cohort = self.ledger.next_to_expire
        if cohort is not self._expiring:
            self._expiring = cohort
            self._scan = None if cohort is None else HolderScan(self._unsettled(), cohort)
        # Failed only when everything was looked at: before, a tree might seem to be held by nobody.
        if cohort is None or self._scan is None or self._scan.advance(SCANNED_PER_CHUNK) == SCANNED_PER_CHUNK:
            return 0
        expired = min(EXPIRED_PER_CHUNK, len(cohort))
        self.ledger.expire(expired, self._scan.found)
        return expired


def _nobody() -> None:
    """Take the notice of a ticker that has not begun."""
