"""Handlers of Ctrl-C, SIGTERM and SIGHUP while a run lasts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias, cast

HANGUPS = (signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()
"""The signal of a closed terminal; not on Windows."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUPS)

Handler: TypeAlias = Callable[[int, FrameType | None], object] | signal.Handlers


@contextmanager
def signals_handled_by(handler: Handler) -> Generator[None]:
    """Have it handle them meanwhile, in the main thread; in others, signals cannot be handled.

    One that is ignored stays so: whoever started the process in the background wants that.
    """
    before = handle(handler)
    try:
        yield
    finally:
        for number, former in before:
            signal.signal(number, former)


def handle(handler: Handler) -> Sequence[tuple[signal.Signals, Handler]]:
    """Have it handle them from now on, where that can be; returns what did so before."""
    numbers = unignored() if threading.current_thread() is threading.main_thread() else ()
    return [(number, cast("Handler", signal.signal(number, handler))) for number in numbers]


def unignored() -> tuple[signal.Signals, ...]:
    """Those that are not ignored, and have no handler outside of Python, which could not be put back."""
    return tuple(each for each in SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None))
