"""The ``check`` command: what is wrong with a topology, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import get_terminal_size
from textwrap import fill

from stormlet.cli.errors import FAILED
from stormlet.cli.inspecting.checks import findings
from stormlet.cli.inspecting.checks.finding import Finding
from stormlet.cli.inspecting.formats import MARKS, without_marks
from stormlet.cli.inspecting.inspection import Inspection, inspect_target
from stormlet.cli.output import can_show, write_text
from stormlet.cli.parameters import DEFAULTS, Engine, Flag, Target, TargetOptions, misnamed_connections
from stormlet.core.shortened import counted, printable
from stormlet.model.checks.durable import check_epochs

EXAMPLES = """\
stormlet check topology.py
stormlet check topology.py:build --arg path=words.txt --set ackers=0
stormlet check topology.py --engine spark
stormlet check topology.py --strict && stormlet run topology.py"""
IN_PROCESS = frozenset(
    {"high water", "late replay", "slow batch", "held too long", "boundless prefetch", "small batches"}
)
"""Rules about time and room, of which a batch on Spark knows nothing."""


def check(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    engine: Engine = "process",
    strict: Flag = False,
) -> int:
    """Validate a topology without running it, and warn of what is allowed but probably not meant.

    The code of spouts and bolts is read, never run. The exit code is 0, with warnings too; 2 if the topology is
    invalid.

    Parameters
    ----------
    engine
        The engine that is to run it. For "spark" the stages are shown, and what has no effect there; what Spark cannot
        run is invalid. Spark is not started.
    strict
        Exit with 1 if there is a warning.
    """
    inspection = inspect_target(target, options, state_survives=engine == "spark")
    if engine != "spark" and inspection.place is None:
        check_epochs(inspection.description)
    width = min(get_terminal_size().columns, 100)
    stages = _stages(inspection, width) if engine == "spark" else ""
    found = [*ignored_settings(inspection), *findings(inspection.description)]
    if engine == "spark":
        found = [each for each in found if each.rule not in IN_PROCESS]
    headline, *rest = report(inspection.headline, found, width).splitlines(keepends=True)
    state = "" if engine == "spark" else _state(inspection, width)
    write_text("".join([headline, stages, state, *rest]))
    return FAILED if found and strict else 0


def _stages(inspection: Inspection, width: int) -> str:
    """The stages of the topology on Spark, and notes. Raises :class:`~stormlet.errors.InvalidTopology` if Spark cannot
    run it."""
    from stormlet.cli.inspecting.stages import notes_of, stages_of  # which load the bridge

    notes = [_wrapped(f"note: {each}.", width) for each in notes_of(inspection)]
    text = "\n".join(["", stages_of(inspection, width), *notes, *([""] if notes else [])])
    return text if can_show(MARKS) else without_marks(text)


def _state(inspection: Inspection, width: int) -> str:
    """A note on what becomes of its state."""
    words = inspection.state_words
    return f"{_wrapped(f'note: {words}.', width)}\n" if words else ""


def ignored_settings(inspection: Inspection) -> Iterator[Finding]:
    """Storm's names that have no effect here, and addresses of other components."""
    for name, (origin, reason) in inspection.settings.ignored.items():
        yield Finding("ignored", None, f"{origin}: {name} has no effect: {reason}", "leave it out")
    for words in misnamed_connections(inspection.components):
        yield Finding("ignored", None, words, "give it the name of a source or sink, or leave it out")


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
