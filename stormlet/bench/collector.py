"""The pauses of the garbage collector, which runs as Python has set it up."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from types import TracebackType

import msgspec


class Pauses(msgspec.Struct, frozen=True):
    """What the collector has taken while a workload ran."""

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
        """What was measured so far."""
        return Pauses(self.count, self.seconds * 1e3, self.longest * 1e3)

    def _note(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        seconds = time.thread_time() - self._began
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
