"""The report of a soak: its counts, and the memory of the process, which must not grow."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from stormlet.errors import StormletError
from stormlet.runtime.run.handle import Running
from stormlet.testing.chaos.faults import FaultKind
from stormlet.testing.soaking.kit import SoakedRun

MIB = 1024 * 1024
FEWEST = 8
"""Readings below which nothing can be said."""
WARM_UP = 0.25
"""The part of the readings that does not count: caches fill, and the allocator takes what it will use again."""

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """The resident memory of the process, after a garbage collection; the most that it ever was, where the system does
    not report more; None where it reports nothing, as Windows."""
    gc.collect()
    if _STATM.is_file():
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return _most_bytes()


def _most_bytes() -> int | None:
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def start_and_end(readings: Sequence[int]) -> tuple[float, float] | None:
    """The medians of the first and of the last third after the warm-up; None for too few readings."""
    if len(readings) < FEWEST:
        return None
    warm = readings[int(len(readings) * WARM_UP) :]
    third = len(warm) // 3
    return median(warm[:third]), median(warm[-third:])


@dataclass(frozen=True, slots=True)
class Reading:
    """The memory of the process at one time."""

    seconds: float
    bytes: int | None
    """None where the system does not report it."""


@dataclass(slots=True)
class SoakReport:
    """Counts, and readings of the memory."""

    topology: str
    seed: int
    seconds: float = 0.0
    runs: int = 0
    """A topology that ends is run again and again."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """``acked`` messages, ``replayed`` ones, ``dead_letters``, ``timeouts``, ``duplicates``, ``executed`` inputs,
    ``restarts``, and ``lost`` messages, which have no outcome. A duplicate is an input that was executed in
    an attempt which then failed."""
    faults: Counter[FaultKind] = field(default_factory=Counter[FaultKind])
    readings: list[Reading] = field(default_factory=list[Reading])
    """Of the memory, when nothing was under way."""

    @property
    def memory(self) -> tuple[float, float] | None:
        """MiB after the warm-up and at the end; None if the soak was too short, or the system does not report it."""
        both = start_and_end([reading.bytes for reading in self.readings if reading.bytes is not None])
        return None if both is None else (both[0] / MIB, both[1] / MIB)


def counted(running: Running, run: SoakedRun) -> Counter[str]:
    """The counts of one run so far."""
    components = running.statistics().components
    spouts = [components[id] for id in run.tasks.spouts]
    return Counter(
        acked=sum(each.acked for each in spouts),
        replayed=sum(each.replayed for each in spouts),
        dead_letters=sum(each.dead_letters for each in spouts),
        timeouts=run.witness.timeouts,
        duplicates=run.witness.executed_again,
        executed=sum(components[id].executed for id in run.tasks.bolts),
        restarts=sum(each.restarts for each in components.values()),
        lost=run.witness.lost,
    )


class SoakFailed(StormletError, AssertionError):
    """A message was lost, the law was broken otherwise, or memory has grown. The message has the last lines of what
    happened."""

    def __init__(self, report: SoakReport, violations: Sequence[str], log: Sequence[str] = ()) -> None:
        super().__init__(report, violations, log)
        self.report = report
        self.violations = violations
        self.log = log

    def __str__(self) -> str:
        report = self.report
        return "\n".join(
            (
                f"topology {report.topology!r}, seed {report.seed}, after {report.seconds:.0f} s: {self.violations[0]}",
                *(f"and: {violation}" for violation in self.violations[1:4]),
                *self.log,
            )
        )


def growth_of(report: SoakReport, allowed: float) -> str | None:
    """The breach, if memory has grown by more than so many MiB."""
    if report.memory is None or report.memory[1] - report.memory[0] <= allowed:
        return None
    start, end = report.memory
    return f"memory has grown from {start:.1f} MiB after the warm-up to {end:.1f} MiB, by more than {allowed:g} MiB"
