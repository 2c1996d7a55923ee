"""Statistics of tasks, components and topologies; counts since the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec

from stormlet.core.histogram import Histogram, merged
from stormlet.report.connections import Connection, lag_of


class Progress(msgspec.Struct, frozen=True):
    """Progress of a component with work of its own, such as reading a source; see
    :attr:`stormlet.model.components.TaskContext.report_progress`."""

    done: int
    known: int | None = None
    """The total; None while it is unknown."""
    unit: str = ""
    """The unit of the counts, such as ``"rows read"``."""

    def __add__(self, other: Progress) -> Progress:
        known = None if self.known is None or other.known is None else self.known + other.known
        return Progress(self.done + other.done, known, self.unit)


class TaskStatistics(msgspec.Struct, frozen=True):
    """Statistics of one task (Storm's executor statistics)."""

    emitted: int = 0
    """Calls of emit, or values yielded or returned."""
    transferred: int = 0
    """Tuples delivered: one emit may reach several tasks, or none."""
    messages: int = 0
    """Spout: messages emitted that the ackers follow, each once whatever its attempts. Each is acked, given back, a
    dead letter, withdrawn, left over, or pending (law N1)."""
    executed: int = 0
    """Inputs that a bolt has executed; control messages that an acker has applied."""
    acked: int = 0
    """Spout: messages acked. Bolt: inputs acked. Acker: trees acked."""
    failed: int = 0
    """Spout: attempts failed. Bolt: inputs failed. Acker: trees failed."""
    given_back: int = 0
    """Spout: messages whose failure was delivered to their emitter: a ``Spout`` class, or the host's ``Tree``."""
    withdrawn: int = 0
    """Spout: messages that came to belong to somebody else while they were pending (law S9)."""
    pending: int = 0
    """Now. Spout: messages without an outcome, those waiting for a replay included. Bolt: inputs queued, in
    hand or held. Acker: open trees."""
    queued: int = 0
    """Now. Bolt: tuples in its inbox, not yet taken."""
    replayed: int = 0
    """Spout: emits of failed messages again, by the engine."""
    dead_letters: int = 0
    """Spout: messages given up."""
    giving_up: int = 0
    """Now. Spout: messages whose dead letters ``dead_letters=`` has got and not taken yet; they are pending, too."""
    letter_seconds: float = 0.0
    """Spout: those of its ``executing_seconds`` in which ``dead_letters=`` held the loop."""
    left_over: int = 0
    """Spout: messages that had no outcome when the topology stopped."""
    overflowed: int = 0
    """Spout: attempts that failed with OVERFLOW (law L13); they are in ``failed`` too."""
    expired_late: int = 0
    """Acker: trees that timed out a slice or more after their rotation, because it was spread (law L12)."""
    errors: int = 0
    """Exceptions of user code that failed no tuple, because it was settled already."""
    restarts: int = 0
    """Restarts of the task after its death."""
    execute_seconds: float = 0.0
    """Bolt: seconds in ``execute``, awaits included; waits for room are left out (law B6) unless ``concurrency`` >
    1."""
    complete_seconds: float = 0.0
    """Spout: seconds from emit to ack, which within epochs comes when the epoch is durable (law X3), summed over
    ``complete_samples`` messages, one at a time."""
    complete_samples: int = 0
    executing_seconds: float = 0.0
    """Seconds for which code ran: the user's, in the task's coroutine, in the steps of its concurrent calls and in its
    threads, with what the engine does for it beside; an acker's own."""
    awaiting_seconds: float = 0.0
    """Seconds for which user code awaited something. With ``concurrency`` n, the sum over the calls divided by n: a
    task of whose n places half are taken is half busy (Storm's capacity)."""
    blocked_seconds: float = 0.0
    """Seconds for which it waited for room in queues of its consumers (law B6); a spout, also before it asks its source
    (law S3)."""
    limited_seconds: float = 0.0
    """Spout: seconds for which it asked its source for nothing because ``max_spout_pending`` messages were pending (law
    S3)."""
    uptime: float = 0.0
    """Seconds since the start of the task; of a component, the sum over its tasks."""
    execute_times: Histogram | None = None
    """Bolt: the times of ``execute``, as in ``execute_seconds``; of tuples that are executed together, the mean counts
    for each. None for what is no bolt."""
    process_times: Histogram | None = None
    """Bolt: the times from ``execute`` to the ack or fail of the input. Those of kinds of bolts that ack on return are
    ``execute_times``; of a ``Bolt`` that holds inputs, one input at a time is measured. None for what is no bolt."""
    complete_times: Histogram | None = None
    """Spout: the times of ``complete_seconds``. None for what is no spout."""

    @property
    def idle_seconds(self) -> float:
        """Seconds for which it had nothing to do, or waited for its turn on the loop; never below 0."""
        busy = self.executing_seconds + self.awaiting_seconds + self.blocked_seconds + self.limited_seconds
        return max(0.0, self.uptime - busy)

    @property
    def execute_latency(self) -> float | None:
        """Mean seconds that one ``execute`` took (Storm's execute latency); None before the first one that took
        time, which on simulated time none does unless it awaits."""
        return self.execute_seconds / self.executed if self.executed and self.execute_seconds else None

    @property
    def complete_latency(self) -> float | None:
        """Mean seconds from the emit of a message to its ack (Storm's complete latency); None before the first
        one."""
        return self.complete_seconds / self.complete_samples if self.complete_samples else None

    def __add__(self, other: TaskStatistics) -> TaskStatistics:
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in SUMMED}
        sums |= {name: merged(getattr(self, name), getattr(other, name)) for name in MERGED}
        return TaskStatistics(**sums)


