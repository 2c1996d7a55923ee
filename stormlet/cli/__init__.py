"""The command line: ``python -m stormlet``, or ``stormlet``.

Every command is the function of its name in the module of its name. The rest, from the ground up::

    output, units        standard output and its encoding; durations, rates and counts in words
    errors               errors in the user's terms, and by the user's own frames
    parameters           the parameters that commands share, and settings of a file, the environment and ``--set``
    help                 the look of ``--help`` and ``--version``
    running/             a run: its session, its end, and the live view
    inspecting/          a topology that is read and not run: its warnings, drawings and settings
    new, check, graph, describe, run, view, simulate, soak, dead_letters, bench    the commands
    app                  one command line, and its exit code
"""

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
