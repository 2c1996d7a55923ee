"""A server that speaks Kestrel's protocol over real sockets, with queues in memory."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress


class Items(deque[bytes]):
    """The items of one queue. Those who wait for one are woken, and do not look again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    def append(self, item: bytes, /) -> None:
        """Add the last one."""
        super().append(item)
        self.changed.set()

    def appendleft(self, item: bytes, /) -> None:
        """Add the first one."""
        super().appendleft(item)
        self.changed.set()

    def extend(self, items: Iterable[bytes], /) -> None:
        """Add the last ones."""
        super().extend(items)
        self.changed.set()


class KestrelServer:
    """Queues in memory; they outlive a restart, as Kestrel's journal does."""

    def __init__(self) -> None:
        self.queues: Mapping[str, Items] = defaultdict(Items)
        self.open: dict[asyncio.StreamWriter, tuple[str, bytes]] = {}
        """The item that each connection has open."""
        self.port = 0
        self.most_bytes = 2**20
        """An item that has more is refused."""
        self.connections = 0
        """Connections that it has taken."""
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def start(self) -> None:
        """Listen on loopback; again on the same port after :meth:`stop`."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more, and end every connection."""
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.gather(*(task for task in self._writers.values() if task), return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._writers):
            writer.transport.abort()
        for items in self.queues.values():  # nobody waits any more
            items.changed.set()

    def left(self, queue: str) -> list[bytes]:
        """The items of a queue, with those that are open, sorted."""
        return sorted([*self.queues[queue], *(body for name, body in self.open.values() if name == queue)])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = asyncio.current_task()
        self.connections += 1
        try:
            while line := await reader.readline():
                await self._command(line.split(), reader, writer)
        except (OSError, EOFError):
            return
        finally:
            self._abort(writer)
            self._writers.pop(writer)
            writer.close()

    async def _command(
        self, words: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match [words[0].upper(), *words[1:]] if words else []:
            case [b"GET", key]:
                await self._get(key.decode(), writer)
            case [b"SET", key, _, _, size]:
                body = (await reader.readexactly(int(size) + 2))[:-2]
                if len(body) > self.most_bytes:
                    writer.write(b"SERVER_ERROR the item is too large\r\n")
                else:
                    self.queues[key.decode()].append(body)
                    writer.write(b"STORED\r\n")
            case [b"STATS"]:
                for name, items in self.queues.items():
                    lent = sum(each == name for each, _ in self.open.values())
                    writer.write(b"STAT queue_%s_items %d\r\n" % (name.encode(), len(items)))
                    writer.write(b"STAT queue_%s_open_transactions %d\r\n" % (name.encode(), lent))
                writer.write(b"END\r\n")
            case _:
                writer.write(b"ERROR\r\n")
        await writer.drain()

    async def _get(self, key: str, writer: asyncio.StreamWriter) -> None:
        name, *flags = key.split("/")
        if "close" in flags:
            self.open.pop(writer, None)
        if "abort" in flags:
            self._abort(writer)
        if "open" in flags:
            if writer in self.open:
                writer.write(b"CLIENT_ERROR an item is open already\r\n")
                return
            waits = [int(each[2:]) / 1000 for each in flags if each.startswith("t=")]
            await self._until_there(name, waits[0] if waits else 0.0, writer)
            if self.queues[name] and not writer.is_closing():
                body = self.queues[name].popleft()
                self.open[writer] = (name, body)
                writer.write(b"VALUE %s 0 %d\r\n%s\r\n" % (name.encode(), len(body), body))
        writer.write(b"END\r\n")

    async def _until_there(self, name: str, seconds: float, writer: asyncio.StreamWriter) -> None:
        items = self.queues[name]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not items and not writer.is_closing():
                    items.changed.clear()
                    await items.changed.wait()

    def _abort(self, writer: asyncio.StreamWriter) -> None:
        if writer in self.open:
            name, body = self.open.pop(writer)
            self.queues[name].appendleft(body)
