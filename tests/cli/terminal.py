"""A real pseudo-terminal, with an emulator that shows what a person would see there."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence

import pyte


class Terminal:
    """Runs a program and draws what it writes; the lines that have scrolled away are kept, too."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.written = b""
        self.exit_code: int | None = None
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self._master, self._slave = pty.openpty()
        self._process: subprocess.Popen[bytes] | None = None
        self.resize(columns, lines)

    def start(self, *arguments: str, output: int | None = None, **environment: str) -> None:
        """Start ``python -m stormlet ARGUMENTS`` with this terminal as its own; ``output`` is another file for its
        standard output."""
        inherited = {
            name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stormlet", *arguments],
            stdin=self._slave,
            stdout=self._slave if output is None else output,
            stderr=self._slave,
            env={**inherited, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(self._slave)

    def wait(self, until: Callable[[], bool] | None = None, seconds: float = 60.0) -> None:
        """Draw until the program ends, or until this is so."""
        deadline = time.monotonic() + seconds
        while until is None or not until():
            assert time.monotonic() < deadline, f"still waiting; the screen shows\n{self.text}"
            if not self._read():
                assert until is None, f"the program has ended; the screen shows\n{self.text}"
                assert self._process is not None
                self.exit_code = self._process.wait(seconds)
                os.close(self._master)
                return

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.05)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # nobody has it open any longer
            return False
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def close(self) -> None:
        """Kill the program if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the program."""
        assert self._process is not None
        self._process.send_signal(number)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._screen.resize(lines, columns)

    @property
    def lines(self) -> Sequence[str]:
        """What is visible."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines).rstrip()

    @property
    def history(self) -> Sequence[str]:
        """Everything, from the first line on."""
        rows = [
            "".join(row[column].data for column in range(self._screen.columns))
            for row in self._screen.history.top
        ]
        return [*(row.rstrip() for row in rows), *self.text.splitlines()]


def read_until(descriptor: int, end: str, seconds: float = 60.0) -> str:
    """What was written to a terminal, up to this: a terminal hands it over in pieces."""
    read = b""
    deadline = time.monotonic() + seconds
    while end.encode() not in read:
        assert time.monotonic() < deadline, f"{end!r} does not come after {read!r}"
        if select.select([descriptor], [], [], 0.05)[0]:
            read += os.read(descriptor, 10_000)
    return read.decode()
