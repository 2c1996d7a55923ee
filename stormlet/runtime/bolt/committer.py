"""Committers: the worker that gathers their rows, and the task that has them called (law X9).

Theory of operation
-------------------
Inputs of a committer are gathered and acked at once: its own code has nothing to do with them before their epoch is
durable. ``commit`` is called in a coroutine beside that of the task, which gathers the rows of the next epoch
meanwhile. What is due belongs to the task and not to the instance. An instance whose ``commit`` raises is dead, as in
any other method, and the next one is called with the same epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, Final, cast

from stormlet.core.state.epochs import Attempt
from stormlet.core.state.outgoing import Epoch, Outgoing, OutgoingTable
from stormlet.core.tuples import ACKED, PLAIN, Tuple
from stormlet.errors import StrayCancellation
from stormlet.model.state.committers import BatchCommitter, Committer
from stormlet.runtime.bolt.batches import BatchRunner, BatchWorker
from stormlet.runtime.bolt.functions import InstanceWorker
from stormlet.runtime.bolt.keyed import DEAD
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.worker import Pause, Raised, Wiring
from stormlet.runtime.occupation import AWAITING, IDLE
from stormlet.runtime.usercode import dropped
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector


class CommitterWorker(InstanceWorker):
    """Gathers rows; each of them has reached state (law X6)."""

    def __init__(
        self, wiring: Wiring, bolt: Committer[Any], outgoing: Outgoing | OutgoingTable, attempt: Attempt
    ) -> None:
        super().__init__(wiring, cast("Any", bolt))
        self._committer = bolt
        self._outgoing = outgoing
        self._attempt = attempt

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        add, attempt, outbox = self._outgoing.gathered.append, self._attempt, self.outbox
        reached = attempt.reached
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            add(tup.value)
            root = tup.root
            reached[root] = None
            tup.state = ACKED  # nobody else has it
            if root == outbox.run:
                outbox.delta ^= tup.edge
            elif root:
                outbox.begin_run(root, tup.edge)
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        if self._attempt.is_dead(tup.roots):
            out.fail(tup, DEAD)
            return
        self._attempt.reach(tup.roots)
        self._outgoing.gathered.append(tup.value)

    def commit(self, epoch: Epoch, rows: Sequence[Any]) -> object:
        """Call the user's ``commit``; returns what is to be awaited, or None."""
        return self._committer.commit(epoch, rows)


class KeptRows:
    """The rows that a :class:`~stormlet.model.state.committers.BatchCommitter` makes by itself."""

    def __init__(self, outgoing: Outgoing | OutgoingTable, attempt: Attempt) -> None:
        self._outgoing = outgoing
        self._attempt = attempt

    def dead_among(self, tups: Sequence[Tuple[Any]]) -> Sequence[Tuple[Any]]:
        """Return the inputs among these whose message has failed."""
        attempt = self._attempt
        return [tup for tup in tups if attempt.is_dead(tup.roots)] if attempt.has_dead else ()

    def keep(self, row: Any, of: Sequence[Tuple[Any]]) -> None:
        """Keep a row that comes of these inputs."""
        attempt, reached = self._attempt, self._attempt.reached
        for tup in of:
            if tup.root:
                reached[tup.root] = None
            else:
                attempt.reach(tup.roots)
        self._outgoing.gathered.append(row)


class BatchCommitterWorker(BatchWorker):
    """``BatchCommitter``, by way of the runner of its batches."""

    def __init__(
        self, wiring: Wiring, bolt: BatchCommitter, outgoing: Outgoing | OutgoingTable, attempt: Attempt
    ) -> None:
        super().__init__(wiring, BatchRunner(bolt, wiring))
        bolt.keeper = KeptRows(outgoing, attempt)
        self._committer = bolt

    def commit(self, epoch: Epoch, rows: Sequence[Any]) -> object:
        """Call the user's ``commit``; returns what is to be awaited, or None."""
        return self._committer.commit(epoch, rows)


DONE_FIRST: Final = (
    "let it return nothing, when the rows are where they belong; async def may await what does that"
)
PAUSE = 1.0
"""Seconds until a call is made again that was cancelled together with a host that has not left."""


class CommitterTask(BoltTask):
    """The task of a committer."""

    def __init__(
        self,
        outgoing: Outgoing | OutgoingTable,
        epoch_of: Callable[[int], Epoch],
        *arguments: Any,
        **options: Any,
    ) -> None:
        """``epoch_of`` gives an epoch of the run by its number; the other arguments are those of :class:`BoltTask`."""
        super().__init__(*arguments, **options)
        self.notify: Callable[[], None] = _nobody
        """Called when an epoch has been delivered; the keeper of the epochs puts its own method here."""
        self._outgoing = outgoing
        self._epoch_of = epoch_of
        self._delivering: asyncio.Task[None] | None = None
        self.life.has_calls = True

    @property
    def is_due(self) -> bool:
        """True if rows that are durable are not delivered."""
        return isinstance(self._outgoing, Outgoing) and self._outgoing.is_due

    @property
    def concurrent_calls(self) -> Sequence[asyncio.Task[None]]:
        return [] if self._delivering is None else [self._delivering]

    async def run(self) -> None:
        self.deliver()
        await super().run()

    def deliver(self) -> None:
        """Have the committer called for what is due."""
        if self.is_due and self.working and self._delivering is None:
            self._delivering = self.spawn(self._deliver(), f"{self.name} commit")
            self._delivering.add_done_callback(partial(self.guarded, self._delivered))

    async def _deliver(self) -> None:
        assert isinstance(self._outgoing, Outgoing)
        worker = cast("CommitterWorker | BatchCommitterWorker", self.worker)
        while self._outgoing.is_due:
            number, rows = self._outgoing.first
            began = self.engine.clock()
            result = worker.commit(self._epoch_of(number), rows)
            if isawaitable(result):
                self.occupation.switch(AWAITING)
                result = await self.life.checked(result)
                self.occupation.switch(IDLE)
            if result is not None:
                raise dropped(self.plan, "commit", result, DONE_FIRST)
            self.times.executed(self.engine.clock() - began, 0)
            self._outgoing.had()
            self.notify()

    def _delivered(self, delivering: asyncio.Task[None]) -> None:
        self._delivering = None
        error = _error_of(delivering)
        if error is None:
            self.deliver()  # what has become due since its last look
            return
        if delivering.cancelled() and self._engine_cancels:
            if not self.life.calls_cancelled:  # with the host, which may stay all the same
                self.loop.call_later(PAUSE, self.guarded, self.deliver)
            return
        self.user.method = "commit"
        if isinstance(error, Exception):
            self.user.raised(error)
            self.die(error)
        else:
            self.crash(error)


def _error_of(delivering: asyncio.Task[None]) -> BaseException | None:
    if delivering.cancelled():
        return StrayCancellation("somebody else has cancelled the call")
    return delivering.exception()


def _nobody() -> None:
    """Take the notice before the keeper is made; nothing is due by then."""
