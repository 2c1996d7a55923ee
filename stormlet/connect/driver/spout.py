"""The spout that runs any source.

Theory of operation
-------------------
Five rules, each from a bug that somebody had.

*A read is never cancelled.* An asynchronous ``next_tuple`` is, whenever an outcome comes (law S7), and a message that
was on its way then is delivered to nobody. So a task of its own reads into a buffer (``reading``), which a plain
``next_tuple`` drains.

*A lost connection is no crash*: one session follows another (``serving``).

*The broker is told off the way of the tuples*, by a task of its own (``settling``).

*A partition that is given away is drained first and fenced second* (``partitions``).

*The end gives back what nobody has begun*, waits for the trees, and then for the last settlement.

With ``state=`` a source that is ``resumable`` goes on behind the last message that it has emitted, as the engine keeps
that, durable or not; what was buffered is read again. The broker is told what is durable, for those who watch the lag.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from stormlet.connect.address import Address, found_address
from stormlet.connect.driver.arrivals import Arrivals
from stormlet.connect.driver.burying import Burying
from stormlet.connect.driver.connecting import CLOSING, leave
from stormlet.connect.driver.ending import end
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.numbers import Numbers
from stormlet.connect.driver.options import SourceSettings, check_lease, check_rules
from stormlet.connect.driver.overdue import Overdue
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.reading import Reading
from stormlet.connect.driver.renewing import Renewing
from stormlet.connect.driver.serving import Serving
from stormlet.connect.driver.settling import Settling
from stormlet.connect.driver.status import Status
from stormlet.connect.driver.traced import emit_traced
from stormlet.connect.session import Capabilities, Delivery, Session, Settles, SourceContext
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.settlement.credit import Credit
from stormlet.core.shortened import counted
from stormlet.errors import EndOfStream
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.report.connections import Connection, ConnectionState

T = TypeVar("T")

EMITTED_AT_ONCE = 200
"""Messages that one call of ``next_tuple`` emits: a slice has room for them, and they cost what more at once do."""
LAST = 1.0
"""Seconds for the last settlement and for leaving the broker, also when a drain has taken all of its time."""


class Driven(Protocol):
    """The part of a source that the spout needs; :class:`~stormlet.connect.source.Source` is one."""

    @property
    def url(self) -> str | None:
        """The address in the code, if there is one."""
        ...

    @property
    def settings(self) -> SourceSettings:
        """The options."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The rules of the broker."""
        ...

    @property
    def decode(self) -> Callable[[Delivery], Any]:
        """Makes the value of a delivery."""
        ...

    async def connect(self, address: Address, context: SourceContext) -> Session:
        """Connect to the broker."""
        ...


class Ack(Protocol):
    """Hears that a tree is done."""

    def __call__(self, message_id: object) -> None:
        """Take note of it."""
        ...


