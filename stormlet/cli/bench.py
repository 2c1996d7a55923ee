"""The ``bench`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, TextIO, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.bench.catalogue import NOBODY, PEERS, WORKLOADS, in_order, names_of_peer, usual_names
from stormlet.bench.event_loop import LoopName
from stormlet.bench.machine import describe, missing_peers
from stormlet.bench.markdown import markdown as as_markdown
from stormlet.bench.plain import text
from stormlet.bench.report import Report, as_json
from stormlet.bench.rounds import WorkloadFailed, measure
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag, Whole
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet bench
stormlet bench acked unacked loops --rounds 9
stormlet bench acked loops --against bytewax streamz
stormlet bench spark spark-flat --rounds 1
stormlet bench --json > figures.json"""

FAILED = 1
QUICK_SCALE = 0.02


def bench(
    *names: str,
    against: Annotated[
        tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)
    ] = (),
    rounds: Annotated[Whole, Parameter(validator=Number(gte=1))] = 5,
    scale: Annotated[float, Parameter(validator=Number(gt=0, lte=1000))] = 1.0,
    quick: Flag = False,
    loop: LoopName = "asyncio",
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Measure what a tuple costs on this machine.

    The same work without a framework, and by others, runs beside it, in alternating rounds.

    Parameters
    ----------
    names
        Workloads; by default all that do not need Spark, as spark and spark-flat do, and all peers that are
        installed.
    against
        Whom to compare with: queues, bytewax, streamz, pathway, or none. By default all that are installed, unless
        workloads are named.
    rounds
        How often each workload runs.
    scale
        How much each does, 1 being seconds of work.
    quick
        One short round: whether everything works. Its figures mean nothing.
    loop
        The event loop.
    json
        Print every single figure as JSON.
    markdown
        Print the tables of the README, with machine, versions and date.
    """
    chosen = _chosen(names, against)
    rounds, scale = (1, QUICK_SCALE) if quick else (rounds, scale)
    try:
        results = measure(chosen, rounds, scale, loop, lambda number, name: _tell(f"round {number}: {name}"))
    except WorkloadFailed as error:
        _tell("")
        print(f"stormlet: {error}", file=sys.stderr)
        return FAILED
    _tell("")
    _write(Report(describe(chosen, loop), rounds, results), json=json, markdown=markdown)
    return 0


def _chosen(names: Sequence[str], against: Sequence[str]) -> Sequence[str]:
    _check_known("workload", names, list(WORKLOADS))
    _check_known("peer", against, [*PEERS, NOBODY])
    _check_installed(names, against)
    installed = [peer for peer in PEERS if peer not in missing_peers()]
    peers = against or ((), installed)[not names]
    of_peers = [name for peer in peers for name in names_of_peer(peer)]
    return in_order([*(names or usual_names()), *of_peers])


def _check_known(kind: str, given: Sequence[str], known: Sequence[str]) -> None:
    for each in given:
        if each not in known:
            raise TargetError(f"there is no {kind} {each!r}; there are {', '.join(known)}")


def _check_installed(names: Sequence[str], against: Sequence[str]) -> None:
    for peer in against:
        if peer in missing_peers():
            raise TargetError(f"{peer} is not installed: pip install {peer}")
    for name in names:
        workload = WORKLOADS[name]
        if not workload.available:
            raise TargetError(f"workload {name!r} needs {workload.needs}, which is not installed here")


def _tell(how_far: str) -> None:
    """To people who wait, in place of what they were told before."""
    if _people_wait():
        print(f"\r\033[K{how_far}", end="", file=sys.stderr, flush=True)


def _people_wait() -> bool:
    stream = cast("TextIO | None", sys.stderr)
    return stream is not None and stream.isatty()


def _write(report: Report, *, json: bool, markdown: bool) -> None:
    if json:
        write_utf8(as_json(report).decode() + "\n")
    else:
        write_text((as_markdown(report) if markdown else text(report)) + "\n")
