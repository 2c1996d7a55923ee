"""Processes that a simulated loop has started by asyncio's means, for which its clock waits."""

from __future__ import annotations

from asyncio import SubprocessTransport, WriteTransport
from collections.abc import Sequence
from time import monotonic
from typing import Any

from stormlet.testing.outside.things import Partner


class Child(Partner):
    """One of them. What it is given to read by a pipe is told to it; one that has no such pipe works by itself."""

    def __init__(self, transport: SubprocessTransport) -> None:
        super().__init__(monotonic())
        self._transport = transport
        self._stdin: Any = transport.get_pipe_transport(0)
        pipes: list[Any] = [transport.get_pipe_transport(number) for number in (1, 2)]
        self.descriptors = [pipe.get_extra_info("pipe").fileno() for pipe in pipes if pipe is not None]
        if isinstance(self._stdin, WriteTransport):
            self._tell_writes(self._stdin)

    def _tell_writes(self, pipe: WriteTransport) -> None:
        write = pipe.write

        def tell_and_write(data: bytes) -> None:
            self.tell(monotonic())
            write(data)

        pipe.write = tell_and_write  # type: ignore[method-assign, assignment]

    @property
    def lives(self) -> bool:
        """Whether the loop has not been told that it has ended."""
        return self._transport.get_returncode() is None

    def works(self, now: float) -> bool:
        """Whether it may have something to say, or to do, before it is told more."""
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
