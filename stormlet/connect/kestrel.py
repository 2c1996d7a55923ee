"""Kestrel's queues, by memcache's text protocol: ``/open`` lends an item, ``/close`` ends it, ``/abort`` returns it.

A connection has one item open at a time, and what is open when it ends is given back by the server. So a source has a
connection for each item under way: ``connections`` of them, each with a small loop of its own. Kestrel keeps no names
and counts no deliveries. It needs no client: a few lines of the protocol are here.

::

    lines = topology.spout("lines", kestrel.Queue("kestrel://q1:22133", "sentences", as_=str))
    topology.bolt("done", kestrel.Set("kestrel://q1:22133", "counted"), counts.shuffle())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Received
from stormlet.connect.driver.ending import end
from stormlet.connect.driver.options import AtLeastOne, SinkOptions, SourceOptions, checked
from stormlet.connect.session import (
    DONE,
    Capabilities,
    ConnectContext,
    Delivery,
    Item,
    Session,
    Settlement,
    SinkSession,
    SourceContext,
    Written,
)
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import BrokerRefused, ConnectionLost

T = TypeVar("T")

PORT: Final = 22133
WAIT: Final = 500
"""Milliseconds for which the server is asked to wait for an item."""
ANSWERS_WITHIN: Final = 10.0
"""Seconds after which a connection on which nothing moves is lost."""
PIECE: Final = 2**16
"""Bytes of a body that are sent or read at a time."""
ERRORS: Final = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")


class QueueSettings(msgspec.Struct, frozen=True):
    """Options that only these sources have."""

    connections: AtLeastOne


class Queue(Source[T]):
    """A queue. Items that are given up are dead letters of the run, as Kestrel has none."""

    @overload
    def __init__(
        self: Queue[Received],
        url: str | None,
        queue: str,
        *,
        as_: None = None,
        connections: int = 16,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url: str | None,
        queue: str,
        *,
        as_: type[T],
        connections: int = 16,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | None,
        queue: str,
        *,
        as_: Any = None,
        connections: int = 16,
        **options: Unpack[SourceOptions],
    ) -> None:
        """``connections`` items may be under way, and no more than ``max_spout_pending``. Raises :class:`ValueError`
        for a name that is none to the protocol, and :class:`~stormlet.errors.InvalidTopology` for less than one."""
        super().__init__(url, as_=as_, **options)
        self.queue = checked_name(queue)
        self.connections = checked(QueueSettings(connections)).connections

    @property
    def capabilities(self) -> Capabilities:
        """Each by its receipt; ``/abort`` has no penalty."""
        return Capabilities(can_return=True, has_lag=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """The queue."""
        return (self.queue,)

    async def begin(self, address: Address, context: SourceContext) -> Session:
        """Connect once, to see that the server is there."""
        first = await Wire.greeted(address, self.queue)
        return QueueSession(self.queue, address, first, min(self.connections, context.credit))


class Set(Sink[T]):
    """A sink that appends to a queue."""

    def __init__(self, url: str | None, queue: str, **options: Unpack[SinkOptions]) -> None:
        """Raises :class:`ValueError` for a name that is none to the protocol."""
        super().__init__(url, **options)
        self.queue = checked_name(queue)

    @property
    def writes(self) -> str:
        """The queue."""
        return self.queue

    async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
        """Connect."""
        return SetSession(self, await Wire.greeted(address, self.queue))


def checked_name(queue: str) -> str:
    """Return the name of a queue; raise :class:`ValueError` for one that the protocol would read as more than that."""
    if not queue or any(each in queue for each in " /+~\r\n\t") or not queue.isprintable():
        raise ValueError(f"{queue!r} is no name of a queue of Kestrel: it has no spaces, '/', '+' or '~'")
    return queue


class Wire:
    """One connection, and the commands that are needed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, address: Address) -> Wire:
        """Connect. Raises :class:`OSError`."""
        async with asyncio.timeout(ANSWERS_WITHIN):
            return cls(*await asyncio.open_connection(address.host, address.port or PORT))

    @classmethod
    async def greeted(cls, address: Address, queue: str) -> Wire:
        """Connect for the first time, to a server that answers: others accept connections, too."""
        address.check_scheme("kestrel")
        address.check_rest()
        wire = await cls.to(address)
        try:
            await wire.items(queue)
        except BaseException as error:
            wire.close()
            if isinstance(error, ConnectionLost):
                raise ConnectionLost(f"{address}: {error}") from None
            raise
        return wire

    async def get(self, key: str) -> bytes | None:
        """Return the value for ``key``, such as ``sentences/open/t=500``; None if there is none."""
        await self._send(f"GET {key}\r\n".encode())
        line = await self._line()
        if line == b"END":
            return None
        _, _, _, size = self._fields(line, b"VALUE", 4)
        body = await self._body(self._number(size, line) + 2)
        self._fields(await self._line(), b"END", 1)
        return body[:-2]

    async def set(self, items: Sequence[tuple[str, bytes]]) -> list[str]:
        """Append items to queues; return what the server says of each: nothing, or why it does not take it."""
        await self._send(
            b"".join(b"SET %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(body), body) for key, body in items)
        )
        return [self._refusal(await self._line()) for _ in items]

    def _refusal(self, line: bytes) -> str:
        try:
            self._fields(line, b"STORED", 1)
        except BrokerRefused as error:
            return str(error)
        return ""

    async def items(self, queue: str) -> int:
        """Return the number of items in a queue, with those that are open."""
        await self._send(b"STATS\r\n")
        count, wanted = 0, (f"queue_{queue}_items".encode(), f"queue_{queue}_open_transactions".encode())
        while (line := await self._line()) != b"END":
            _, name, value = self._fields(line, b"STAT", 3)
            count += self._number(value, line) if name in wanted else 0
        return count

    async def _send(self, command: bytes) -> None:
        # In pieces, as are bodies: what is long may take long, as long as it moves.
        for begin in range(0, len(command), PIECE):
            self._writer.write(command[begin : begin + PIECE])
            async with self._within():
                await self._writer.drain()

    async def _body(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size:
            async with self._within():
                piece = await self._reader.read(min(size - len(body), PIECE))
            if not piece:
                raise ConnectionLost("the server has closed the connection")
            body += piece
        return bytes(body)

    async def _line(self) -> bytes:
        try:
            async with self._within():
                line = await self._reader.readline()
        except ValueError as error:  # it has no end
            raise ConnectionLost(f"the server does not speak the protocol: {error}") from None
        if not line.endswith(b"\r\n"):
            raise ConnectionLost("the server has closed the connection")
        return line[:-2]

    @staticmethod
    @asynccontextmanager
    async def _within() -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                yield
        except TimeoutError:
            raise ConnectionLost(f"no answer within {ANSWERS_WITHIN:g} s") from None

    @staticmethod
    def _fields(line: bytes, word: bytes, count: int) -> list[bytes]:
        fields = line.split(b" ")
        if fields[0] in ERRORS:
            raise BrokerRefused(f"the server says {line.decode(errors='replace')}")
        if fields[0] != word or len(fields) < count:
            raise _unlike(line)
        return fields[:count]

    @staticmethod
    def _number(text: bytes, line: bytes) -> int:
        if not text.isdigit():
            raise _unlike(line)
        return int(text)

    def close(self) -> None:
        """End it; what is open on it is given back."""
        self._writer.close()


def _unlike(line: bytes) -> ConnectionLost:
    return ConnectionLost(f"the server says {line[:80]!r}, which is not the protocol")


class Opened:
    """An item that is open on its connection."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.verdict: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """``close`` or ``abort``."""
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server has said so."""


class QueueSession:
    """A source's connections to one queue."""

    def __init__(self, queue: str, address: Address, first: Wire, connections: int) -> None:
        self._queue = queue
        self._address = address
        self._came = asyncio.Event()
        self._opened: list[Opened] = []
        self._interrupted = False
        self._error: Exception | None = None
        self._wires = [first]
        begin = asyncio.get_running_loop().create_task
        self._tasks = [begin(self._lend(first if n == 0 else None)) for n in range(connections)]

    async def _lend(self, wire: Wire | None) -> None:
        """One connection: open an item, wait for what becomes of it, say so, and open the next."""
        opened: Opened | None = None
        try:
            if wire is None:
                wire = await Wire.to(self._address)
                self._wires.append(wire)
            while not self._interrupted:
                body = await wire.get(f"{self._queue}/open/t={WAIT}")
                if body is not None:
                    opened = Opened(body)
                    self._opened.append(opened)
                    self._came.set()
                    await wire.get(f"{self._queue}/{await opened.verdict}")
                    opened.settled.set_result(None)
        except (OSError, EOFError, ConnectionLost, BrokerRefused, TimeoutError) as error:
            self._error = error
            self._came.set()
            if opened is not None and not opened.settled.done():
                opened.settled.set_exception(ConnectionLost(str(error)))
                opened.settled.exception()  # it may be that nobody waits for it

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - the face has it
        """Return items that connections have opened."""
        if not self._opened and not self._interrupted and self._error is None:
            self._came.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._came.wait()
            except TimeoutError:
                return []
        if self._error is not None:
            raise ConnectionLost(str(self._error)) from None
        taken, self._opened = self._opened[:most], self._opened[most:]
        return [Delivery(body=each.body, receipt=each) for each in taken]

    def interrupt(self) -> None:
        """Open no more."""
        self._interrupted = True
        self._came.set()

    async def settle(self, settlement: Settlement) -> int:
        """Close what is done, abort what is given back."""
        told: list[Opened] = [*settlement.done, *settlement.returned]
        verdicts = ["close"] * len(settlement.done) + ["abort"] * len(settlement.returned)
        for each, verdict in zip(told, verdicts, strict=True):
            if not each.verdict.done():  # told before, when the answer was not awaited to its end
                each.verdict.set_result(verdict)
        if self._error is not None:
            raise ConnectionLost(str(self._error))
        await asyncio.gather(*(asyncio.shield(each.settled) for each in told))
        return 0

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """There are no leases."""
        return []

    async def pause(self, places: Collection[Prefix]) -> None:
        """There are no partitions."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """There are no partitions."""

    async def lag(self) -> Mapping[str, int]:
        """Items in the queue, with those that are open."""
        wire = await Wire.to(self._address)
        try:
            return {self._queue: await wire.items(self._queue)}
        finally:
            wire.close()

    async def close(self) -> None:
        """End all connections; what is open is given back by the server."""
        self.interrupt()
        try:
            await end(self._tasks)
        finally:  # a close that is cut short disconnects, too
            for wire in self._wires:
                wire.close()


class SetSession:
    """A sink's connection."""

    def __init__(self, sink: Set[Any], wire: Wire) -> None:
        self._sink = sink
        self._wire = wire

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Append these, each acked by ``STORED``. The answers behind one that is refused are read all the same: they
        would be taken for those of the next batch."""
        said = await self._wire.set([(self._sink.queue, self._sink.encode(item.value)) for item in items])
        return [Written(words) if words else DONE for words in said]

    async def close(self) -> None:
        """End it."""
        self._wire.close()
