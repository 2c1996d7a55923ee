"""The process of a broker: started on a loopback port, killed, and started again on its data."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import SystemRandom
from time import monotonic, sleep
from typing import NoReturn

import pytest

HOST = "127.0.0.1"
PORTS = range(10_000, 32_000)
"""None of those that systems give to clients, of whom one might have the port of a broker when that starts again."""
STARTS_WITHIN = 90.0
"""Seconds that a broker may take on a machine with other work."""


def missing(what: str, way_out: str) -> NoReturn:
    """Skip the test, or fail it in CI: this is not installed."""
    reason = f"{what} is not installed: {way_out}"
    if "CI" in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens at."""
    found = list[int]()
    with ExitStack() as stack:
        while len(found) < count:
            port = SystemRandom().choice(PORTS)
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind((HOST, port))
                found.append(port)
    return found


def listens(port: int) -> bool:
    """True if somebody accepts connections at a port."""
    with suppress(OSError), socket.create_connection((HOST, port), timeout=10):
        return True
    return False


class Broker:
    """A broker with a folder of its own. ``command`` runs it in the foreground."""

    def __init__(
        self, folder: Path, port: int, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> None:
        self.port = port
        self.folder = folder
        self._command = command
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "output").open("ab") as output:
            # A session of its own, so that all of its processes can be killed together.
            self._process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = monotonic() + STARTS_WITHIN
        while not self.answers():
            assert self._process.poll() is None, f"it has ended: {self.output}"
            assert monotonic() < deadline, f"it does not answer: {self.output}"
            sleep(0.02)

    def answers(self) -> bool:
        """True if it is ready."""
        return listens(self.port)

    @property
    def output(self) -> str:
        """The end of what it has printed."""
        return (self.folder / "output").read_text("utf-8", "replace")[-3000:]

    def kill(self) -> None:
        """Kill it with ``kill -9``."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop its processes, as a machine that swaps; :meth:`go_on` lets them go on."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """Kill it, and start it again on the same port and data."""
        self.kill()
        self.start()

    def close(self) -> None:
        """End it for good."""
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._signal(number)
        try:
            self._process.wait(60)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        deadline = monotonic() + 60
        while self.answers():  # children of the process end a moment later
            assert monotonic() < deadline, f"it does not end: {self.output}"
            sleep(0.01)
