"""The ``check`` command: what is wrong with a topology, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import get_terminal_size
from textwrap import fill

from stormlet.cli.errors import FAILED
from stormlet.cli.inspecting.checks import findings
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.inspection import Inspection, inspect_target
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Flag, Target, TargetOptions
from stormlet.cli.units import counted
from stormlet.core.shortened import printable

EXAMPLES = """\
stormlet check topology.py
stormlet check topology.py:build --arg path=words.txt --set ackers=0
stormlet check topology.py --strict && stormlet run topology.py"""


def check(target: Target, /, *, options: TargetOptions = DEFAULTS, strict: Flag = False) -> int:
    """Validate a topology without running it, and warn of what is allowed but probably not meant.

    The code of spouts and bolts is read, never run. The exit code is 0, with warnings too; 2 if the topology is
    invalid.

    Parameters
    ----------
    strict
        Exit with 1 if there is a warning.
    """
    inspection = inspect_target(target, options)
    found = [*ignored_settings(inspection), *findings(inspection.description)]
    write_text(report(inspection.headline, found, min(get_terminal_size().columns, 100)))
    return FAILED if found and strict else 0


def ignored_settings(inspection: Inspection) -> Iterator[Finding]:
    """Storm's names that have no effect here."""
    for name, (origin, reason) in inspection.settings.ignored.items():
        yield Finding("ignored", None, f"{origin}: {name} has no effect: {reason}", "leave it out")


def report(headline: str, found: list[Finding], width: int) -> str:
    """One line that says how it is, and a block for each finding, no wider than ``width`` columns."""
    lines = [f"{headline}; {counted(len(found), 'warning') if found else 'no warnings'}"]
    for each in found:
        lines += "", _wrapped(f"{each.rule}: {each.problem}.", width), _wrapped(f"  -> {each.advice}", width)
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int) -> str:
    indent = "     " if text.startswith(" ") else "  "
    return fill(
        printable(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
