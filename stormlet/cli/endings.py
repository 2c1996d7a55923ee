"""What ends a run from outside: Ctrl-C, SIGTERM, and a reader of its output that has had enough."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TextIO, cast

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ANSWERS = ("draining; once more cancels", "cancelling; once more kills")


@contextmanager
def stopping_on_signals(stop: Callable[[], object]) -> Generator[None]:
    """Ctrl-C and SIGTERM drain the topology, a second one cancels it (law C3); a third one kills the process,
    for user code that never gives the loop a turn."""
    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield
        return
    loop = asyncio.get_running_loop()
    answers = iter(ANSWERS)

    def answer(number: int, frame: FrameType | None) -> None:
        text = next(answers, None)
        if text is None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        else:
            _say_at_once(f"{signal.Signals(number).name}: {text}")
            loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, answer) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say_at_once(text: str) -> None:
    """From a signal handler, which may have interrupted a print to the same stream."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


@contextmanager
def stopping_on_closed_output(stop: Callable[[], object]) -> Generator[None]:
    """When nobody reads standard output any longer, as after ``| head``, cancel the topology instead of
    failing whatever prints."""
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        say("standard output is closed: cancelling")
        stop()
        stop()

    output = cast("TextIO | None", sys.stdout)
    if output is None:  # closed before Python began: prints go nowhere
        yield
        return
    watched = WatchedOutput(output, partial(loop.call_soon_threadsafe, cancel))
    sys.stdout = cast("TextIO", watched)
    try:
        yield
    finally:
        watched.flush()
        sys.stdout = output


class WatchedOutput:
    """A text stream that goes on to nowhere when its pipe is closed."""

    def __init__(self, stream: TextIO, closed: Callable[[], object]) -> None:
        self._stream = stream
        self._closed = closed

    def write(self, text: str) -> int:
        """As a text stream does."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """As a text stream does."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._give_up()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._closed()


def say(text: str) -> None:
    """Tell the user on standard error, which is not part of what the topology prints."""
    print(text, file=sys.stderr, flush=True)
