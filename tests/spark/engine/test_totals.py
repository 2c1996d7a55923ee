"""The counts of a stream on Spark may be asked for while an epoch is added."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import Statistics, TaskStatistics, of_component
from stormlet.spark.engine.passage.reports import Totals

MOMENT = 0.2
"""Seconds that the other thread has."""


def test_another_thread_sees_whole_epochs() -> None:
    """One that asks in the middle waits for the end."""
    totals, done = Totals(), list[str]()

    def ask() -> None:
        assert totals.statistics.components["count"].acked == 1
        done.append("asked")

    asking = Thread(target=ask)

    def failures() -> Iterator[RepeatedFailure]:
        asking.start()
        asking.join(MOMENT)
        done.append("added")
        yield from ()

    totals.add(Statistics({"count": of_component({0: TaskStatistics(acked=1)})}), failures())
    asking.join()
    assert done == ["added", "asked"]
