"""The command line: ``python -m stormlet``, or ``stormlet``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from stormlet.cli.running.signals import handle, signals_handled_by

WRONG_USAGE = 2
NEEDED = ("cyclopts", "rich")


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code; without ``argv`` that of this process, which ends then."""
    with signals_handled_by(signal.SIG_DFL):  # there is nothing to end yet but the process
        if not _is_installed():
            return WRONG_USAGE
        from stormlet.cli.app import carry_out
    if argv is not None:
        return carry_out(argv)
    code = carry_out(sys.argv[1:])
    handle(signal.SIG_DFL)
    return code


def _is_installed() -> bool:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"stormlet: the command line needs {' and '.join(missing)}: pip install 'stormlet[cli]'",
            file=sys.stderr,
        )
    return not missing
