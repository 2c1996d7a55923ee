"""The outcome of a run, for people and for scripts."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

import msgspec

from stormlet.cli.errors import FAILED, WRONG_USAGE
from stormlet.errors import StormletError
from stormlet.report.statistics import ComponentStatistics, Statistics, TaskStatistics


class Outcome(Enum):
    """The end of a run."""

    FINISHED = "finished"
    """Its sources had ended, and everything was settled."""
    STOPPED = "stopped"
    """A signal or ``--duration`` asked for the end, and it was drained."""
    CANCELLED = "cancelled"
    """A second signal, or a closed output, cut the drain short."""
    CRASHED = "crashed"
    """User code raised where no tuple answers for it."""
    NOT_STARTED = "not started"
    """``prepare`` or ``open`` raised."""
    INVALID = "invalid"
    """There was nothing that could be run, or nothing that it could be run with."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcomes of the dead letters of an earlier run."""

    acked: int
    failed_again: int
    not_tried: int


@dataclass(frozen=True, slots=True)
class Result:
    """One run, when it is over."""

    topology: str | None
    outcome: Outcome
    seconds: float = 0.0
    signal: signal.Signals | None = None
    statistics: Statistics = field(default_factory=lambda: Statistics({}))
    error: StormletError | None = None
    replayed: Replayed | None = None

    @property
    def exit_code(self) -> int:
        """0 done; 1 crashed, cancelled by a closed output, or with messages given up or left over; 2 invalid; 128 + n
        ended by signal n."""
        if self.outcome is Outcome.INVALID:
            return WRONG_USAGE
        if self.outcome in (Outcome.CRASHED, Outcome.NOT_STARTED):
            return FAILED
        if self.signal is not None:
            return 128 + self.signal
        undone = self.statistics.dead_letters or self.statistics.left_over
        if self.replayed is not None:
            undone = undone or self.replayed.failed_again or self.replayed.not_tried
        return FAILED if undone or self.outcome is Outcome.CANCELLED else 0


def as_json(result: Result) -> str:
    """One line with everything that is known of the run."""
    record = {
        "topology": result.topology,
        "outcome": result.outcome.value,
        "exit_code": result.exit_code,
        "signal": None if result.signal is None else result.signal.name,
        "seconds": round(result.seconds, 3),
        "dead_letters": result.statistics.dead_letters,
        "left_over": result.statistics.left_over,
        "error": None if result.error is None else str(result.error).encode("utf-8", "replace").decode(),
        "replayed": result.replayed and asdict(result.replayed),
        "epoch": result.statistics.epoch,
        "components": {id: _counts(each) for id, each in result.statistics.components.items()},
    }
    return msgspec.json.encode(record).decode()


def _counts(statistics: ComponentStatistics) -> Mapping[str, object]:
    counts = {name: getattr(statistics, name) for name in TaskStatistics.__struct_fields__}
    latencies = {
        "execute_latency": statistics.execute_latency,
        "complete_latency": statistics.complete_latency,
    }
    return {**counts, **latencies, "progress": statistics.progress}
