"""Workloads that take turns, each in a process of its own, and the figures of the same round."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import TracebackType
from typing import get_args

import msgspec

from stormlet.bench.workload import LOOP, Figures, LoopName, Workload

LONGEST = 900.0
"""Seconds after which a workload is given up."""


class WorkloadFailed(Exception):
    """A workload has raised, gave a wrong result, or does not come to its end."""


# --- one run, in this process ---------------------------------------------------------------------------------------


class Pauses(msgspec.Struct, frozen=True):
    """The pauses of the garbage collector, which runs as Python has set it up."""

    count: int
    total_ms: float
    longest_ms: float


class PauseMeter:
    """Measures them while its block runs; one reading of the clock before and one after each."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        """All of them together, in CPU time of the thread."""
        self.longest = 0.0
        self._began = 0.0

    def __enter__(self) -> PauseMeter:
        gc.callbacks.append(self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.callbacks.remove(self._note)

    def pauses(self) -> Pauses:
        """The pauses so far."""
        return Pauses(self.count, self.seconds * 1e3, self.longest * 1e3)

    def _note(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        seconds = time.thread_time() - self._began
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class Run(msgspec.Struct, frozen=True):
    """One run of a workload."""

    figures: Figures
    collector: Pauses


def print_measured(workloads: Mapping[str, Workload], name: str, size: str, loop: str) -> None:
    """Run one workload in this process, and print its :class:`Run` as the last line of the output."""
    logging.disable(logging.WARNING)
    LOOP.set(next(each for each in get_args(LoopName) if each == loop))
    with PauseMeter() as meter:
        figures = workloads[name].measure(int(size))
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(Run(figures, meter.pauses())) + b"\n")


# --- all of them, in rounds -----------------------------------------------------------------------------------------


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
"""Gets the number of the round, from 1, and the workload that begins."""


def measure(
    workloads: Sequence[Workload],
    rounds: int,
    scale: float = 1.0,
    loop: LoopName = "asyncio",
    progress: Progress = lambda number, name: None,
    module: str = "stormlet.bench",
) -> Results:
    """Run each workload once a round, each in a process of its own, in turn; every second round goes backwards, so
    that a machine that slows down steadily does so for all alike. The process is ``python -m module``, which hands
    its arguments to :func:`print_measured`.

    Raises :class:`WorkloadFailed`.
    """
    runs: dict[str, list[Run]] = {each.name: [] for each in workloads}
    for number in range(rounds):
        for each in workloads if number % 2 == 0 else reversed(workloads):
            progress(number + 1, each.name)
            command = [sys.executable, "-m", module, each.name, str(max(1, round(each.size * scale))), loop]
            runs[each.name].append(_run(each.name, command))
    return {name: _result(each) for name, each in runs.items()}


def figure(results: Results, name: str, figure: str) -> Measured | None:
    """One figure, if it was measured."""
    return results[name].figures.get(figure) if name in results else None


def _result(runs: Sequence[Run]) -> Result:
    figures = {name: Measured([run.figures[name] for run in runs]) for name in runs[0].figures}
    return Result(figures, [run.collector for run in runs])


def _run(name: str, command: Sequence[str]) -> Run:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise WorkloadFailed(f"workload {name} did not end within {LONGEST:.0f} s") from None
    if done.returncode:
        raise WorkloadFailed(f"workload {name} failed:\n{done.stderr}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Run)
