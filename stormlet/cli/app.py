"""The commands, and what becomes of their errors.

Exit codes: 0 done, 1 crashed or with messages given up or left over, 2 wrong usage or an invalid topology,
128 + n when signal n ended a run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from stormlet.cli.report import explain
from stormlet.errors import InvalidTopology, StormletError, TargetError

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

COMMANDS = ("run", "check", "graph", "describe", "dead-letters", "new", "bench")
"""Each is the function of its name in the module of its name, which is loaded when it is called."""


def _app() -> App:
    app = App(
        name="stormlet",
        help="Storm's spouts, bolts and acking in one asyncio process.",
        help_epilogue="stormlet COMMAND --help shows the parameters of a command, with examples.",
        help_format="plaintext",
        version="unknown",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name in COMMANDS:
        function = name.replace("-", "_")
        app.command(f"stormlet.cli.{function}:{function}", name=name)
    return app


def carry_out(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; errors go to standard error, in the user's own
    terms."""
    try:
        return _app()(argv, exit_on_error=False, print_error=False) or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except CycloptsError as error:
        print(f"stormlet: {error}", file=sys.stderr)
        return WRONG_USAGE
    except StormletError as error:
        print(explain(error), file=sys.stderr)
        return WRONG_USAGE if isinstance(error, TargetError | InvalidTopology) else FAILED