class SourceSpout(ReliableSpout[T]):
    """One task of a source at a broker."""

    needs_acks = True
    ack: Ack
    """Called when a tree is done. ``open`` sets it to the method of :class:`~stormlet.connect.driver.holding.Holding`
    itself: a method of this class would be one more call for each message. The engine knows from ``fail`` that outcomes
    are wanted."""

    def __init__(self, source: Driven) -> None:
        self._source = source
        self._settings = source.settings
        self._rules = source.capabilities
        self.buries = not self._rules.has_dead_letters
        self._tasks: list[asyncio.Task[None]] = []
        self._resume: dict[str, str] | None = None
        self._drained_by: float | None = None
        self._ends_epochs = False
        """True if messages belong to epochs, and wait for others of their key."""
        self._has_emitted = False
        """True if it has emitted since it had an epoch end."""

    # The life of the task.

    async def open(self, context: TaskContext, out: SpoutCollector[T]) -> None:
        """Connect, and begin to read; an error fails the start (law R8)."""
        self._out, self._context = out, context
        self._is_traced = context.is_traced
        self._ends_epochs = context.in_epochs and self._settings.ordered_by is not None
        self._clock = asyncio.get_running_loop().time
        self._address = found_address(context.component, self._source.url, self._settings.password)
        if context.is_durable and self.resumable:
            self._resume = {str(place): str(last) for place, last in context.resume.items()}
        check_rules(self._rules)
        check_lease(self._settings, self._rules)
        self._make_parts(context, out)
        context.show_connection(self._connection)
        await self._serving.begin()
        self._begin_tasks(f"{context.topology} {context.component}[{context.task_index}]")

    def _make_parts(self, context: TaskContext, out: SpoutCollector[T]) -> None:
        """Make the parts, of which each is given those before it that it needs."""
        settings, rules = self._settings, self._rules
        self._status = status = Status(context.topology, context.component, str(self._address), self._clock)
        survive = rules.receipts_survive and rules.settles is Settles.EACH
        self._settling = settling = Settling(status, settings.gathering(rules), survive=survive)
        numbers = context.shared.one(Numbers).of(context.task)
        self._holding = holding = Holding(rules, settings, settling, status, out, numbers.suffixes)
        self.ack = holding.done  # pyright: ignore[reportIncompatibleMethodOverride]
        partitions = Partitions(holding, settling, settings, rules.settles)
        self._credit = credit = Credit(context.config.max_spout_pending, settings.max_buffer_bytes)
        self._burying = Burying(context, out, holding, buries=self.buries, resume=self._resume)
        arrivals = Arrivals(
            context,
            decode=self._source.decode,
            settings=settings,
            holding=holding,
            partitions=partitions,
            status=status,
            unnamed=numbers.unnamed,
        )
        self._reading = Reading(
            context,
            out,
            credit=credit,
            holding=holding,
            burying=self._burying,
            partitions=partitions,
            status=status,
            arrivals=arrivals,
        )
        self._serving = Serving(
            context,
            self._address,
            self._source.connect,
            settings=settings,
            credit=credit,
            resume=self._resume,
            reading=self._reading,
            settling=settling,
            holding=holding,
            partitions=partitions,
            status=status,
            has_lag=rules.has_lag,
        )

    def _begin_tasks(self, name: str) -> None:
        """Begin what goes on beside the emits."""
        self._begin(self._serving.keep(), f"{name} connection")
        if self.buries:
            self._begin(self._burying.keep(), f"{name} dead letters")
        holding, status, serving = self._holding, self._status, self._serving
        if holding.leases is not None:
            renewing = Renewing(holding.leases, holding, status, lambda: serving.session)
            self._begin(renewing.keep(), f"{name} leases")
        elif self._rules.most_held is not None:
            overdue = Overdue(self._rules.most_held, holding, status)
            self._begin(overdue.keep(), f"{name} messages that are under way for too long")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        task.add_done_callback(lambda _: self._out.wake())  # next_tuple raises what has ended it
        self._tasks.append(task)

    def activate(self) -> None:
        """Read on."""
        self._reading.go_on()

    def deactivate(self) -> None:
        """Ask for nothing more."""
        self._reading.pause()

    def drain(self) -> None:
        """Read no more, and give back what nobody has begun."""
        if (seconds := self._context.config.drain_timeout) is not None:
            self._drained_by = self._clock() + seconds
        self._status.drain()
        self._reading.drain()
        if self._serving.session is not None:
            self._serving.session.interrupt()
        self._holding.give_back_unbegun()

    async def close(self) -> None:
        """Tell the broker the rest, and leave it."""
        seconds = self._closing_seconds
        if not self._status.is_draining:
            self.drain()
        self._settling.hurry()
        try:
            if not await self._is_told(seconds):
                self._status.warn(
                    "%s could not be brought to %s, which delivers again what is not settled",
                    counted(self._settling.untold, "settlement"),
                    self._address,
                )
        finally:  # also when that is cut short, as by a kill
            await self._end()

    async def _end(self) -> None:
        try:
            await end(self._tasks)
            if self._serving.session is not None:
                await leave(self._serving.session)
        finally:  # also when that raises: the garbage collector does not look into what is held
            self._holding.let_go()
            self._status.become(ConnectionState.CLOSED)

    async def _is_told(self, seconds: float) -> bool:
        """Wait until the broker knows all, or nobody can tell it."""
        serving, session = self._tasks[:1], self._serving.session
        if session is not None and serving and serving[0].done():  # by a fault, such as one of reading
            self._begin(self._serving.tell(session), "the last settlement")
            serving = self._tasks[-1:]
        told = asyncio.get_running_loop().create_task(self._told())
        try:
            await asyncio.wait([told, *serving], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
        return all(each.is_set() for each in self._last_things)

    async def _told(self) -> None:
        for each in self._last_things:
            await each.wait()

    @property
    def _last_things(self) -> Sequence[asyncio.Event]:
        """Events after all of which the broker knows everything, in the order in which they come."""
        return self._reading.is_out, self._burying.is_idle, self._settling.told

    @property
    def _closing_seconds(self) -> float:
        """The seconds that the last settlement may take: those that the drain has left (law R6)."""
        if self._settings.closing_timeout is not None:
            return self._settings.closing_timeout
        return CLOSING if self._drained_by is None else max(LAST, self._drained_by - self._clock())

    # Emitting, and outcomes.

    def next_tuple(self, out: SpoutCollector[T]) -> None:
        """Emit what was read."""
        for task in self._tasks:
            if task.done():
                task.result()
        buffer = self._holding.buffer
        if not buffer.is_ready:
            if self._holding.is_over and self._settling.told.is_set():
                raise EndOfStream
            if self._ends_epochs and self._has_emitted and len(buffer):
                # What waits for its key needs an outcome, which comes at the end of an epoch.
                self._has_emitted = False
                out.end_epoch()
            # Within epochs, messages cease to be pending without a word.
            self._holding.may_have_room()
            return
        if not self._burying.clear_way():
            return
        most = EMITTED_AT_ONCE if self._credit.most is None else max(1, self._credit.most - out.pending)
        messages = buffer.take(min(most, EMITTED_AT_ONCE))
        if not messages:
            return
        self._has_emitted = True
        if self._is_traced:
            emit_traced(messages, self._holding.emit)
        else:
            self._holding.emit(messages)
        if self._resume is not None:
            last = {message.place: message.name or "" for message in messages}
            self._resume.update((place.name, name) for place, name in last.items() if place is not None)
        self._holding.may_have_room()

    def fail(self, message_id: object, failure: Failure) -> None:
        """A message has failed for good, and is among the dead letters of the run unless the broker has its own."""
        if failure.kind is FailureKind.SHUTDOWN:
            self._holding.give_back(str(message_id))
        else:
            self._holding.give_up(str(message_id), str(failure))

    # What is shown of it.

    def _connection(self) -> Connection:
        holding = self._holding
        return self._status.connection(
            oldest=holding.oldest, buffered=len(holding.buffer), stale=holding.receipts.stale
        )
