"""The counts of a run in epochs: those of all of them, added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from stormlet.report.failures import FailureCounts, RepeatedFailure
from stormlet.report.statistics import Statistics, TaskStatistics, of_component


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
