"""The command: which workloads run, and the form of the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from benchmarks.catalogue import GROUPS, NOBODY, PEERS, WORKLOADS, in_order, names_of_peer, usual_names
from benchmarks.machine import describe, missing_peers
from benchmarks.markdown import markdown as as_markdown
from benchmarks.plain import text
from benchmarks.report import Report, as_json
from stormlet.bench.rounds import WorkloadFailed
from stormlet.cli.bench import USUAL, Measuring
from stormlet.cli.errors import FAILED, WRONG_USAGE
from stormlet.cli.help import UnboxedHelp
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import Flag
from stormlet.errors import TargetError


def main(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code."""
    app = App(
        name="python -m benchmarks",
        help_format="plaintext",
        help_formatter=UnboxedHelp(),
        version_flags=(),
        result_action="return_value",
    )
    app.default(_benchmarks)
    try:
        return app(argv, exit_on_error=False, print_error=False) or 0
    except WorkloadFailed as error:
        return _refused(error, FAILED)
    except (CycloptsError, TargetError) as error:
        return _refused(error, WRONG_USAGE)


def _refused(error: Exception, code: int) -> int:
    print(f"benchmarks: {error}", file=sys.stderr)
    return code


def _benchmarks(
    *names: str,
    against: Annotated[
        tuple[str, ...], Parameter(negative=(), consume_multiple=True, show_default=False)
    ] = (),
    options: Measuring = USUAL,
    markdown: Flag = False,
) -> int:
    """Measure stormlet on this machine, beside the same work without a framework and by others.

    Parameters
    ----------
    names
        Workloads; by default all that do not need Spark, as spark and spark-flat do, are not of the groups state and
        watched, and all peers that are installed.
    against
        Peers to compare with: queues, bytewax, streamz, pathway, or none. By default all that are installed, unless
        workloads are named.
    markdown
        Print the tables of the README, with machine, versions and date.
    """
    chosen = _chosen(names, against)
    results = options.measure([WORKLOADS[name] for name in chosen], "benchmarks.child")
    report = Report(describe(chosen, options.loop), options.rounds_run, results)
    if options.json:
        write_utf8(as_json(report).decode() + "\n")
    else:
        write_text((as_markdown(report) if markdown else text(report)) + "\n")
    return 0


def _chosen(names: Sequence[str], against: Sequence[str]) -> Sequence[str]:
    _check_known("workload", names, [*WORKLOADS, *GROUPS])
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
    for name in in_order(names):
        workload = WORKLOADS[name]
        if not workload.available:
            raise TargetError(f"workload {name!r} needs {workload.needs}, which is not installed here")
