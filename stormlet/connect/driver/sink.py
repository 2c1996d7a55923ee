"""The bolt that runs any sink: its inputs are acked when the broker has said that it has them (law R10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from stormlet.connect.address import Address, found_address
from stormlet.connect.driver import answers
from stormlet.connect.driver.connecting import LOSSES, Connecting, leave
from stormlet.connect.driver.context import SinkTask, consumer_name, random_of
from stormlet.connect.driver.options import SinkSettings
from stormlet.connect.driver.status import Status
from stormlet.connect.secrets import scrubbed
from stormlet.connect.session import Item, SinkContext, SinkSession, Written
from stormlet.core.tuples import Tuple
from stormlet.errors import BrokerGivenUp
from stormlet.model.components import BatchBolt, Collector, TaskContext
from stormlet.report.connections import Connection, ConnectionState

T = TypeVar("T")


class DrivenSink(Protocol):
    """The part of a sink that the bolt needs; :class:`~stormlet.connect.sink.Sink` is one."""

    @property
    def url(self) -> str | None:
        """The address in the code, if there is one."""
        ...

    @property
    def settings(self) -> SinkSettings:
        """The options."""
        ...

    async def connect(self, address: Address, context: SinkContext) -> SinkSession:
        """Connect to the broker."""
        ...


class SinkBolt(BatchBolt[T, None]):
    """One task of a sink at a broker.

    While the connection is lost the batch in hand waits, and with it those who feed the bolt. No message times out by
    that: an outage is not its fault, and would use up its attempts.
    """

    resets_timeouts = True

    def __init__(self, sink: DrivenSink) -> None:
        self._sink = sink
        settings = sink.settings
        self.size = settings.size
        self.within = settings.within
        self.at_once = settings.at_once
        self._connections = 0
        self._session: SinkSession | None = None
        self._reconnecting = asyncio.Lock()
        self._waiting = 0
        """Batches of which the broker has no room for some."""

    async def prepare(self, context: TaskContext) -> None:
        """Connect; an error fails the start (law R8)."""
        self._context = context
        settings = self._sink.settings
        self._address = found_address(context.component, self._sink.url, settings.password)
        clock = asyncio.get_running_loop().time
        self._status = Status(context.topology, context.component, str(self._address), clock)
        context.show_connection(self._connection)
        self._random = random_of(context)
        self._connecting = Connecting(
            self._address, self._status, self._random, settings.reconnects, settings.give_up
        )
        self._session = await self._connecting.first(self._connect)

    async def _connect(self) -> SinkSession:
        context = self._context
        self._connections += 1
        task = SinkTask(
            topology=context.topology,
            component=context.component,
            task_index=context.task_index,
            parallelism=context.parallelism,
            consumer=consumer_name(context),
            connection=self._connections,
            random=self._random,
            tell=self._told,
        )
        return await self._sink.connect(self._address, task)

    async def execute_batch(self, tups: Sequence[Tuple[T]], out: Collector[None]) -> None:
        """Write one batch; return when the broker has said what became of each value."""
        self._status.received += len(tups)
        written = await self._settled([Item(tup.value, tup.origin, tup.attempt) for tup in tups])
        for tup, each in zip(tups, written, strict=True):
            if each.reason:
                self._status.rejected += each.permanent
                out.fail(tup, scrubbed(each.reason, self._address.secrets), permanent=each.permanent)
        self._status.settled += sum(not each.reason for each in written)

    async def _settled(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write, and write again what the broker has no room for, until each has an outcome."""
        written = list(await self._write(items))
        if not any(each.later for each in written):
            return written
        self._waiting += 1
        try:
            await self._wait_for_room(items, written)
        finally:
            self._waiting -= 1
        if not self._waiting and not self._reconnecting.locked():
            self._status.attempt = 0
            self._status.become(ConnectionState.READY)
        return written

    async def _wait_for_room(self, items: Sequence[Item], written: list[Written]) -> None:
        """Write those again that wait, after growing pauses, and note what becomes of them."""
        pauses = 0
        while waiting := [place for place, each in enumerate(written) if each.later]:
            pauses += 1
            self._away(written[waiting[0]].reason, "finds no room at")
            self._status.attempt = pauses
            await asyncio.sleep(self._sink.settings.reconnects.pause(pauses, self._random))
            again = await self._write([items[place] for place in waiting])
            for place, each in zip(waiting, again, strict=True):
                written[place] = each
            if not all(each.later for each in again):  # there is room for some at a time
                pauses = 0

    async def _write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write, as often as connections are lost meanwhile."""
        while True:
            session = self._session or await self._again(None, ConnectionError("the connection is lost"))
            try:
                answer = await session.write(items)
            except BrokerGivenUp as error:
                raise BrokerGivenUp(self._connecting.words(error)) from None
            except LOSSES as error:
                await self._again(session, error)
                continue
            return answers.written(session, answer, len(items))

    async def _again(self, lost: SinkSession | None, error: Exception) -> SinkSession:
        """Connect again, unless another batch has done that meanwhile."""
        async with self._reconnecting:
            if self._session is None or self._session is lost:
                if lost is not None and self._session is lost:
                    self._session = None
                    await leave(lost)
                self._session = await self._connecting.again(self._connect, error)
            return self._session

    async def cleanup(self) -> None:
        """Leave the broker."""
        if self._session is not None:
            await leave(self._session)
        self._status.become(ConnectionState.CLOSED)

    def _told(self, error: str | None) -> None:
        """The session says that the broker is away, or is back."""
        if error is None:
            self._status.reconnects += 1
            self._status.attempt = 0
            self._status.become(ConnectionState.READY)
        else:
            self._status.attempt += 1
            self._away(error, "is kept waiting by")

    def _away(self, reason: str, event: str = "has lost") -> None:
        """The broker takes nothing now."""
        error = self._connecting.words(ConnectionError(reason))
        self._status.become(ConnectionState.RECONNECTING, error, event)
        self._status.error = error

    def _connection(self) -> Connection:
        return self._status.connection()
