"""What a soak has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stormlet.errors import StormletError
from stormlet.runtime.run.handle import Running
from stormlet.testing.chaos.faults import FaultKind
from stormlet.testing.soaking.memory import MIB, start_and_end
from stormlet.testing.soaking.parts import SoakedKit


@dataclass(frozen=True, slots=True)
class Reading:
    """The memory of the process at one time."""

    seconds: float
    bytes: int | None
    """None where the system does not tell."""


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
        """MiB after the warm-up and at the end; None if the soak was too short to tell, or the system does not."""
        both = start_and_end([reading.bytes for reading in self.readings if reading.bytes is not None])
        return None if both is None else (both[0] / MIB, both[1] / MIB)


def counted(running: Running, parts: SoakedKit) -> Counter[str]:
    """What one run has done so far."""
    components = running.statistics().components
    spouts = [components[id] for id in parts.tasks.spouts]
    return Counter(
        acked=sum(each.acked for each in spouts),
        replayed=sum(each.replayed for each in spouts),
        dead_letters=sum(each.dead_letters for each in spouts),
        timeouts=parts.witness.timeouts,
        duplicates=parts.witness.executed_again,
        executed=sum(components[id].executed for id in parts.tasks.bolts),
        restarts=sum(each.restarts for each in components.values()),
        lost=parts.witness.lost,
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
    """What is wrong if memory has grown by more than so many MiB."""
    if report.memory is None or report.memory[1] - report.memory[0] <= allowed:
        return None
    start, end = report.memory
    return f"memory has grown from {start:.1f} MiB after the warm-up to {end:.1f} MiB, by more than {allowed:g} MiB"
