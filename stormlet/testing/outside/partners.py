"""Partners outside of a simulated loop, for which its clock waits: child processes, and sockets that await an answer.

Processes are those that the loop has started by asyncio's means; sockets are the streams in its selector.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from asyncio import SubprocessTransport, WriteTransport
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

SHORTEST_LULL: Final = 0.1
LONGEST_LULL: Final = 1.0


class Thing(ABC):
    """One of them. Times are seconds of real time."""

    given_up = False
    """The clock has waited for it in vain, and has had no sign of life since."""

    @abstractmethod
    def until(self, patience: float) -> float:
        """Until when the clock waits for it."""

    @abstractmethod
    def __str__(self) -> str:
        """A description of it and of its work."""


class Partner(Thing):
    """One that takes messages, and answers."""

    def __init__(self, now: float) -> None:
        self._sent = now
        self._received = 0.0
        self._took = 0.0

    @property
    def owes(self) -> bool:
        """True if nothing has come from it since something was sent to it, or it came to be."""
        return self._received < self._sent

    def sent(self, now: float) -> None:
        """Something goes there."""
        self._sent = now

    def received(self, now: float) -> None:
        """Something comes from there."""
        if self.owes:
            self._took = now - self._sent
        self._received = now
        self.given_up = False

    def answers_until(self) -> float:
        """The moment at which an answer that has begun counts as complete: after a lull as long as it took to begin."""
        return self._received + min(max(SHORTEST_LULL, self._took), LONGEST_LULL)

    def silent_until(self, patience: float) -> float:
        """The moment at which it has been silent for so long."""
        return max(self._sent, self._received) + patience


class Child(Partner):
    """One of them. Writes to its pipe count as sent to it, and so do signals, after which even one that was given up
    is waited for again; one that has no such pipe works by itself."""

    def __init__(self, transport: SubprocessTransport) -> None:
        super().__init__(monotonic())
        self._transport = transport
        self._stdin: Any = transport.get_pipe_transport(0)
        pipes: list[Any] = [transport.get_pipe_transport(number) for number in (1, 2)]
        self.descriptors = [pipe.get_extra_info("pipe").fileno() for pipe in pipes if pipe is not None]
        if isinstance(self._stdin, WriteTransport):
            self._note_writes(self._stdin)
        for name in ("send_signal", "terminate", "kill"):
            self._note_signals(name)

    def _note_writes(self, pipe: WriteTransport) -> None:
        write = pipe.write

        def note_and_write(data: bytes) -> None:
            self.sent(monotonic())
            write(data)

        pipe.write = note_and_write  # type: ignore[method-assign, assignment]

    def _note_signals(self, name: str) -> None:
        send = getattr(self._transport, name)

        def note_and_send(*signal: int) -> None:
            self.sent(monotonic())
            self.given_up = False
            send(*signal)

        setattr(self._transport, name, note_and_send)

    @property
    def lives(self) -> bool:
        """True if the loop has no notice that it has ended."""
        return self._transport.get_returncode() is None

    def works(self, now: float) -> bool:
        """True if it may have something to say, or to do, before more is sent to it."""
        return self.owes or not self._is_fed or self.answers_until() > now

    @property
    def _is_fed(self) -> bool:
        return self._stdin is not None and not self._stdin.is_closing()

    def until(self, patience: float) -> float:
        """It is waited for until its answer is complete, or else while it lives."""
        if self._is_fed and not self.owes:
            return self.answers_until()
        return self.silent_until(patience)

    def __str__(self) -> str:
        return f"child process {self._transport.get_pid()}"


class Children:
    """All of them that live."""

    def __init__(self) -> None:
        self.living: Sequence[Child] = ()

    def born(self, transport: SubprocessTransport) -> None:
        """The loop has started another one."""
        self.living = (*self.living, Child(transport))

    def of(self, fd: int) -> Child | None:
        """The one that writes to the pipe of this descriptor."""
        return next((each for each in self.living if fd in each.descriptors), None)

    def busy(self, now: float) -> Sequence[Child]:
        """Those that work."""
        self.living = [each for each in self.living if each.lives]
        return [each for each in self.living if each.works(now)]


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
    """The addresses of the socket; None if it is not a stream between names."""
    if sock.type != socket.SOCK_STREAM:
        return None
    listens = bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    if sock.family not in (socket.AF_INET, socket.AF_INET6) and not listens and not sock.getpeername():
        return None
    return Connection(sock.fileno(), sock.getsockname(), monotonic(), listens=listens)


def _reaches(listener: Connection, address: Address) -> bool:
    """True if a connection to this address gets there."""
    if not isinstance(address, tuple) or not isinstance(listener.name, tuple):
        return address == listener.name
    return address[1] == listener.name[1] and listener.name[0] in (address[0], *EVERYWHERE)


def _written(address: Address) -> str:
    if isinstance(address, tuple):
        return ":".join(map(str, address[:2]))
    return repr(address) if address else "a connection that is being made"


class ReportingSocket:
    """A socket that reports when something is sent."""

    def __init__(self, sock: socket.socket, note_sent: Callable[[], None]) -> None:
        self._sock = sock
        self._note_sent = note_sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def send(self, data: bytes, *flags: int) -> int:
        """As that of the socket."""
        self._note_sent()
        return self._sock.send(data, *flags)

    def sendmsg(self, buffers: Iterable[bytes], *more: Any) -> int:
        """As that of the socket."""
        self._note_sent()
        return self._sock.sendmsg(buffers, *more)


def _asked(fd: int, question: Callable[[socket.socket], T]) -> T | None:
    """The answer of the socket of this descriptor; None where there is no socket, or no answer yet."""
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
