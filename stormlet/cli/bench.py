"""The ``bench`` command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, Final, TextIO, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.bench.catalogue import GROUPS, WORKLOADS, chosen
from stormlet.bench.catalogue import USUAL as USUAL_NAMES
from stormlet.bench.report import as_json, text
from stormlet.bench.rounds import Results, WorkloadFailed, measure
from stormlet.bench.workload import LoopName, Workload
from stormlet.cli.errors import FAILED
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag, Whole
from stormlet.cli.running.signals import signals_handled_by
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet bench
stormlet bench acked loops --rounds 9
stormlet bench state
stormlet bench --json > figures.json"""

QUICK_SCALE = 0.02


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """The options of every measurement, that of the benchmarks of a checkout included."""

    rounds: Annotated[Whole, Parameter(validator=Number(gte=1), help="Number of runs of each workload.")] = 5
    scale: Annotated[
        float,
        Parameter(validator=Number(gt=0, lte=1000), help="Amount of work of each; 1 is seconds of work."),
    ] = 1.0
    quick: Annotated[
        Flag, Parameter(help="Run one short round, to see that everything works. Its figures mean nothing.")
    ] = False
    loop: Annotated[LoopName, Parameter(help="The event loop.")] = "asyncio"
    json: Annotated[Flag, Parameter(help="Print every single figure as JSON.")] = False

    @property
    def rounds_run(self) -> int:
        """The number of rounds: one is quick."""
        return 1 if self.quick else self.rounds

    def measure(self, workloads: Sequence[Workload], module: str = "stormlet.bench") -> Results:
        """Measure, and show the progress on a terminal meanwhile; raises as :func:`~stormlet.bench.rounds.measure`."""
        scale = QUICK_SCALE if self.quick else self.scale
        try:
            with signals_handled_by(_leave):
                return measure(workloads, self.rounds_run, scale, self.loop, _show_progress, module)
        finally:
            _show("")


USUAL: Final = Measuring()


def bench(*names: str, options: Measuring = USUAL) -> int:
    """Measure what a tuple costs on this machine.

    The same work without a framework runs beside it, in alternating rounds.

    Parameters
    ----------
    names
        Workloads: loops, acked, unacked, latency. By default all of them. With state: those of epochs and keyed state.
    """
    for name in names:
        if name not in WORKLOADS and name not in GROUPS:
            groups = ", and ".join(f"{group} for {', '.join(members)}" for group, members in GROUPS.items())
            known = f"{', '.join(USUAL_NAMES)}, and {groups}"
            raise TargetError(f"there is no workload {name!r}; there are {known}")
    try:
        results = options.measure(chosen(names))
    except WorkloadFailed as error:
        print(f"stormlet: {error}", file=sys.stderr)
        return FAILED
    if options.json:
        write_utf8(as_json(results).decode() + "\n")
    else:
        write_text(text(results, options.rounds_run, options.loop) + "\n")
    return 0


def _leave(number: int, _frame: FrameType | None) -> None:
    """End by an exception: a process that dies of the signal leaves that of the workload behind."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _show_progress(number: int, name: str) -> None:
    _show(f"round {number}: {name}")


def _show(progress: str) -> None:
    """Show it on one line of a terminal, in place of what was shown before."""
    stream = cast("TextIO | None", sys.stderr)
    if stream is not None and stream.isatty():
        print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
