"""A TCP proxy on loopback that can reset connections, swallow what is sent, or refuse new connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from tests.brokers.processes import HOST

Mode: TypeAlias = Literal["pass", "black hole", "refuse"]
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with which a close sends RST instead of FIN."""
PIECE = 1 << 16


class Proxy:
    """Runs in a thread of its own, so that the loop of a test may be held up."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._mode: Mode = "pass"
        self._writers = set[asyncio.StreamWriter]()
        self._server: asyncio.Server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def pass_on(self) -> None:
        """Forward what comes, also what was held back."""
        self._call(lambda: self._set("pass"))

    def swallow(self) -> None:
        """Keep connections open and let nothing through, as a firewall that has forgotten them."""
        self._call(lambda: self._set("black hole"))

    def refuse(self) -> None:
        """Reset all connections, and each new one at once."""
        self._call(lambda: self._set("refuse"))
        self.reset()

    def reset(self) -> None:
        """Reset all connections; new ones are let through."""
        self._call(self._reset)

    @property
    def connections(self) -> int:
        """The number of connections that are open."""
        return len(self._writers) // 2

    def _call(self, function: Callable[[], None]) -> None:
        async def call() -> None:
            function()

        self._do(call())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        done: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        done.result(60)

    def _set(self, mode: Mode) -> None:
        self._mode = mode
        self._open_again.set() if mode == "pass" else self._open_again.clear()

    async def _open(self) -> None:
        self._open_again = asyncio.Event()
        self._open_again.set()
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        self._reset()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _reset(self) -> None:
        for writer in list(self._writers):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "refuse":
            _reset(writer)
            return
        try:
            there = await asyncio.open_connection(HOST, self._target)
        except OSError:  # the broker is down
            _reset(writer)
            return
        ends = {writer, there[1]}
        self._writers |= ends
        try:
            await asyncio.gather(self._forward(reader, there[1]), self._forward(there[0], writer))
        finally:
            self._writers -= ends
            for each in ends:
                each.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._open_again.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    with suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
