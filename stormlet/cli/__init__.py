"""The command line: ``python -m stormlet``, or ``stormlet``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

WRONG_USAGE = 2
NEEDED = ("cyclopts", "rich")


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"stormlet: the command line needs {' and '.join(missing)}: pip install 'stormlet[cli]'",
            file=sys.stderr,
        )
        return WRONG_USAGE
    from stormlet.cli.app import carry_out

    return carry_out(sys.argv[1:] if argv is None else argv)
