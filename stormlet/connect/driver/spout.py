"""The spout that runs any source.

Theory of operation
-------------------
Five rules, each from a bug that somebody had.

*A read is never cancelled.* An asynchronous ``next_tuple`` is, whenever an outcome comes (law S7), and a message that
was on its way then is delivered to nobody. So a task of its own reads into a buffer, which a plain ``next_tuple``
drains.

*A lost connection is no crash.* :meth:`SourceSpout._serve` runs one session after another. What was lost with one comes
again by the broker, so it is withdrawn here: its trees go on, but a failed one is not replayed, nor buried by two
owners. Where receipts survive a connection, everything goes on instead.

*The broker is told off the way of the tuples*, by a task of its own (``settling``).

*A partition that is given away is drained first and fenced second* (``partitions``).

*The end gives back what nobody has begun*, waits for the trees, and then for the last settlement.

With ``state=`` a source that is ``resumable`` goes on behind the last message that it has emitted, as the engine keeps
that, durable or not; what was buffered is read again. The broker is told what is durable, for those who watch the lag.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Hashable, Sequence
from itertools import count
from typing import Any, Protocol, TypeAlias, TypeVar

from stormlet.connect.address import Address, found_address
from stormlet.connect.driver.connecting import CLOSING, LOSSES, Connecting, leave
from stormlet.connect.driver.context import SourceTask, consumer_name, random_of
from stormlet.connect.driver.ending import end
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.intake import Held, too_large
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.overdue import Overdue
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.renewing import Renewing
from stormlet.connect.driver.settling import Settling
from stormlet.connect.driver.status import Status
from stormlet.connect.driver.traced import emit_traced, traceparent_of
from stormlet.connect.session import Capabilities, Delivery, Session, Settles, SourceContext
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.settlement.credit import UNLIMITED, Credit
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import EndOfStream
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.report.connections import Connection, ConnectionState

T = TypeVar("T")
Unreadable: TypeAlias = tuple[str, Delivery, Exception]
"""The id of a message of which nothing can be made, the message, and why."""

RECEIVE = 5.0
"""Seconds for which a session is asked to wait for messages."""
ROOM = 0.5
"""Seconds after which a reader without room looks again: a withdrawn message makes room without a word."""
AT_ONCE = 100
"""Deliveries that are decoded before others have their turn, where that is not a slice's time before."""
LOOKED_AT = 5
"""Deliveries between two looks at the clock."""
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


