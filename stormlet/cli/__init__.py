"""The command line: ``python -m stormlet run TARGET``.

Exit codes: 0 done, 1 crashed or with messages given up or left over, 2 wrong usage or an invalid topology,
130 interrupted before it had started. A third Ctrl-C or SIGTERM ends the process as if nothing handled it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

from stormlet.cli.bench import bench
from stormlet.cli.report import explain
from stormlet.cli.run import run
from stormlet.core.configuration import parse_setting
from stormlet.errors import InvalidConfiguration, InvalidTopology, StormletError, TargetError

AddCommand: TypeAlias = Callable[..., argparse.ArgumentParser]

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

EXAMPLES = """\
examples:
  python -m stormlet run topology.py
  python -m stormlet run topology.py:build --arg path=words.txt
  python -m stormlet run package.module:topology --set ackers=2 --set message_timeout=none
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code; errors go to standard error, in the user's own
    terms."""
    options = _parser().parse_args(argv)
    try:
        return _carry_out(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except StormletError as error:
        print(explain(error), file=sys.stderr)
        return WRONG_USAGE if isinstance(error, TargetError | InvalidTopology) else FAILED


def _carry_out(options: argparse.Namespace) -> int:
    if options.command == "bench":
        return bench(options.names, rounds=options.rounds, scale=options.scale, json=options.json)
    return run(options.target, dict(options.arg), dict(options.set))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stormlet", description="Storm's model in one asyncio process.")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    _add_run(commands.add_parser)
    _add_bench(commands.add_parser)
    return parser


def _add_bench(add_command: AddCommand) -> None:
    command = add_command(
        "bench",
        help="measure what a tuple costs on this machine",
        description="Measure what a tuple costs, beside the same work without a framework, in alternating rounds.",
    )
    command.add_argument("names", metavar="NAME", nargs="*", help="workloads; all of them by default")
    command.add_argument(
        "--rounds", type=_at_least_one, default=5, help="how often each workload runs (default 5)"
    )
    command.add_argument(
        "--scale", type=float, default=1.0, help="how much each does, 1 being seconds of work"
    )
    command.add_argument("--json", action="store_true", help="print every single figure as JSON")


def _add_run(add_command: AddCommand) -> None:
    command = add_command(
        "run",
        help="run a topology until its spouts have ended and everything is settled",
        description="Run a topology until its spouts have ended and everything is settled. "
        "Ctrl-C or SIGTERM drains it, a second one cancels it, a third one kills.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "target", metavar="TARGET", help="topology.py, topology.py:name or package.module:name"
    )
    command.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        type=_argument,
        action="append",
        default=[],
        help="fill a parameter of the function that returns the topology",
    )
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="override an option of the topology, by our name or Storm's",
    )


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name, value


def _setting(text: str) -> tuple[str, object]:
    try:
        return parse_setting(text)
    except InvalidConfiguration as error:
        raise argparse.ArgumentTypeError(str(error)) from None
