"""Ctrl-C while the command line is loading; imported before all else.

Loading takes a fraction of a second, in which Python would answer with a traceback of import statements. As there is
nothing to end yet but the process, the signal ends it. In any other program nothing is changed.
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
    """Return True if a process is the command line, by the first of ``sys.argv`` and by ``sys.orig_argv``."""
    # Python sets the first one to -m until the package has been imported.
    return ("-m", PROGRAM) in pairwise(words) if name == "-m" else PurePath(name).stem == PROGRAM


def imported() -> None:
    """Give Ctrl-C its usual effect back, now that the package is imported."""
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
