"""Reports of runs that never were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.machine import Machine
from benchmarks.report import Report
from stormlet.bench.rounds import Measured, Pauses, Result

MACHINE = Machine(
    date="2026-11-22",
    python="CPython 3.11.7",
    processor="an abacus",
    cores=2,
    system="Linux",
    loop="asyncio",
    stormlet="0.1.0",
    compiled=False,
    packages={"msgspec": "0.22.0"},
    missing={},
)
PAUSES = (Pauses(3, 6.0, 4.0), Pauses(5, 2.0, 1.0), Pauses(4, 5.0, 3.0))


def report_of(
    figures: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    machine: Machine = MACHINE,
    collector: Sequence[Pauses] = (),
) -> Report:
    """What a run would have measured, by workload and figure."""
    results = {
        name: Result({which: Measured(values) for which, values in each.items()}, collector)
        for name, each in figures.items()
    }
    rounds = max((len(values) for each in figures.values() for values in each.values()), default=1)
    return Report(machine, rounds, results)
