"""The metrics of a topology: their names, and their values from its statistics and its health.

Labels are bounded by the declaration of the topology: components, streams, states of bolts. Tasks are summed up, unless
they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from stormlet.exports.families import Kind, Labels, Metric, Value
from stormlet.report.health import Health, RunState
from stormlet.report.statistics import ComponentStatistics, EpochStatistics, Statistics, TaskStatistics

COMPONENT: Final = ("component",)
STREAM: Final = ("component", "stream")
EDGE: Final = ("producer", "stream", "consumer")


def _counter(name: str, about: str, *labels: str) -> Metric:
    return Metric(name, about, Kind.COUNTER, labels)


def _gauge(name: str, about: str, *labels: str) -> Metric:
    return Metric(name, about, Kind.GAUGE, labels)


def _times(name: str, about: str, *labels: str) -> Metric:
    return Metric(name, about, Kind.HISTOGRAM, labels)


COUNTS: Final[Mapping[str, tuple[str, str]]] = {
    "messages": ("messages", "Messages emitted by spouts and tracked, each once whatever its attempts."),
    "executed": ("executed_tuples", "Inputs executed by bolts; control messages applied by ackers."),
    "acked": ("acked", "Messages, inputs or trees acked: by spouts, bolts and ackers."),
    "failed": ("failed", "Attempts, inputs or trees failed: by spouts, bolts and ackers."),
    "replayed": ("replayed_messages", "Emits of failed messages again."),
    "given_back": ("given_back_messages", "Messages whose failure was delivered to their emitter."),
    "withdrawn": ("withdrawn_messages", "Messages that came to belong to somebody else."),
    "dead_letters": ("dead_letters", "Messages given up."),
    "left_over": ("left_over_messages", "Messages without an outcome when the topology stopped."),
    "overflowed": ("overflowed_attempts", "Attempts that failed because an acker had too many trees."),
    "expired_late": ("late_expiries", "Trees that timed out late."),
    "errors": ("errors", "Exceptions of user code that failed no tuple."),
    "restarts": ("restarts", "Restarts of tasks."),
}
OF_TASKS: Final[Mapping[str, Metric]] = {
    **{field: _counter(*said, *COMPONENT) for field, said in COUNTS.items()},
    "pending": _gauge(
        "pending",
        "Messages of a spout, inputs of a bolt, trees of an acker that are not settled.",
        *COMPONENT,
    ),
    "queued": _gauge("queued_tuples", "Tuples in the queues of a bolt.", *COMPONENT),
    "giving_up": _gauge(
        "untaken_dead_letters", "Messages given up whose dead letters were not taken yet.", *COMPONENT
    ),
}
"""By the field of :class:`~stormlet.report.statistics.TaskStatistics`."""
TIMES: Final[Mapping[str, Metric]] = {
    "execute_times": _times("execute_seconds", "Time of an execution.", *COMPONENT),
    "process_times": _times("process_seconds", "Time from an execution to the ack of its input.", *COMPONENT),
    "complete_times": _times("complete_seconds", "Time from the emit of a message to its ack.", *COMPONENT),
}
"""Likewise."""
ACTIVITIES: Final = ("executing", "awaiting", "blocked", "limited", "idle")
TASK_SECONDS: Final = _counter("task_seconds", "Time of tasks, by what they did.", *COMPONENT, "activity")
TASKS: Final = _gauge("tasks", "Tasks of a component.", *COMPONENT)
EMITTED: Final = _counter("emitted_values", "Values emitted on a stream.", *STREAM)
TRANSFERRED: Final = _counter("transferred_tuples", "Tuples delivered of a stream.", *STREAM)
LAG: Final = _gauge("lag_messages", "Messages that the broker has, and that are not settled.", *COMPONENT)

EDGES: Final[Mapping[str, Metric]] = {
    "transferred": _counter("edge_tuples", "Tuples delivered from one component to another.", *EDGE),
    "waited_seconds": _counter("edge_waited_seconds", "Time for which the producer waited for room.", *EDGE),
    "queued": _gauge("edge_queued_tuples", "Tuples in the queues of the consumer.", *EDGE),
    "capacity": _gauge("edge_capacity_tuples", "Sum of the bounds of these queues.", *EDGE),
    "fullest": _gauge("edge_fill_ratio", "Fill of the fullest of these queues; 1 is full.", *EDGE),
}
"""By the field of :class:`~stormlet.report.statistics.EdgeStatistics`."""

LOOP_PROBES: Final = _counter("loop_probes", "Looks at the event loop.")
LOOP_LATE: Final = _counter("loop_late_probes", "Looks that came late, as the loop was busy.")
LOOP_OWN: Final = _counter("loop_own_seconds", "Time on the loop of this topology's tasks.")
LOOP_LAG: Final = _times("loop_lag_seconds", "Time by which looks at the event loop came late.")
PENDING: Final = _gauge("pending_messages", "Messages of spouts without an outcome.")
OLDEST: Final = _gauge("oldest_tree_age_seconds", "Age of the oldest open tree, about.")
STATE: Final = _gauge("run_state", "1 for the state in which the run is, 0 for the others.", "state")
EPOCH: Final = _gauge("durable_epoch", "Number of the last epoch that is durable.")
EPOCH_AGE: Final = _gauge("durable_epoch_age_seconds", "Time since that epoch was committed.")
WITHHELD: Final = _gauge("withheld_messages", "Messages that are done, and whose epoch is not durable.")
ENTRIES: Final = _gauge("state_entries", "Entries of a state of a bolt.", "state")
BYTES: Final = _gauge("state_bytes", "Size of their keys and values, about.", "state")

METRICS: Final[tuple[Metric, ...]] = (
    *OF_TASKS.values(), *TIMES.values(), TASK_SECONDS, TASKS, EMITTED, TRANSFERRED, LAG, *EDGES.values(),
    LOOP_PROBES, LOOP_LATE, LOOP_OWN, LOOP_LAG, PENDING, OLDEST, STATE, EPOCH, EPOCH_AGE, WITHHELD, ENTRIES, BYTES,
)  # fmt: skip
"""All metrics that there are."""
BY_TASK: Final = {
    metric: msgspec.structs.replace(metric, labels=(*metric.labels, "task"))
    for metric in (*OF_TASKS.values(), *TIMES.values(), TASK_SECONDS)
}
"""Those that can be told task by task, with the label for that."""

Found = Iterator[tuple[Metric, Labels, Value]]


def measured(name: str, statistics: Statistics, health: Health, *, by_task: bool = False) -> Found:
    """Give all that can be measured of the topology of this name, each with its labels."""
    for state in RunState:
        yield STATE, (name, state.value), float(health.state is state)
    yield PENDING, (name,), health.pending
    for id, component in statistics.components.items():
        yield from _of_component((name, id), component, by_task=by_task)
    for edge in statistics.edges:
        ends = (name, edge.producer, edge.stream, edge.consumer)
        yield from ((metric, ends, getattr(edge, field)) for field, metric in EDGES.items())
    open_ages = [each.seconds for each in statistics.pending_by_age if each.trees]
    yield OLDEST, (name,), max(open_ages, default=0.0)
    yield from _of_loop(name, statistics)
    if statistics.epoch is not None:
        yield from _of_epoch(name, statistics.epoch)


def _of_component(labels: Labels, component: ComponentStatistics, *, by_task: bool) -> Found:
    tasks = component.tasks or {}
    yield TASKS, labels, len(tasks)
    for stream, counts in component.streams.items():
        yield EMITTED, (*labels, stream), counts.emitted
        yield TRANSFERRED, (*labels, stream), counts.transferred
    if component.lag is not None:
        yield LAG, labels, component.lag
    if not by_task:
        yield from _of_task(labels, component)
        return
    for id, task in tasks.items():
        for metric, found, value in _of_task(labels, task):
            yield BY_TASK[metric], (*found, str(id)), value


def _of_task(labels: Labels, task: TaskStatistics) -> Found:
    for field, metric in OF_TASKS.items():
        yield metric, labels, getattr(task, field)
    for activity in ACTIVITIES:
        yield TASK_SECONDS, (*labels, activity), getattr(task, f"{activity}_seconds")
    for field, metric in TIMES.items():
        times = getattr(task, field)
        if times is not None:
            yield metric, labels, times


def _of_loop(name: str, statistics: Statistics) -> Found:
    loop = statistics.loop
    if loop is not None:
        yield LOOP_PROBES, (name,), loop.probes
        yield LOOP_LATE, (name,), loop.late
        yield LOOP_OWN, (name,), loop.own_seconds
        yield LOOP_LAG, (name,), loop.lag


def _of_epoch(name: str, epoch: EpochStatistics) -> Found:
    if epoch.is_kept:
        yield EPOCH, (name,), epoch.number
    yield WITHHELD, (name,), epoch.withheld
    if epoch.is_kept and epoch.age is not None:
        yield EPOCH_AGE, (name,), epoch.age
    for state, counts in epoch.states.items():
        yield ENTRIES, (name, state), counts.entries
        yield BYTES, (name, state), counts.bytes
