"""A server of its own for the page, in the loop of the run that it shows."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import msgspec
import uvicorn

from stormlet.errors import InvalidConfiguration
from stormlet.ui.access import is_loopback
from stormlet.ui.guard import Asgi

LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 1
"""Seconds that requests may take when the server ends."""


class Bind(msgspec.Struct, frozen=True):
    """The address that a server listens at."""

    host: str
    port: int
    """0: any that is free."""


def read_bind(text: str, where: str) -> Bind:
    """Read ``[HOST:]PORT``; raise :class:`~stormlet.errors.InvalidConfiguration`, which ``where`` opens."""
    host, colon, port = text.rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise InvalidConfiguration(
            f"{where} {text}: write a port, or an address and a port, such as 8080 or 0.0.0.0:8080; one with colons "
            f"is in brackets, as in [::1]:8080"
        )
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or not port.isascii() or int(port) > 65_535 or (colon and not host):
        raise InvalidConfiguration(
            f"{where} {text}: write a port, or an address and a port, such as 8080 or 0.0.0.0:8080"
        )
    return Bind(host or LOOPBACK, int(port))


def check_bind(bind: Bind, token: str | None, advice: str) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for an address that others reach, without a token;
    ``advice`` says what to do."""
    if token is None and not is_loopback(bind.host):
        raise InvalidConfiguration(
            f"the page would be open to all who reach {bind.host}, and shows what the topology works on; {advice}"
        )


def listening(bind: Bind) -> socket.socket:
    """Return a socket that listens there; raise :class:`~stormlet.errors.InvalidConfiguration` if none can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise InvalidConfiguration(f"the page cannot be at {bind.host!r}: there is no such address") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidConfiguration(_why_not(bind, error)) from None
    return listener


def _why_not(bind: Bind, error: OSError) -> str:
    where = f"the page cannot be at port {bind.port} of {bind.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}: another program is there; choose another port, or 0 for any that is free"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: this machine does not have that address"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where}: that needs more rights; choose a port from 1024"
    return f"{where}: {error.strerror}"


class _Server(uvicorn.Server):
    """One that leaves signals to the run."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


@asynccontextmanager
async def serving(app: Asgi, listener: socket.socket) -> AsyncGenerator[str]:
    """Serve in the block, and return the address. Answers are finite, so that the end waits for none of them long."""
    config = uvicorn.Config(
        app, lifespan="off", ws="none", log_config=None, access_log=False, log_level="warning",
        timeout_graceful_shutdown=PATIENCE, server_header=False,
    )  # fmt: skip
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]), name="stormlet page")
    host, port = listener.getsockname()[:2]
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    finally:
        server.should_exit = True
        await asyncio.wait([task])
        listener.close()
