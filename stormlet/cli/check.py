"""The ``check`` command: what is wrong with a topology, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import get_terminal_size
from textwrap import fill

from stormlet.cli.inspecting.checks import findings
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.inspection import Inspection, inspect_target
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Flag, Target, TargetOptions
from stormlet.core.shortened import printable

EXAMPLES = """\
stormlet check topology.py
stormlet check topology.py:build --arg path=words.txt --set ackers=0
stormlet check topology.py --strict && stormlet run topology.py"""

WARNED = 1


def check(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    strict: Flag = False,
) -> int:
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
    return WARNED if found and strict else 0


def ignored_settings(inspection: Inspection) -> Iterator[Finding]:
    """Storm's names that have no effect here."""
    for name, (origin, reason) in inspection.settings.ignored.items():
        yield Finding("ignored", None, f"{origin}: {name} has no effect: {reason}", "leave it out")


def report(headline: str, found: list[Finding], width: int) -> str:
    """One line that says how it is, and a block for each finding, no wider than ``width`` columns."""
    count = f"{len(found) or 'no'} warning{'' if len(found) == 1 else 's'}"
    blocks = (_block(each, width) for each in found)
    return "\n".join((f"{headline}; {count}", *blocks)) + "\n"


def _block(finding: Finding, width: int) -> str:
    return "\n".join(
        (
            "",
            _wrapped(f"{finding.rule}: {finding.problem}.", width, "  "),
            _wrapped(f"  -> {finding.advice}", width, "     "),
        )
    )


def _wrapped(text: str, width: int, indent: str) -> str:
    return fill(
        printable(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