MERGED = ("execute_times", "process_times", "complete_times")
SUMMED = tuple(name for name in TaskStatistics.__struct_fields__ if name not in MERGED)


class StreamStatistics(msgspec.Struct, frozen=True):
    """Statistics of one stream of a component: the sums over its tasks."""

    emitted: int = 0
    """Values emitted on it."""
    transferred: int = 0
    """Tuples delivered."""

    def __add__(self, other: StreamStatistics) -> StreamStatistics:
        return StreamStatistics(self.emitted + other.emitted, self.transferred + other.transferred)


class ComponentStatistics(TaskStatistics, frozen=True):
    """Statistics of a component: the sums over its tasks."""

    tasks: Mapping[int, TaskStatistics] | None = None
    """Statistics of each task, by its id."""
    progress: Progress | None = None
    """The progress that its tasks have reported, summed up; None if none has."""
    connections: Mapping[int, Connection] | None = None
    """The connection of each task to its broker, by its id; None if they have none."""
    streams: Mapping[str, StreamStatistics] = {}
    """Statistics of each of its streams, by its name."""

    @property
    def lag(self) -> int | None:
        """Messages that the brokers have and that are not settled; of a queue that all tasks share, those are counted
        once. None if no broker says."""
        return lag_of((self.connections or NO_CONNECTIONS).values())


class StateStatistics(msgspec.Struct, frozen=True):
    """Statistics of one state of a bolt."""

    entries: int
    """Its keys; of maps and lists, their entries."""
    bytes: int
    """The size of their keys and values, about: by the mean of those that were written lately. ``stormlet state list``
    has the exact one."""


class EpochStatistics(msgspec.Struct, frozen=True):
    """Statistics of the epochs of a topology with state (law K8)."""

    number: int
    """The last epoch that is durable; 0 before the first."""
    age: float | None
    """Seconds since it was committed, also by an earlier run; None before the first."""
    withheld: int
    """Messages that are done, of which nobody hears before their epoch is durable (law X3)."""
    states: Mapping[str, StateStatistics]
    """By bolt and name, such as ``"count.total"``. An epoch is among them from the moment in which it is written, also
    if that fails: the store has less then."""
    is_kept: bool = True
    """False if nothing is left of an epoch when the process ends: without ``state=``, and without a committer that has
    its rows (law K9)."""


