"""The live view: the figures of a run on a terminal, four times a second."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TextIO, cast

from rich.console import Console
from rich.text import Text

from stormlet.cli.running.observation import Observation
from stormlet.cli.running.screen import Screen
from stormlet.cli.running.view import live_view
from stormlet.cli.streams import GuardedStream, are_one_terminal

INTERVAL = 0.25
"""Seconds between two frames."""
MOST_OF_THE_TIME = 0.02
"""The part of the loop's time that frames may take: where one takes long, the next one comes later."""
DUMB = ("", "dumb", "unknown")


def is_terminal(stream: GuardedStream | None) -> bool:
    """Whether lines of it can be drawn again in place."""
    return (
        stream is not None
        and cast("TextIO", stream).isatty()
        and os.environ.get("TERM", "").lower() not in DUMB
    )


class LiveView:
    """Draws below what the run prints to the same terminal."""

    def __init__(self, errors: GuardedStream, output: GuardedStream | None) -> None:
        terminal = cast("TextIO", errors)
        self.screen = Screen(terminal.fileno(), terminal.encoding)
        self._console = Console(
            file=terminal, force_terminal=True, highlight=False, markup=False, emoji=False
        )
        self.is_shown = False
        self._streams = [errors]
        if output is not None and are_one_terminal(cast("TextIO", output), terminal):
            self._streams.append(output)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Have the streams print above the frames; in the end, the terminal is as if there had been none."""
        for stream in self._streams:
            stream.print_above(self.screen)
        self.is_shown = True
        try:
            with _told_of_continuation(self.screen):
                yield
        finally:
            self.hide()

    def hide(self) -> None:
        """Take the last frame away and let the streams print as before."""
        self.is_shown = False
        self.screen.close()
        for stream in self._streams:
            stream.print_above(None)

    async def run(self, observation: Observation) -> None:
        """Draw until cancelled."""
        while True:
            began = time.perf_counter()
            self.draw(observation)
            await asyncio.sleep(max(INTERVAL, (time.perf_counter() - began) / MOST_OF_THE_TIME))

    def draw(self, observation: Observation) -> None:
        """Draw one frame."""
        size = self.screen.size()
        lines = live_view(
            observation.frame(), observation.failures(), observation.drain(), size.columns, size.lines - 1
        )
        self.screen.draw(list(zip(self.styled(lines), (line.cell_len for line in lines), strict=True)))

    def styled(self, lines: Sequence[Text]) -> list[str]:
        """The lines as this terminal shows colours."""
        return styled(self._console, lines)


def styled(console: Console, lines: Sequence[Text]) -> list[str]:
    """The lines with the control sequences of their styles, as the console allows them."""
    with console.capture() as capture:
        for line in lines:
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
    return capture.get().splitlines()


@contextmanager
def _told_of_continuation(screen: Screen) -> Generator[None]:
    """After Ctrl-Z and ``fg``, the shell has written below the last frame."""
    continued = getattr(signal, "SIGCONT", None)
    if continued is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(continued, lambda number, frame: screen.forget())
    try:
        yield
    finally:
        signal.signal(continued, before)
