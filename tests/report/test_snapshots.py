from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from stormlet.core.histogram import Histogram
from stormlet.report.figures import figures_between
from stormlet.report.snapshots import packed_times, snapshot_of, unpacked_times
from stormlet.report.statistics import LoopStatistics, Statistics, StreamStatistics, TaskStatistics
from stormlet.report.steps import at_once
from tests.report.numbers import edge, spent, statistics, times


def measured(*seconds: float) -> TaskStatistics:
    return replace(spent(awaiting=0.5, executed=len(seconds)), execute_times=times(*seconds))


def kept(statistics: Statistics, times_of: Collection[str] = (), *, detailed: bool = True) -> Statistics:
    return at_once(at_once(snapshot_of(statistics, detailed=detailed)).statistics(times_of))


EARLIER = statistics(split=[measured(0.5, 1), measured(2)], lines=spent(emitted=7))
LATER = statistics(split=[measured(0.5, 1, 1), measured(2, 9)], lines=spent(emitted=9))


def test_a_difference_to_a_snapshot_is_that_to_the_statistics() -> None:
    """Nothing that a difference needs is lost in it."""
    found = kept(EARLIER, ["split", "lines"])
    assert figures_between(found, LATER, 10.0) == figures_between(EARLIER, LATER, 10.0)


def test_latencies_of_tasks_may_be_left_out() -> None:
    """Those of the component stay, and so do all other figures."""
    found = kept(EARLIER, ["split", "lines"], detailed=False)
    split = figures_between(found, LATER, 10.0).components["split"]
    assert split.execute == figures_between(EARLIER, LATER, 10.0).components["split"].execute
    assert [each.execute for each in split.tasks.values()] == [None, None]
    assert [each.executed for each in split.tasks.values()] == [0.1, 0.1]


def test_times_of_tasks_come_where_they_are_asked_for() -> None:
    """To unpack those of hundreds of tasks takes time."""
    asked, others = (kept(EARLIER, names).components["split"].tasks for names in (["split"], ["lines"]))
    assert [each.execute_times for each in asked.values()] == [times(0.5, 1), times(2)]  # type: ignore[union-attr]
    assert [each.execute_times for each in others.values()] == [None, None]  # type: ignore[union-attr]


def test_the_lag_of_the_loop_is_kept() -> None:
    """Its histogram is packed like the others."""
    probed = Statistics({}, loop=LoopStatistics(2, 1, times(0.0, 0.3), own_seconds=1.0))
    loop = kept(probed).loop
    assert loop is not None
    assert (loop.lag, loop.own_seconds) == (times(0.0, 0.3), 1.0)


def test_histograms_are_unpacked_as_they_were() -> None:
    """Empty, of one bucket, of distant ones, and with counts beyond 32 bits."""
    many = times(0.001, 3000)
    many.add(1.0, 2**40)
    for histogram in (Histogram(), times(1.0), times(0.0, 1e9), many):
        packed = unpacked_times(packed_times(histogram))
        assert packed == histogram
        assert (packed.count, packed.total) == (histogram.count, histogram.total)
        assert [packed.quantile(q) for q in (0, 0.5, 1)] == [histogram.quantile(q) for q in (0, 0.5, 1)]


def test_a_snapshot_does_not_change() -> None:
    """Times that are added later are not in it, and it can be asked any number of times."""
    histogram = times(1.0)
    snapshot = at_once(
        snapshot_of(statistics(split=replace(spent(), execute_times=histogram)), detailed=True)
    )
    at_once(snapshot.statistics()).components["split"].execute_times.add(5.0)  # type: ignore[union-attr]
    histogram.add(5.0)
    assert at_once(snapshot.statistics()).components["split"].execute_times == times(1.0)


def test_streams_and_edges_are_kept() -> None:
    """What they had counted, for the rates of a window."""
    split = replace(EARLIER.components["split"], streams={"words": StreamStatistics(5, 7)})
    edges = [
        edge("lines", "split", transferred=8, waited_seconds=1.5),
        edge("split", "count", transferred=2**40),
    ]
    found = kept(replace(EARLIER, components={"split": split}, edges=edges))
    assert found.components["split"].streams == {"words": StreamStatistics(5, 7)}
    assert [(each.consumer, each.transferred, each.waited_seconds) for each in found.edges] == [
        ("split", 8, 1.5), ("count", 2**40, 0.0)
    ]  # fmt: skip


def test_times_that_are_the_same_are_kept_once() -> None:
    """Those to the end of ``execute`` and to the ack are the same for most bolts."""
    same = replace(measured(*range(1, 40)), process_times=times(*range(1, 40)))
    other = replace(same, process_times=times(*range(1, 39), 39.01))
    one, two = (at_once(snapshot_of(statistics(split=each), detailed=True)) for each in (same, other))
    assert one.size < 0.7 * two.size
    for each in (same, other):
        assert kept(statistics(split=each)).components["split"].process_times == each.process_times
