"""One component, one task, one subscription: what changes every second."""

from __future__ import annotations

from math import floor, log10

import msgspec


class Numbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The numbers of a component or of a task; None for what there is not."""

    id: str
    kind: str
    """spout, bolt or acker."""
    tasks: int
    mood: str
    rate: float
    """Spout: emits, bolt: executed inputs, acker: trees that are over; in a second."""
    acked_rate: float
    failed_rate: float
    emitted: int
    transferred: int
    executed: int
    acked: int
    failed: int
    dead_letters: int
    restarts: int
    errors: int
    pending: int
    queued: int
    fill: float | None = None
    """The part of the fullest queue that is taken."""
    capacity: float | None = None
    """Storm's: the part of the time in which its tasks were in user code."""
    executing: float | None = None
    """The part of the time; with the following four the whole."""
    awaiting: float | None = None
    blocked: float | None = None
    limited: float | None = None
    idle: float | None = None
    execute_mean: float | None = None
    """Seconds, as all that follow."""
    execute_p50: float | None = None
    execute_p90: float | None = None
    execute_p99: float | None = None
    execute_max: float | None = None
    process_mean: float | None = None
    process_p50: float | None = None
    process_p90: float | None = None
    process_p99: float | None = None
    process_max: float | None = None
    complete_mean: float | None = None
    complete_p50: float | None = None
    complete_p90: float | None = None
    complete_p99: float | None = None
    complete_max: float | None = None
    complete_samples: int | None = None
    """Messages of the window whose complete latency was measured."""
    lag: int | None = None
    """Messages that its brokers have and that are not settled."""


class EdgeNumbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The numbers of a subscription."""

    rate: float | None = None
    """Tuples in a second."""
    queued: int | None = None
    """Tuples in the consumer's queues, whoever they are from."""
    capacity: int | None = None
    fill: float | None = None
    """The part of the consumer's fullest queue that is taken."""
    waited: float | None = None
    """The part of the time in which the producer waited for room there."""


def rounded(value: float | None) -> float | None:
    """Return it with three digits, so that what has hardly changed is not sent again."""
    if not value:
        return value
    return round(value, 2 - floor(log10(abs(value))))


COLUMNS = {
    "components": list(Numbers.__struct_fields__),
    "edges": list(EdgeNumbers.__struct_fields__),
}
"""The names of what the arrays have."""
