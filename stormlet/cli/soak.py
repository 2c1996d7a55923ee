"""The ``soak`` command: a topology at full load in real time, disturbed, judged and weighed."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.cli.errors import FAILED
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Target, TargetOptions, Whole
from stormlet.cli.units import duration
from stormlet.core.shortened import counted, escaped, printable
from stormlet.testing import SoakFailed, SoakReport
from stormlet.testing import soak as soak_topology

EXAMPLES = """\
stormlet soak topology.py
stormlet soak topology.py --minutes 120 --every 0.1
stormlet soak package.module:topology --set queue_capacity=10 --growth 50"""

MIB = 1024 * 1024

Positive = Annotated[float, Parameter(validator=Number(gt=0))]


def soak(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    minutes: Positive = 20.0,
    burst: Positive = 30.0,
    every: Positive = 0.5,
    growth: Positive = 16.0,
    seed: Annotated[Whole | None, Parameter(validator=Number(gte=0))] = None,
) -> int:
    """Run a topology at full load in real time, while tasks are killed, bolts raise and inputs are slow.

    Between bursts the spouts pause until everything is settled: then no message may be missing, and the memory is
    read. A topology that ends is run again. The exit code is 1 when a message is lost, reported twice, or acked too
    early, when it hangs, or when memory grows.

    Parameters
    ----------
    minutes
        Length of the soak.
    burst
        Seconds between two rests.
    every
        Mean of the seconds between two faults.
    growth
        MiB by which the memory may grow after the warm-up, which is the first quarter of the time.
    seed
        Seed of the faults, as a soak prints it. Real time does not repeat itself.
    """
    layered = options.layered()
    topology = options.topology(target)
    try:
        report = soak_topology(
            topology,
            minutes=minutes,
            burst=burst,
            every=every,
            growth=growth,
            seed=seed,
            configuration=layered.values,
            on_rest=_report_progress,
        )
    except SoakFailed as failed:
        write_text(f"{escaped(str(failed))}\n\n{_table(failed.report)}\n")
        return FAILED
    write_text(f"{_table(report)}\n")
    return 0


def _report_progress(report: SoakReport) -> None:
    counts, weight = report.counts, report.readings[-1].bytes
    memory = "" if weight is None else f", {weight / MIB:.1f} MiB"
    print(
        f"{duration(report.seconds)}: {counted(counts['acked'], 'message')} acked, "
        f"{counted(report.faults.total(), 'fault')}, {counted(counts['replayed'], 'replay')}{memory}",
        file=sys.stderr,
        flush=True,
    )


def _table(report: SoakReport) -> str:
    rows = list(_rows(report))
    width = max(len(name) for name, _ in rows)
    where = f"{counted(os.cpu_count() or 1, 'core')}, {platform.python_implementation()} {platform.python_version()}"
    head = f"{printable(report.topology)}: {duration(report.seconds)} on {where}, seed {report.seed}"
    return "\n".join((head, *(f"  {name:<{width}}  {value}" for name, value in rows)))


def _rows(report: SoakReport) -> Iterator[tuple[str, str]]:
    counts, seconds = report.counts, max(report.seconds, 1e-9)
    yield "messages acked", f"{counts['acked']:,} ({counts['acked'] / seconds:,.0f} a second)"
    yield "inputs executed", f"{counts['executed']:,} ({counts['executed'] / seconds:,.0f} a second)"
    for kind, number in sorted(report.faults.items(), key=lambda each: each[0].value):
        yield f"faults: {kind.value}", f"{number:,}"
    for name in ("restarts", "timeouts", "replayed", "duplicates", "dead_letters", "lost"):
        yield name.replace("_", " "), f"{counts[name]:,}"
    yield "memory", _memory(report)


def _memory(report: SoakReport) -> str:
    if any(reading.bytes is None for reading in report.readings):
        return "unknown: this system does not report it"
    if report.memory is None:
        return "too short to be seen"
    start, end = report.memory
    return f"{start:.1f} MiB after the warm-up, {end:.1f} MiB at the end"
