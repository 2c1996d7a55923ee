"""The reports of all partitions at their end: lines of the ledger, counts, failures, and what was given up; and the
counts of several passages, added up."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, cast

import msgspec

from stormlet.core.outcomes import Failure, History
from stormlet.core.shortened import shown
from stormlet.report.failures import FailureCounts, RepeatedFailure
from stormlet.report.statistics import Statistics, TaskStatistics, of_component
from stormlet.spark.engine.partition.account import Account, Line, added
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.keyed.groups import GroupId, id_of
from stormlet.spark.engine.partition.merging import is_group, members_in
from stormlet.spark.engine.partition.partition import Partition, origin_of
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import rows_of
from stormlet.spark.engine.passage.outputs import OURS
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place

if TYPE_CHECKING:
    import pyarrow as pa


class Report(msgspec.Struct, frozen=True):
    """The report of one partition."""

    line: Line
    statistics: Mapping[int, TaskStatistics]
    """The counts of its bolt tasks, by id."""
    failures: Sequence[RepeatedFailure]
    given_up: Sequence[GivenUp]
    replayed: Sequence[tuple[int, int]]
    """Roots of messages that were acked there after more than one attempt, and the number of these."""


def report_of(partition: Partition) -> Report:
    """Return what a partition says."""
    return Report(
        partition.line,
        partition.statistics,
        partition.failures,
        partition.given_up,
        list(partition.replayed),
    )


def pickled(report: Report) -> bytes:
    """Return a pickled report, in which an exception that cannot be pickled, or not be made again, is its text."""
    try:
        data = pickle.dumps(report)
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(msgspec.structs.replace(report, given_up=[*map(_in_words, report.given_up)]))
    return data


def _in_words(given_up: GivenUp) -> GivenUp:
    history = History(_without_exception(each) for each in given_up.history)
    return msgspec.structs.replace(given_up, history=history)


def _without_exception(failure: Failure) -> Failure:
    from dataclasses import replace

    error = failure.exception
    return failure if error is None else replace(failure, exception=RuntimeError(shown(error)))


class Ends(msgspec.Struct, frozen=True):
    """The ends of all partitions."""

    reports: list[Report]
    arrived: Line
    """The line of the chunks that have come to their end, as if they had been settled there."""
    for_driver: Line
    """The part of it that is for bolts in the driver, which have not run yet."""
    states: int
    """The XOR of the hashes of all rows with the state of ordinary bolts."""
    groups: Mapping[GroupId, int]
    """That of the rows of each key group."""


class Ending(msgspec.Struct, frozen=True):
    """A function for what the last stage has left: it hands on reports, and adds up the chunks."""

    end: Place
    """The address of all chunks by now."""
    in_driver: frozenset[int]
    """The tasks of the bolts that run in the driver."""
    by_root: bool = False
    """True if the partitions leave entries of the ledger by root."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do so for one partition."""
        import pyarrow as pa

        accounts = {here: Account(self.end, by_root=self.by_root) for here in (False, True)}
        states, reports = Account(self.end), list[bytes]()
        groups = defaultdict[GroupId, int](int)
        for batch in batches:
            for row in rows_of(batch):
                if row.kind == Kind.LEDGER:
                    continue
                if row.kind == Kind.REPORT:
                    reports.append(row.payload)
                elif row.kind == Kind.STATE:
                    states.read(row)
                elif row.kind == Kind.KEYED:
                    groups[id_of(row)] ^= row.hash
                else:
                    accounts[row.target in self.in_driver].arrived(row)
        lines = [account.line() for account in (*accounts.values(), states)]
        ends = pickle.dumps((lines, dict(groups)))
        yield pa.RecordBatch.from_arrays(
            [pa.array([ends], pa.binary()), pa.array([reports], pa.list_(pa.binary()))],
            names=["ends", "reports"],
        )


def ends_of(kept: Kept, end: Place, in_driver: Iterable[int], *, by_root: bool = False) -> Ends:
    """Return the ends of all partitions, which have left these rows."""
    ends = _ended(kept, Ending(end, frozenset(in_driver), by_root))
    reports, elsewhere, for_driver, states = list[Report](), list[Line](), list[Line](), 0
    groups = defaultdict[GroupId, int](int)
    for ended, payloads in cast("Iterable[tuple[bytes, Sequence[bytes]]]", ends):
        lines: Sequence[Line]
        written: Mapping[GroupId, int]
        lines, written = pickle.loads(ended)
        elsewhere.append(lines[0])
        for_driver.append(lines[1])
        states ^= lines[2].hashes
        for id, hashes in written.items():
            groups[id] ^= hashes
        reports += map(pickle.loads, payloads)
    reports.sort(key=lambda report: (report.line.place.stage, report.line.place.partition))
    arrived, waiting = added(end, [*elsewhere, *for_driver]), added(end, for_driver)
    return Ends(reports, arrived, waiting, states, groups)


