"""The ``bench`` command."""

from __future__ import annotations

import sys
from typing import Annotated, TextIO, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.bench.report import as_json, text
from stormlet.bench.rounds import WorkloadFailed, measure
from stormlet.bench.word_count import WORKLOADS
from stormlet.bench.workload import LoopName
from stormlet.cli.errors import FAILED
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag, Whole
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet bench
stormlet bench acked loops --rounds 9
stormlet bench --json > figures.json"""

QUICK_SCALE = 0.02

Rounds = Annotated[Whole, Parameter(validator=Number(gte=1))]
Scale = Annotated[float, Parameter(validator=Number(gt=0, lte=1000))]


def bench(
    *names: str,
    rounds: Rounds = 5,
    scale: Scale = 1.0,
    quick: Flag = False,
    loop: LoopName = "asyncio",
    json: Flag = False,
) -> int:
    """Measure what a tuple costs on this machine.

    The same work without a framework runs beside it, in alternating rounds.

    Parameters
    ----------
    names
        Workloads: loops, acked, unacked, latency. By default all of them.
    rounds
        Number of runs of each workload.
    scale
        Amount of work of each; 1 is seconds of work.
    quick
        Run one short round, to see that everything works. Its figures mean nothing.
    loop
        The event loop.
    json
        Print every single figure as JSON.
    """
    for name in names:
        if name not in WORKLOADS:
            raise TargetError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    rounds, scale = (1, QUICK_SCALE) if quick else (rounds, scale)
    chosen = [each for name, each in WORKLOADS.items() if name in (names or WORKLOADS)]
    try:
        results = measure(chosen, rounds, scale, loop, show_progress)
    except WorkloadFailed as error:
        clear_progress()
        print(f"stormlet: {error}", file=sys.stderr)
        return FAILED
    clear_progress()
    if json:
        write_utf8(as_json(results).decode() + "\n")
    else:
        write_text(text(results, rounds, loop) + "\n")
    return 0


def show_progress(number: int, name: str) -> None:
    """Show the round and the workload on one line of a terminal, in place of the last ones."""
    _show(f"round {number}: {name}")


def clear_progress() -> None:
    """Leave that line empty."""
    _show("")


def _show(progress: str) -> None:
    stream = cast("TextIO | None", sys.stderr)
    if stream is not None and stream.isatty():
        print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