class SourceSpout(ReliableSpout[T]):
    """One task of a source at a broker."""

    needs_acks = True

    def __init__(self, source: Driven) -> None:
        self._source = source
        self._settings = settings = source.settings
        self._rules = rules = source.capabilities
        self._decode = source.decode
        self._ordered_by = settings.ordered_by
        self._most_bytes = settings.max_message_bytes
        self.buries = not rules.has_dead_letters
        self._session: Session | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._read_out = asyncio.Event()
        self._read_out.set()
        self._resume: dict[str, str] | None = None
        self._numbers = count(1)
        self._active = False
        self._draining = False
        self._drained_by: float | None = None

    # The life of the task.

    async def open(self, context: TaskContext, out: SpoutCollector[T]) -> None:
        """Connect, and begin to read; an error fails the start (law R8)."""
        self._out, self._context = out, context
        self._is_traced = context.is_traced
        self._clock = asyncio.get_running_loop().time
        self._slice = context.config.slice
        self._unnamed = f"{context.component}[{context.task_index}]#"
        settings, component = self._settings, context.component
        self._address = found_address(component, self._source.url, settings.password)
        if context.is_durable and self.resumable:
            self._resume = {str(place): str(last) for place, last in context.resume.items()}
        self._status = Status(context.topology, component, str(self._address), self._clock)
        survive = self._rules.receipts_survive and self._rules.settles is Settles.EACH
        self._settling = Settling(self._status, settings.gathering(self._rules), survive=survive)
        self._holding = Holding(self._rules, settings, self._settling, self._status, out)
        self._partitions = Partitions(self._holding, self._settling, settings)
        self._credit = Credit(context.config.max_spout_pending, settings.max_buffer_bytes)
        self._random = random_of(context)
        context.show_connection(self._connection)
        self._connecting = Connecting(
            self._address, self._status, self._random, settings.reconnects, settings.give_up
        )
        self._session = session = await self._connecting.first(self._connect)
        name = f"{context.topology} {component}[{context.task_index}]"
        self._begin(self._serve(session), f"{name} connection")
        leases = self._holding.leases
        if leases is not None:
            renewing = Renewing(leases, self._holding, self._status, lambda: self._session)
            self._begin(renewing.keep(), f"{name} leases")
        elif self._rules.most_held is not None:
            overdue = Overdue(self._rules.most_held, self._holding, self._status)
            self._begin(overdue.keep(), f"{name} messages that are under way for too long")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        task.add_done_callback(lambda _: self._out.wake())  # next_tuple raises what has ended it
        self._tasks.append(task)

    async def _connect(self) -> Session:
        context = self._context
        task = SourceTask(
            topology=context.topology,
            component=context.component,
            task_index=context.task_index,
            parallelism=context.parallelism,
            consumer=consumer_name(context),
            connection=self._holding.receipts.connected(),
            random=self._random,
            credit=UNLIMITED if self._credit.most is None else self._credit.most,
            resume=self._resume,
            take=self._partitions.assign,
            revoke=self._partitions.revoke,
            lose=self._partitions.lose,
        )
        return await self._source.connect(self._address, task)

    async def _serve(self, session: Session) -> None:
        """Run one session after another."""
        while (lost := await self._run(session)) is not None:
            self._session = None
            self._lose_connection()
            await leave(session)
            if self._draining and not self._settling.survive:
                return  # nothing can be settled any more
            session = await self._connecting.again(self._connect, lost)
            self._session = session
            self._settling.note()

    async def _run(self, session: Session) -> Exception | None:
        """Run a session until it is lost: return the error that says so."""
        works = [self._read(session), self._settling.tell(session, self._partitions.balance)]
        if self._rules.has_lag:
            works.append(self._watch_lag(session))
        tasks = [asyncio.get_running_loop().create_task(work) for work in works]
        try:
            while tasks:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    tasks.remove(task)
                    task.result()
        except LOSSES as error:
            return error
        finally:
            await end(tasks)  # of a connection that is lost, or at the end: no read is spoilt by that
        return None

    def _lose_connection(self) -> None:
        if self._settling.survive:
            self._settling.forget()
            return
        self._partitions.lose_all()
        self._holding.withdraw(list(self._holding.receipts))
        self._status.stale += self._settling.forget()
        self._holding.all_are_read = False

    def activate(self) -> None:
        """Read on."""
        self._active = True
        self._holding.room.set()

    def deactivate(self) -> None:
        """Ask for nothing more."""
        self._active = False

    def drain(self) -> None:
        """Read no more, and give back what nobody has begun."""
        self._draining = True
        if (seconds := self._context.config.drain_timeout) is not None:
            self._drained_by = self._clock() + seconds
        self._status.drain()
        self._holding.room.set()
        if self._session is not None:
            self._session.interrupt()
        self._holding.give_back_unbegun()

    async def close(self) -> None:
        """Tell the broker the rest, and leave it."""
        seconds = self._closing_seconds
        if not self._draining:
            self.drain()
        self._settling.hurry()
        try:
            if not await self._is_told(seconds):
                self._status.warn(
                    "%d settlements could not be brought to %s, which delivers these messages again",
                    self._settling.untold,
                    self._address,
                )
        finally:  # also when that is cut short, as by a kill
            await self._end()

    async def _end(self) -> None:
        await end(self._tasks)
        if self._session is not None:
            await leave(self._session)
        self._holding.let_go()
        self._status.become(ConnectionState.CLOSED)

    async def _is_told(self, seconds: float) -> bool:
        """Wait until the broker knows all, or nobody can tell it."""
        serving = self._tasks[:1]
        if self._session is not None and serving and serving[0].done():  # by a fault, such as one of reading
            self._begin(self._settling.tell(self._session, self._partitions.balance), "the last settlement")
            serving = self._tasks[-1:]
        told = asyncio.get_running_loop().create_task(self._told())
        try:
            await asyncio.wait([told, *serving], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
        return self._read_out.is_set() and self._settling.told.is_set()

    async def _told(self) -> None:
        await self._read_out.wait()
        await self._settling.told.wait()

    @property
    def _closing_seconds(self) -> float:
        """The seconds that the last settlement may take: those that the drain has left (law R6)."""
        if self._settings.closing_timeout is not None:
            return self._settings.closing_timeout
        return CLOSING if self._drained_by is None else max(LAST, self._drained_by - self._clock())

    # Reading.

    async def _read(self, session: Session) -> None:
        """Read while there is room. Nobody cancels that while the connection stands."""
        self._read_out.clear()
        try:
            await self._read_on(session)
        finally:
            self._read_out.set()

    async def _read_on(self, session: Session) -> None:
        """Read on, and ask for more while what has come is taken in."""
        asked: asyncio.Task[Sequence[Delivery]] | None = None
        try:
            while asked is not None or not self._draining:
                asked = asked or self._ask(session, ())
                if asked is None:
                    await self._wait_for_room()
                    continue
                deliveries = await asked
                asked = self._ask(session, deliveries)
                await self._take_in(deliveries)
                await self._partitions.balance(session)
        except EndOfStream:
            self._holding.all_are_read = True
            self._out.wake()
        finally:
            if asked is not None:  # the connection is lost, or the end has come
                await end([asked])

    def _ask(self, session: Session, come: Sequence[Delivery]) -> asyncio.Task[Sequence[Delivery]] | None:
        """Ask for messages if there is room for some beside those that have come and are not taken in yet."""
        if self._draining:
            return None
        if not self._active:
            self._status.become(ConnectionState.PAUSED)
            return None
        buffer = self._holding.buffer
        size = buffer.bytes + sum(len(delivery.body) for delivery in come)
        most = self._credit.left(self._out.pending, len(buffer) + len(come), size)
        if not most:
            return None
        self._status.become(ConnectionState.READY)
        return asyncio.get_running_loop().create_task(session.receive(most, RECEIVE))

    async def _wait_for_room(self) -> None:
        room = self._holding.room
        room.clear()
        try:
            async with asyncio.timeout(ROOM):
                await room.wait()
        except TimeoutError:
            return

    async def _take_in(self, deliveries: Sequence[Delivery]) -> None:
        first = 0
        while first < len(deliveries):
            now = self._clock()
            some = deliveries[first : first + AT_ONCE]
            looked_at, unreadable = self._take_some(some, now, now + self._slice)
            self._status.received += looked_at
            first += looked_at
            for each in unreadable:
                await self._bury(*each)
            self._out.wake()
            if first < len(deliveries):
                await asyncio.sleep(0)

    def _take_some(
        self, deliveries: Sequence[Delivery], now: float, until: float
    ) -> tuple[int, Sequence[Unreadable]]:
        """Take messages until this time; return how many, and those of which nothing can be made."""
        clock, is_given_away, take = self._clock, self._partitions.is_given_away, self._take
        unreadable: list[Unreadable] = []
        for number, delivery in enumerate(deliveries):
            if number % LOOKED_AT == 0 and number and clock() >= until:
                return number, unreadable
            place = delivery.place
            if place is not None and is_given_away(place):
                self._status.stale += 1
            elif (each := take(delivery, place, now)) is not None:
                unreadable.append(each)
        return len(deliveries), unreadable

    def _take(self, delivery: Delivery, place: Prefix[Any] | None, now: float) -> Unreadable | None:
        """Keep a message; return it if it is held, and nothing can be made of it."""
        number = -1 if place is None else place.add(delivery.position)
        value, key, error = self._read_body(delivery)
        name, attempt = delivery.name, delivery.deliveries
        if attempt != 1:
            attempt = self._attempt(attempt)
        id, size = self._id_of(name, number), len(delivery.body)
        held = Held(id, delivery.receipt, place, number, now, value, name or None, attempt, size, key)
        if self._is_traced:
            held.traceparent = traceparent_of(delivery.headers)
        if not self._holding.add(held):
            self._status.redelivered += delivery.deliveries <= 1
        elif self._draining:
            self._holding.give_back(id)
        elif error is not None:
            return id, delivery, error
        else:
            self._holding.buffer.add(held)
        return None

    def _read_body(self, delivery: Delivery) -> tuple[Any, Hashable, Exception | None]:
        """Make the value and its key, or the error that says why not."""
        try:
            if len(delivery.body) > self._most_bytes:
                raise too_large(delivery, self._most_bytes)
            value = self._decode(delivery)
            return value, None if self._ordered_by is None else self._ordered_by(value), None
        except Exception as error:
            return None, None, error

    def _attempt(self, deliveries: int) -> int:
        """Return the attempt that a delivery is; some brokers do not count, and others may count too much."""
        self._status.redelivered += deliveries > 1
        return max(1, min(deliveries, self._context.config.max_attempts))

    def _id_of(self, name: str, number: int) -> str:
        if not name:
            return self._unnamed + str(next(self._numbers))
        receipts = self._holding.receipts
        id = receipts.id_of(name)
        # A partition settles each of its deliveries; only a message with a receipt of its own adopts another one.
        return f"{id}+{number}" if number >= 0 and id in receipts else id

    async def _bury(self, id: str, delivery: Delivery, error: Exception) -> None:
        """Nothing can be made of a body: it is a dead letter, with its bytes (law R6)."""
        reason = f"{type(error).__name__}: {error}"
        context = self._context
        failure = Failure(
            FailureKind.FAILED, context.component, context.task, reason, exception=error, permanent=True
        )
        if self.buries:
            await self._out.dead_letter(delivery.body, failure, message_id=id, origin=delivery.name or None)
        self._holding.give_up(id, str(failure))

    # Emitting, and outcomes.

    def next_tuple(self, out: SpoutCollector[T]) -> None:
        """Emit what was read."""
        for task in self._tasks:
            if task.done():
                task.result()
        if not self._holding.buffer.is_ready:
            if self._holding.is_over and self._settling.told.is_set():
                raise EndOfStream
            return
        most = EMITTED_AT_ONCE if self._credit.most is None else max(1, self._credit.most - out.pending)
        messages = self._holding.buffer.take(min(most, EMITTED_AT_ONCE))
        if self._is_traced:
            emit_traced(messages, self._emit)
        else:
            self._emit(messages)
        if self._resume is not None:
            last = {message.place: message.name or "" for message in messages}
            self._resume.update((place.name, name) for place, name in last.items() if place is not None)
        self._holding.room.set()

    def _emit(self, messages: Sequence[Held]) -> None:
        attempts = [message.attempt for message in messages]
        self._out.emit_many(
            [message.value for message in messages],
            message_ids=[message.id for message in messages],
            origins=[message.name for message in messages],
            attempt=1 if attempts.count(1) == len(attempts) else attempts,
        )

    def ack(self, message_id: object) -> None:
        """A tree is done."""
        self._holding.done(str(message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        """A message has failed for good, and is among the dead letters of the run unless the broker has its own."""
        if failure.kind is FailureKind.SHUTDOWN:
            self._holding.give_back(str(message_id))
        else:
            self._holding.give_up(str(message_id), str(failure))

    # Beside reading.

    async def _watch_lag(self, session: Session) -> None:
        while True:
            self._status.lag = await session.lag()
            await asyncio.sleep(self._settings.lag_every)

    def _connection(self) -> Connection:
        holding = self._holding
        return self._status.connection(
            oldest=holding.oldest, buffered=len(holding.buffer), stale=holding.receipts.stale
        )


class ResumableSpout(SourceSpout[T]):
    """A spout whose messages are named ``place@position``, in the order of their places, so that the state can keep its
    positions (law X8)."""

    resumable = True

    def partition(self, message_id: object) -> str:
        """The place in the name."""
        return str(message_id).rpartition("@")[0]

    def position_of(self, message_id: object) -> str:
        """The name alone: ids of later connections have more."""
        place, _, position = str(message_id).rpartition("@")
        return f"{place}@{re.split('[~+]', position)[0]}"