def _ended(kept: Kept, ending: Ending) -> Iterable[object]:
    if kept.is_little:
        return (tuple(row.values()) for batch in ending(kept.here()) for row in batch.to_pylist())
    rows = kept.frame.where(kept.frame["kind"] != int(Kind.LEDGER))
    return rows.mapInArrow(ending, "ends binary, reports array<binary>").toLocalIterator()


def opened(reports: Sequence[Report], read: Callable[[], Iterable[Row]]) -> Sequence[Report]:
    """Return reports that name messages in the place of groups, whose members are in the rows that ``read`` gives
    (:mod:`~stormlet.spark.engine.partition.merging`)."""
    given_up = (root for report in reports for each in report.given_up for root in each.messages)
    replayed = (root for report in reports for root, _ in report.replayed)
    messages = messages_in(chain(given_up, replayed), read)
    return [_opened(report, messages) for report in reports] if messages else reports


def messages_in(roots: Iterable[int], read: Callable[[], Iterable[Row]]) -> Mapping[int, Sequence[int]]:
    """Return the messages of each group that is one of these roots. A group whose members are lost, of which the
    ledger tells, stands for itself."""
    groups = {root for root in roots if is_group(root)}
    members, asked, wanted = dict[int, Sequence[int]](), set[int](), groups
    while wanted:
        for row in read():
            members |= members_in(row, wanted)
        asked |= wanted
        wanted = {root for group in members for root in members[group] if is_group(root)} - asked
    return {group: messages_of_all([group], members) for group in groups}


def messages_of_all(roots: Iterable[int], members: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """Return roots with messages in the place of groups, each once."""
    each = (messages_of_all(members[root], members) if root in members else (root,) for root in roots)
    return tuple(dict.fromkeys(chain.from_iterable(each)))


def _opened(report: Report, messages: Mapping[int, Sequence[int]]) -> Report:
    given_up = [
        msgspec.structs.replace(each, messages=messages_of_all(each.messages, messages))
        for each in report.given_up
    ]
    replayed = [
        (root, attempts) for group, attempts in report.replayed for root in messages_of_all([group], messages)
    ]
    return msgspec.structs.replace(report, given_up=given_up, replayed=replayed)


def failures_of(reports: Iterable[Report]) -> Sequence[RepeatedFailure]:
    """Return the distinct failures of all partitions."""
    counts = FailureCounts()
    for report in reports:
        for each in report.failures:
            counts.add(each)
    return counts.all()


def messages_of(cluster: ClusterPlan, reports: Iterable[Report]) -> Mapping[int, int]:
    """Return the number of messages of each spout task."""
    spouts = cluster.plan.description.spouts
    return {
        task.task: report.line.messages
        for report in reports
        for task in cluster.tasks_at(report.line.place)
        if task.component in spouts
    }


def statistics_of(cluster: ClusterPlan, reports: Sequence[Report], letters: Iterable[int]) -> Statistics:
    """Return the counts of all components; ``letters`` are the roots of the messages that were given up."""
    messages = messages_of(cluster, reports)
    counted = dict[int, TaskStatistics]()
    given_up = dict[int, int]()
    for root in letters:
        spout_task = origin_of(root)[0]
        given_up[spout_task] = given_up.get(spout_task, 0) + 1
    for report in reports:
        counted.update(report.statistics)
    counted.update({task: _of_spout(count, given_up.get(task, 0)) for task, count in messages.items()})
    return Statistics(
        {
            id: of_component({task.task: counted.get(task.task, TaskStatistics()) for task in tasks})
            for id, tasks in cluster.plan.tasks.items()
            if not id.startswith(OURS)
        }
    )


def _of_spout(messages: int, given_up: int) -> TaskStatistics:
    return TaskStatistics(
        emitted=messages, messages=messages, acked=messages - given_up, dead_letters=given_up
    )


class Totals:
    """The sums so far. One thread adds to them while others look."""

    def __init__(self) -> None:
        self._tasks: dict[str, list[TaskStatistics]] = {}
        self._failures = FailureCounts()
        self._turn = Lock()

    def add(self, epoch: Statistics, failures: Iterable[RepeatedFailure]) -> None:
        """Add one epoch. Its tasks are those of the epoch before, by their place among those of their component."""
        with self._turn:
            self._add(epoch, failures)

    def _add(self, epoch: Statistics, failures: Iterable[RepeatedFailure]) -> None:
        for id, component in epoch.components.items():
            before = self._tasks.setdefault(id, [])
            for index, task in enumerate((component.tasks or {}).values()):
                if index < len(before):
                    before[index] += task
                else:
                    before.append(task)
        for each in failures:
            self._failures.add(each)

    @property
    def statistics(self) -> Statistics:
        """The counts of all components."""
        with self._turn:
            return Statistics({id: of_component(dict(enumerate(each))) for id, each in self._tasks.items()})

    @property
    def failures(self) -> Sequence[RepeatedFailure]:
        """Every distinct failure of a bolt."""
        with self._turn:
            return self._failures.all()