class EdgeStatistics(msgspec.Struct, frozen=True):
    """Statistics of the tuples of one stream on their way to one of its consumers."""

    producer: str
    stream: str
    consumer: str
    grouping: str
    """The name of the grouping, such as ``"fields"``."""
    transferred: int
    """Tuples delivered there."""
    queued: int
    """Now: tuples in the queues of the consumer's tasks, whoever has sent them."""
    capacity: int
    """The sum of the bounds of these queues."""
    fullest: float
    """Now: the fill of the fullest of these queues, where 1 is full; it may be a little more (law B6)."""
    waited_seconds: float
    """Seconds for which at least one task of the producer waited for room in a queue of this consumer (law B6, S3); the
    streams between the two have it in common."""


class LoopStatistics(msgspec.Struct, frozen=True):
    """Statistics of the event loop, as a timer sees it that comes at random."""

    probes: int
    """The number of times that the timer has come."""
    late: int
    """Those in which it came more than 2 ms late. Of all, it is about the share of time in which the loop is busy."""
    lag: Histogram
    """The seconds by which it came late."""
    own_seconds: float
    """Seconds for which the tasks of this topology have run on the loop. The rest of the time in which the loop is busy
    is that of others."""
    seconds: float = 0.0
    """Seconds for which the timer was set: it rests while nothing of the topology is under way (law S4)."""


class AgedTrees(msgspec.Struct, frozen=True):
    """A number of open trees, by their age."""

    seconds: float
    """Their age, at least: since they began, or last had their timeout reset."""
    trees: int


class Statistics(msgspec.Struct, frozen=True):
    """Statistics of a topology."""

    components: Mapping[str, ComponentStatistics]
    """By component id; the ackers are ``"__acker"``."""
    epoch: EpochStatistics | None = None
    """None where messages do not belong to epochs."""
    edges: Sequence[EdgeStatistics] = ()
    """In the order in which the components are declared; one for each stream and each consumer of it."""
    loop: LoopStatistics | None = None
    """None where no probe runs, as on simulated time."""
    pending_by_age: Sequence[AgedTrees] = ()
    """The open trees, the youngest first, by the rotations of the ackers (law L12); empty without ackers."""

    @property
    def dead_letters(self) -> int:
        """Messages given up."""
        return sum(each.dead_letters for each in self.components.values())

    @property
    def left_over(self) -> int:
        """Messages that had no outcome when the topology stopped."""
        return sum(each.left_over for each in self.components.values())


NOTHING_REPORTED: Mapping[int, Progress] = {}
NO_CONNECTIONS: Mapping[int, Connection] = {}


def of_component(
    tasks: Mapping[int, TaskStatistics],
    reported: Mapping[int, Progress] = NOTHING_REPORTED,
    connections: Mapping[int, Connection] = NO_CONNECTIONS,
    streams: Iterable[Mapping[str, StreamStatistics]] = (),
) -> ComponentStatistics:
    """Return the sum over the tasks of one component; ``reported`` has the progress of any tasks, by their ids,
    ``connections`` their connections, and ``streams`` what each of its tasks has emitted."""
    total = sum(tasks.values(), TaskStatistics())
    counts = msgspec.structs.asdict(total)
    own = [reported[task] for task in tasks if task in reported]
    progress = reduce(Progress.__add__, own) if own else None
    there = {task: connections[task] for task in tasks if task in connections}
    return ComponentStatistics(
        **counts, tasks=tasks, progress=progress, connections=there or None, streams=_sums(streams)
    )


def _sums(streams: Iterable[Mapping[str, StreamStatistics]]) -> Mapping[str, StreamStatistics]:
    sums: dict[str, StreamStatistics] = {}
    for each in streams:
        for name, counted in each.items():
            sums[name] = sums.get(name, StreamStatistics()) + counted
    return sums
