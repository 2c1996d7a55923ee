"""Ctrl-C while the command line is loaded; imported before all else.

That takes a fraction of a second, in which Python would answer with a traceback of import statements. As there is
nothing to end yet but the process, the signal ends it. In a program that is not the command line nothing is changed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePath

PROGRAM = "stormlet"


def is_program(name: str, words: Sequence[str]) -> bool:
    """Whether a process is the command line, by the first of ``sys.argv`` and by ``sys.orig_argv``. Python calls it
    ``-m`` as long as the package is imported."""
    return ("-m", PROGRAM) in pairwise(words) if name == "-m" else PurePath(name).stem == PROGRAM


def imported() -> None:
    """The package is there: Ctrl-C does again what it does in Python."""
    if _TAKEN and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _take() -> bool:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    with suppress(ValueError):  # this is another thread
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return True
    return False


_TAKEN = is_program(sys.argv[0] if sys.argv else "", sys.orig_argv) and _take()
