"""The end of a run before that of its sources: by a signal, by ``--duration``, or by a closed output."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType

from stormlet.cli.running.signals import HANGUPS, signals_handled_by
from stormlet.cli.running.streams import GuardedStream


class Stage(IntEnum):
    """The stages of the end."""

    RUNNING = 0
    DRAINING = 1
    CANCELLED = 2


class Ending:
    """Requests that a run shall end: the first one drains, a second one cancels (law C3)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stage = Stage.RUNNING
        self.signal: signal.Signals | None = None
        """The last one that asked."""
        self.since: float | None = None
        """The begin of the end, by ``time.monotonic()``."""
        self.stop: Callable[[], object] | None = None
        """``running.stop``, once there is something to drain."""
        self.cancel_start: Callable[[], object] = _nothing
        """Ends the run before that."""
        self.begun = asyncio.Event()
        """Set when the end has begun."""
        self._loop = loop

    @property
    def draining_for(self) -> float | None:
        """Seconds since the end began; None before."""
        return None if self.since is None else time.monotonic() - self.since

    def request(self, stage: Stage, number: signal.Signals | None = None) -> None:
        """Ask for this stage, from any thread or signal handler."""
        if self.stop is None:  # there is nothing to drain yet
            stage = Stage.CANCELLED
        self.since = time.monotonic() if self.since is None else self.since
        self.signal = number or self.signal
        before, self.stage = self.stage, max(self.stage, stage)
        self._loop.call_soon_threadsafe(self._act, before, self.stage)

    def _act(self, before: Stage, stage: Stage) -> None:
        self.begun.set()
        if self.stop is None:
            self.cancel_start()
        else:
            for _ in range(stage - before):
                self.stop()

    def begin(self) -> None:
        """The run has come to its end by itself."""
        self.since = time.monotonic() if self.since is None else self.since
        self.begun.set()

    def end_after(self, seconds: float) -> None:
        """Drain after so long, unless the end was asked for before."""
        self._loop.call_later(seconds, self._end_now)

    def _end_now(self) -> None:
        if self.stage is Stage.RUNNING:
            self.request(Stage.DRAINING)


@contextmanager
def ended_by_signals(ending: Ending, say: Callable[[str], object]) -> Generator[None]:
    """Ctrl-C and SIGTERM drain, once more cancels, and once more kills the process, for user code that never
    gives the loop a turn. SIGHUP only drains: from a terminal that is closed it may come twice.

    ``say`` is called in the signal handler.
    """

    def answer(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number)
        if name in HANGUPS and ending.stage is not Stage.RUNNING:
            return
        if ending.stage is Stage.CANCELLED:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        else:
            ending.request(Stage(ending.stage + 1), name)
            say(f"{name.name}: {_answer(ending, 'SIGTERM' if name in HANGUPS else 'once more')}\n")

    with signals_handled_by(answer):
        yield


def _answer(ending: Ending, again: str) -> str:
    if ending.stage is Stage.DRAINING:
        return f"draining; {again} cancels"
    return f"cancelling{'' if ending.stop else ' the start'}; {again} kills"


def write_at_once(text: str) -> None:
    """To standard error, past its buffer: a signal handler may have interrupted a print to it."""
    with suppress(OSError):
        os.write(2, text.encode())


@contextmanager
def ended_by_closed_output(
    ending: Ending, output: GuardedStream | None, say: Callable[[str], object]
) -> Generator[None]:
    """Cancel the run when standard output has lost its reader, as after ``| head``, instead of failing
    whatever prints."""
    if output is None:
        yield
        return

    def closed() -> None:
        say("standard output is closed: cancelling")
        output.closing_reported = True
        ending.request(Stage.CANCELLED)

    output.when_closed = closed
    if output.closed_by_reader:
        closed()
    try:
        yield
    finally:
        output.when_closed = _nothing


def _nothing() -> None:
    """The default of the calls above."""


@contextmanager
def interrupting(doing: str) -> Generator[Sequence[signal.Signals]]:
    """Have the first signal raise :class:`KeyboardInterrupt` in the main thread, and a second one kill. The list has
    the first one, once it has come; ``doing`` is what follows, in a word."""
    came: list[signal.Signals] = []

    def answer(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # once more kills
        came.append(signal.Signals(number))
        write_at_once(f"{came[0].name}: {doing}; once more kills\n")
        raise KeyboardInterrupt

    with signals_handled_by(answer):
        yield came
