"""Stream sockets in the selector of a simulated loop, and which of them wait for an answer from outside.

A connection waits for an answer from the moment in which it is made, or something is sent, until something comes.
Not outside are those whose other end is in the same selector, and those of a server in this loop, which waits for no
client. Sockets without names, such as pairs, are left to the thread or the process at their other end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

from stormlet.testing.outside.things import Partner

T = TypeVar("T")

Address: TypeAlias = tuple[str | int, ...] | str | bytes | None
"""Host, port and more, or the path of a Unix socket."""

EVERYWHERE: Final = ("0.0.0.0", "::")


class Connection(Partner):
    """A socket in the selector; a listening one is no connection, but says where the loop can be reached."""

    def __init__(self, fd: int, name: Address, now: float, *, listens: bool) -> None:
        super().__init__(now)
        self.fd = fd
        self.name = name
        self.listens = listens
        self.peer: Address = None
        """The other end, once it was looked for and is there."""

    def until(self, patience: float) -> float:
        """It is waited for while it owes an answer, and until that is complete."""
        return self.silent_until(patience) if self.owes else self.answers_until()

    def __str__(self) -> str:
        return f"an answer from {_written(self.peer)}"


class Connections:
    """All of them."""

    def __init__(self) -> None:
        self.there: dict[int, Connection] = {}
        """By descriptor."""

    def registered(self, fd: int) -> None:
        """The loop looks for what comes there from now on."""
        connection = _asked(fd, _connection)
        if connection is not None:
            self.there[fd] = connection

    def unregistered(self, fd: int) -> None:
        """It does so no more."""
        self.there.pop(fd, None)

    def busy(self, now: float) -> Sequence[Connection]:
        """Those that wait for an answer, or for the rest of one."""
        waiting = [each for each in self.there.values() if each.owes or each.answers_until() > now]
        return [each for each in waiting if not each.listens and self._is_outside(each)]

    def _is_outside(self, connection: Connection) -> bool:
        connection.peer = peer = _asked(connection.fd, socket.socket.getpeername)
        others = self.there.values()
        served = any(
            _reaches(each, connection.name) or _reaches(each, peer) for each in others if each.listens
        )
        return not served and all(each.name != peer for each in others)


def _connection(sock: socket.socket) -> Connection | None:
    """What is to be known of it; None if it is not a stream between names."""
    if sock.type != socket.SOCK_STREAM:
        return None
    listens = bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    if sock.family not in (socket.AF_INET, socket.AF_INET6) and not listens and not sock.getpeername():
        return None
    return Connection(sock.fileno(), sock.getsockname(), monotonic(), listens=listens)


def _reaches(listener: Connection, address: Address) -> bool:
    """Whether who connects to this address gets there."""
    if not isinstance(address, tuple) or not isinstance(listener.name, tuple):
        return address == listener.name
    return address[1] == listener.name[1] and listener.name[0] in (address[0], *EVERYWHERE)


def _written(address: Address) -> str:
    if isinstance(address, tuple):
        return ":".join(map(str, address[:2]))
    return repr(address) if address else "a connection that is being made"


class TellingSocket:
    """A socket that tells when something is sent."""

    def __init__(self, sock: socket.socket, tell: Callable[[], None]) -> None:
        self._sock = sock
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def send(self, data: bytes, *flags: int) -> int:
        """As that of the socket."""
        self._tell()
        return self._sock.send(data, *flags)

    def sendmsg(self, buffers: Iterable[bytes], *more: Any) -> int:
        """As that of the socket."""
        self._tell()
        return self._sock.sendmsg(buffers, *more)


def _asked(fd: int, question: Callable[[socket.socket], T]) -> T | None:
    """What the socket of this descriptor answers; None where there is no socket, or no answer yet."""
    try:
        sock = socket.socket(fileno=fd)
    except OSError:
        return None
    try:
        return question(sock)
    except OSError:
        return None
    finally:
        sock.detach()
