"""Runs the workloads in rounds, and relates what was measured in the same round."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from stormlet.bench import child
from stormlet.bench.catalogue import WORKLOADS
from stormlet.bench.collector import Pauses
from stormlet.bench.event_loop import LoopName

LONGEST = 900.0
"""Seconds after which a workload is given up."""


class WorkloadFailed(Exception):
    """A workload has raised, gave a wrong result, or does not come to its end."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one workload over all rounds."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The one to quote."""
        return median(self.values)

    def over(self, other: Measured) -> Measured:
        """The ratios of the two, each within its round."""
        return Measured([ours / theirs for ours, theirs in zip(self.values, other.values, strict=True)])


@dataclass(frozen=True, slots=True)
class Result:
    """One workload over all rounds."""

    figures: Mapping[str, Measured]
    collector: Sequence[Pauses] = field(default=())


Results = Mapping[str, Result]
"""By the name of the workload."""

Progress = Callable[[int, str], None]
"""Is told the number of the round, from 1, and the workload that begins."""


def measure(
    names: Sequence[str],
    rounds: int,
    scale: float = 1.0,
    loop: LoopName = "asyncio",
    progress: Progress = lambda number, name: None,
) -> Results:
    """Run each workload once a round, each in a process of its own, in turn; every second round goes backwards, so
    that a machine that slows down steadily does so for all alike.

    Raises :class:`WorkloadFailed`.
    """
    runs: dict[str, list[child.Measured]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            progress(number + 1, name)
            runs[name].append(_run(name, max(1, round(WORKLOADS[name].size * scale)), loop))
    return {name: _result(each) for name, each in runs.items()}


def figure(results: Results, name: str, figure: str) -> Measured | None:
    """One figure, if it was measured."""
    return results[name].figures.get(figure) if name in results else None


def _result(runs: Sequence[child.Measured]) -> Result:
    figures = {name: Measured([run.figures[name] for run in runs]) for name in runs[0].figures}
    return Result(figures, [run.collector for run in runs])


def _run(name: str, size: int, loop: LoopName) -> child.Measured:
    command = [sys.executable, "-m", "stormlet.bench.child", name, str(size), loop]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise WorkloadFailed(f"workload {name} did not end within {LONGEST:.0f} s") from None
    if done.returncode:
        raise WorkloadFailed(f"workload {name} failed:\n{done.stderr}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=child.Measured)
