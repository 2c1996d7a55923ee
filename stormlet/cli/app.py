"""The commands, and what becomes of their errors.

Exit codes: 0 done, 1 crashed or with messages given up or left over, 2 wrong usage, an invalid topology, or a state or
a file of a run that cannot be used, 128 + n when signal n ended a run.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

from cyclopts import App, CycloptsError, Group, UnknownCommandError, UnusedCliTokensError
from cyclopts.exceptions import MissingArgumentError

from stormlet.cli.errors import FAILED, INTERRUPTED, WRONG_USAGE, as_shown, exit_code, explain
from stormlet.cli.help import UnboxedHelp, epilogue, versions
from stormlet.cli.output import is_closed, send_nowhere
from stormlet.cli.running.signals import signals_handled_by
from stormlet.errors import StormletError

EXAMPLES = """\
stormlet new temperatures
stormlet run temperatures/temperatures.py"""

PY4J = ("py4j.clientserver", "py4j.java_gateway")
"""The loggers of the calls to a JVM."""

FURTHER = "'stormlet COMMAND --help' shows the parameters of a command, with examples."

COMMANDS = {
    "new": "Write a small topology with its test, to begin from.",
    "check": "Validate a topology without running it.",
    "graph": "Draw the components and the streams between them.",
    "describe": "Show tasks and settings, and where each value came from.",
    "run": "Run a topology until everything is done.",
    "view": "Open a snapshot of a run's page.",
    "top": "Watch a run in this terminal.",
    "simulate": "Run a topology under many seeds and faults, on simulated time.",
    "soak": "Run a topology for minutes at full load, with faults.",
    "dead-letters": "List the messages that a run gave up.",
    "state": "Look into a state file, and change it by hand.",
    "bench": "Measure what a tuple costs on this machine.",
}
"""In the order of use, with what each does. The command is the function of its name in the module of its name, which
is loaded only when it is called."""

GROUP = "state"
"""The command that has commands of its own."""


def carry_out(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; errors go to standard error, in the user's own
    terms."""
    called, within = (*(each for each in argv if not each.startswith("-")), None, None)[:2]
    try:
        with signals_handled_by(signal.SIG_DFL):  # as long as nothing but modules is loaded
            app = _app(called, within)
        with _quiet_about_interrupts():
            code = app(argv, exit_on_error=False, print_error=False) or 0
        if not is_closed():
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("stormlet: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        return _give_output_up(error)
    except CycloptsError as error:
        return _refuse(called, within, error)
    except StormletError as error:
        print(explain(error), file=sys.stderr)
        return exit_code(error)
    return code


@contextmanager
def _quiet_about_interrupts() -> Generator[None]:
    """Leave out of the log Ctrl-C, of which Py4J has some forty lines to say, and calls to the JVM that PySpark's
    handler of Ctrl-C makes in the midst of another one."""
    # A filter holds for what its own logger is given, and not for what comes from those below.
    loggers = [logging.getLogger(name) for name in ("", *PY4J)]
    for each in loggers:
        each.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or "reentrant call inside" in str(error):
            return False
        error = error.__context__
    return True


def _app(called: str | None, within: str | None) -> App:
    app = App(
        name="stormlet",
        help="Storm's spouts, bolts and acking in one asyncio process.",
        help_epilogue=f"{epilogue(EXAMPLES)}\n\n{FURTHER}",
        help_format="plaintext",
        help_formatter=UnboxedHelp(),
        group_parameters=Group("Options"),
        version=versions,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for place, (name, summary) in enumerate(COMMANDS.items()):
        function = name.replace("-", "_")
        if name == called == GROUP:
            app.command(import_module(f"stormlet.cli.{GROUP}").group(within))
        elif name == called:
            module = import_module(f"stormlet.cli.{function}")
            app.command(getattr(module, function), name=name, help_epilogue=epilogue(module.EXAMPLES))
        else:
            app.command(f"stormlet.cli.{function}:{function}", name=name, help=summary, sort_key=place)
    return app


def _refuse(called: str | None, within: str | None, error: CycloptsError) -> int:
    words, known = ["stormlet"], COMMANDS
    if called is not None and called in COMMANDS:
        words.append(called)
    if called == GROUP:
        known = import_module(f"stormlet.cli.{GROUP}").COMMANDS
        words += [within] if within is not None and within in known else []
    program = " ".join(words)
    print(f"stormlet: {as_shown(_usage_error(error, known))}\n'{program} --help' shows more", file=sys.stderr)
    return WRONG_USAGE


def _usage_error(error: CycloptsError, known: Collection[str]) -> str:
    """In the words of our other messages, where those of cyclopts are about Python."""
    match error:
        case UnknownCommandError(unused_tokens=[wrong, *_]) if wrong.startswith("-"):
            return f"there is no option {wrong!r} before the command"
        case UnknownCommandError(unused_tokens=[wrong, *_]):
            near = get_close_matches(wrong, known)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            return f"there is no command {wrong!r}; {hint}"
        case UnusedCliTokensError(unused_tokens=[*unused]):
            return f"unexpected {' '.join(map(repr, unused))}"
        case MissingArgumentError(argument=argument, keyword=keyword) if argument is not None:
            return f"{keyword} needs a value" if keyword else f"{argument.name} is missing"
        case _:
            return str(error)


def _give_output_up(error: OSError) -> int:
    """Drop further output, without a message after ``| head``. Python flushes at its end, which must not fail again."""
    if not isinstance(error, BrokenPipeError):
        # The error of a file names it; that of the output names nothing.
        why = str(error) if error.filename else f"the output cannot be written: {error.strerror or error}"
        print(f"stormlet: {why}", file=sys.stderr)
    if not is_closed():
        send_nowhere(sys.stdout)
    return FAILED
