"""The last lines of a terminal, drawn again in place, below whatever is printed.

``rich.live`` passes every print through its markup and loses count of its lines when the terminal is resized;
here prints go out as they are, once per frame. The cursor stays visible, in the line below, so that nothing
has to be put back however the process ends.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Sequence

from stormlet.cli.output import encodable

LONGEST_DELAY = 0.25
"""Seconds that a print waits at most for the next frame; user code may hold the loop for longer."""
MOST_BUFFERED = 1 << 16
"""Characters."""


class Screen:
    """Writes to one terminal. Its methods may be called in any thread and in signal handlers."""

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._descriptor = descriptor
        self._encoding = encoding
        self._lock = threading.RLock()
        self._printed: list[str] = []
        self._size = 0
        self._begun: dict[object, str] = {}
        self._handed_over = 0.0
        self._frame = ""
        self._drawn: list[int] = []
        self._writing = False

    def size(self) -> os.terminal_size:
        """Columns and lines; 80 by 24 where the terminal does not say."""
        try:
            size = os.get_terminal_size(self._descriptor)
        except OSError:
            return os.terminal_size((80, 24))
        return os.terminal_size((size.columns or 80, size.lines or 24))

    def print(self, text: str, source: object = None) -> None:
        """Print above the frame: with the next frame, or at once if that has been long ago. A line that is not
        ended yet waits for its end, for the frame could not stand beside it; each ``source`` has its own."""
        with self._lock:
            text = f"{self._begun.pop(source, '')}{text}"
            end = len(text) if len(text) > MOST_BUFFERED else text.rfind("\n") + 1
            if end < len(text):
                self._begun[source] = text[end:]
            if end:
                self._append(text[:end])
            if self._size > MOST_BUFFERED or time.monotonic() - self._handed_over > LONGEST_DELAY:
                self._refresh()

    def draw(self, lines: Sequence[tuple[str, int]]) -> None:
        """Print what is waiting, and these lines below it, each given with its width in cells."""
        with self._lock:
            frame = encodable("".join(f"{line}\n" for line, _ in lines), self._encoding)
            if frame != self._frame or self._printed:
                self._update(frame, [width for _, width in lines])

    def print_at_once(self, text: str) -> None:
        """Print above the frame without waiting: for a signal handler."""
        with self._lock:
            self._append(text)
            self._refresh()

    def close(self) -> None:
        """Print what is waiting and take the frame away."""
        with self._lock:
            for text in self._begun.values():
                self._append(text)
            self._begun.clear()
            self._update("", [])

    def forget(self) -> None:
        """Draw the next frame below what another program has written to the terminal since the last one."""
        with self._lock:
            self._frame, self._drawn = "", []

    def _append(self, text: str) -> None:
        line = text if text.endswith("\n") else f"{text}\n"
        self._printed.append(line)
        self._size += len(line)

    def _refresh(self) -> None:
        if self._printed:
            self._update(self._frame, self._drawn)

    def _update(self, frame: str, drawn: list[int]) -> None:
        """Put a frame below what was printed, in place of the last one."""
        if self._writing:
            return  # by what this signal handler has interrupted, which will find what was printed
        self._writing = True
        try:
            self._write(f"{self._erase()}{self._above()}{frame}")
            self._frame, self._drawn = frame, drawn
            while self._printed:
                self._write(f"{self._erase()}{self._above()}{frame}")
        finally:
            self._writing = False

    def _above(self) -> str:
        """The text that was printed since the last call."""
        printed, self._printed = self._printed, []
        self._size = 0
        self._handed_over = time.monotonic()
        return "".join(printed)

    def _erase(self) -> str:
        if not self._drawn:
            return ""
        size = self.size()  # terminals wrap the lines that have become too long
        rows = sum(max(1, -(-width // size.columns)) for width in self._drawn)
        return f"\r\x1b[{min(rows, size.lines - 1)}A\x1b[J"

    def _write(self, text: str) -> None:
        left = memoryview(text.encode(self._encoding, "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:  # the terminal is gone
                return
