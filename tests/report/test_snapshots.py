from __future__ import annotations

from msgspec.structs import replace

from stormlet.core.histogram import Histogram
from stormlet.report.figures import figures_between
from stormlet.report.snapshots import PackedTimes, Snapshot
from stormlet.report.statistics import LoopStatistics, Statistics, TaskStatistics
from tests.report.numbers import spent, statistics, times


def measured(*seconds: float) -> TaskStatistics:
    return replace(spent(awaiting=0.5, executed=len(seconds)), execute_times=times(*seconds))


EARLIER = statistics(split=[measured(0.5, 1), measured(2)], lines=spent(emitted=7))
LATER = statistics(split=[measured(0.5, 1, 1), measured(2, 9)], lines=spent(emitted=9))


def test_a_difference_to_a_snapshot_is_that_to_the_statistics() -> None:
    """Nothing that a difference needs is lost in it."""
    kept = Snapshot(EARLIER).statistics(["split", "lines"])
    assert figures_between(kept, LATER, 10.0) == figures_between(EARLIER, LATER, 10.0)


def test_latencies_of_tasks_may_be_left_out() -> None:
    """Those of the component stay, and so do all other figures."""
    kept = Snapshot(EARLIER).without_times_of_tasks().statistics(["split", "lines"])
    split = figures_between(kept, LATER, 10.0).components["split"]
    assert split.execute == figures_between(EARLIER, LATER, 10.0).components["split"].execute
    assert [each.execute for each in split.tasks.values()] == [None, None]
    assert [each.executed for each in split.tasks.values()] == [0.1, 0.1]


def test_times_of_tasks_come_where_they_are_asked_for() -> None:
    """To unpack those of hundreds of tasks takes time."""
    snapshot = Snapshot(EARLIER)
    asked, others = (snapshot.statistics(names).components["split"].tasks for names in (["split"], ["lines"]))
    assert [each.execute_times for each in asked.values()] == [times(0.5, 1), times(2)]  # type: ignore[union-attr]
    assert [each.execute_times for each in others.values()] == [None, None]  # type: ignore[union-attr]


def test_the_lag_of_the_loop_is_kept() -> None:
    """Its histogram is packed like the others."""
    probed = Statistics({}, loop=LoopStatistics(2, 1, times(0.0, 0.3), own_seconds=1.0))
    kept = Snapshot(probed).statistics().loop
    assert kept is not None
    assert (kept.lag, kept.own_seconds) == (times(0.0, 0.3), 1.0)


def test_histograms_are_unpacked_as_they_were() -> None:
    """Empty, of one bucket, of distant ones, and with counts beyond 32 bits."""
    many = times(0.001, 3000)
    many.add(1.0, 2**40)
    for histogram in (Histogram(), times(1.0), times(0.0, 1e9), many):
        packed = PackedTimes(histogram).unpacked()
        assert packed == histogram
        assert (packed.count, packed.total) == (histogram.count, histogram.total)
        assert [packed.quantile(q) for q in (0, 0.5, 1)] == [histogram.quantile(q) for q in (0, 0.5, 1)]


def test_a_snapshot_does_not_change() -> None:
    """Times that are added later are not in it, and it can be asked any number of times."""
    histogram = times(1.0)
    snapshot = Snapshot(statistics(split=replace(spent(), execute_times=histogram)))
    snapshot.statistics().components["split"].execute_times.add(5.0)  # type: ignore[union-attr]
    histogram.add(5.0)
    assert snapshot.statistics().components["split"].execute_times == times(1.0)
