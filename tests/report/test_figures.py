from __future__ import annotations

import pytest
from msgspec import json
from msgspec.structs import replace

from stormlet.report.connections import Connection
from stormlet.report.figures import (
    Figures,
    Shares,
    TaskFigures,
    figures_between,
    percentiles_between,
    shares_between,
)
from stormlet.report.statistics import (
    AgedTrees,
    LoopStatistics,
    Progress,
    Statistics,
    StreamStatistics,
    TaskStatistics,
    of_component,
)
from tests.report.numbers import edge, spent, statistics, times

RATES = (
    "emitted",
    "transferred",
    "executed",
    "acked",
    "failed",
    "dead_letters",
    "replayed",
    "overflowed",
)
START = Statistics({})


def of_task(task: TaskStatistics, seconds: float = 100.0) -> TaskFigures:
    return figures_between(START, statistics(split=task), seconds).components["split"]


def test_rates_are_differences_over_seconds() -> None:
    """Each count gives its own rate, and what had been counted before does not count."""
    earlier = TaskStatistics(**dict.fromkeys(RATES, 7))
    later = TaskStatistics(**{name: 7 + 20 * place for place, name in enumerate(RATES)})
    found = figures_between(statistics(split=earlier), statistics(split=later), 10.0).components["split"]
    assert [getattr(found, name) for name in RATES] == [2.0 * place for place in range(len(RATES))]
    assert found.tasks[1].emitted == found.emitted


def test_what_is_now_is_no_difference() -> None:
    """Pending and queued are those at the end; restarts and errors are counts of the window."""
    earlier = TaskStatistics(pending=50, queued=40, restarts=3, errors=2)
    later = TaskStatistics(pending=5, queued=4, restarts=4, errors=4)
    found = figures_between(statistics(split=earlier), statistics(split=later), 10.0).components["split"]
    assert (found.pending, found.queued, found.restarts, found.errors) == (5, 4, 1, 2)


def test_shares_add_up_to_one() -> None:
    """What is not spent otherwise is idle."""
    shares = of_task(spent(executing=0.1, awaiting=0.2, blocked=0.3, limited=0.15)).shares
    assert shares == pytest.approx(Shares(0.1, 0.2, 0.3, 0.15, 0.25))
    assert shares.busy == pytest.approx(0.3)


def test_shares_are_of_the_window() -> None:
    """What was spent before it is left out."""
    earlier, later = spent(100, awaiting=1.0), replace(spent(100, awaiting=1.0), uptime=200.0)
    assert shares_between(earlier, later) == Shares()


def test_shares_of_a_component_are_means() -> None:
    """A component of two tasks of which one is busy is half busy."""
    found = figures_between(START, statistics(split=[spent(awaiting=1.0), spent()]), 100).components["split"]
    assert found.shares == Shares(awaiting=0.5, idle=0.5)
    assert found.busiest.shares.awaiting == 1.0


def test_times_that_are_longer_than_the_time_are_shortened() -> None:
    """The parts add up to 1 also where more was measured than time has passed."""
    assert of_task(spent(executing=0.9, awaiting=0.9)).shares == Shares(0.5, 0.5, 0, 0, 0)


def test_a_time_that_has_shrunk_counts_as_none() -> None:
    """A task that counts anew after its restart has no negative share."""
    assert shares_between(spent(50, awaiting=1.0), spent(100, executing=0.1)).awaiting == 0.0


def test_what_has_not_lived_is_idle() -> None:
    """No time, no parts of it: the whole is idle."""
    assert of_task(TaskStatistics()).shares == Shares(idle=1.0)


def test_capacity_is_that_of_the_busiest_task() -> None:
    """Storm shows the largest of the executors; a spout has none."""
    tasks = [replace(spent(awaiting=part), execute_times=times(1)) for part in (0.2, 0.9, 0.1)]
    found = figures_between(START, statistics(split=tasks, lines=spent(awaiting=1.0)), 100).components
    assert found["split"].capacity == pytest.approx(0.9)
    assert found["lines"].capacity is None


def test_latencies_are_those_of_the_window() -> None:
    """A slow hour before says nothing of the last minute."""
    earlier = TaskStatistics(executed=1, execute_times=times(50.0))
    later = TaskStatistics(executed=4, execute_times=times(50.0, 0.1, 0.1, 0.4))
    found = (
        figures_between(statistics(split=earlier), statistics(split=later), 60).components["split"].execute
    )
    assert found is not None
    assert (found.count, found.mean) == (3, pytest.approx(0.2))
    assert (found.p50, found.max) == (pytest.approx(0.1, rel=0.07), pytest.approx(0.4, rel=0.07))
    assert found.p50 < found.p90 <= found.p99 <= found.max


def test_each_latency_has_its_own_times() -> None:
    """Execute, process and complete are not mixed up."""
    task = TaskStatistics(execute_times=times(1), process_times=times(2), complete_times=times(4))
    found = of_task(task)
    means = [each and each.mean for each in (found.execute, found.process, found.complete)]
    assert means == [1.0, 2.0, 4.0]


def test_there_are_no_percentiles_of_nothing() -> None:
    """None, and not 0 s, where nothing was measured, or nothing in this window."""
    assert percentiles_between(None, None) is None
    assert percentiles_between(times(1), times(1)) is None


def test_latencies_of_tasks_are_those_of_the_components_asked_for() -> None:
    """Those of components and the means are always there."""
    task = TaskStatistics(executed=2, execute_seconds=3.0, execute_times=times(1, 2))
    later = statistics(split=task, count=task)
    found = figures_between(START, later, 60, times_of=("split",)).components
    assert {id: each.tasks[1].execute is None for id, each in found.items()} == {
        "split": False,
        "count": True,
    }
    assert {each.execute and each.execute.mean for each in found.values()} == {1.5}
    assert {each.tasks[1].execute_latency for each in found.values()} == {1.5}


def test_means_are_of_the_window() -> None:
    """Of execute and of complete; None where nothing took time."""
    earlier = TaskStatistics(executed=2, execute_seconds=9.0, complete_samples=1, complete_seconds=7.0)
    later = TaskStatistics(executed=4, execute_seconds=10.0, complete_samples=5, complete_seconds=9.0)
    found = figures_between(statistics(split=earlier), statistics(split=later), 60).components["split"]
    assert (found.execute_latency, found.complete_latency) == (0.5, 0.5)
    assert of_task(TaskStatistics(executed=4)).execute_latency is None


@pytest.mark.parametrize("number", [1, 2, 3, 10, 11, 99, 100, 101, 1000])
def test_percentiles_are_those_of_the_histogram(number: int) -> None:
    """Taken in one pass, they are what it answers for each."""
    histogram = times(*(1.01**place for place in range(number)))
    found = percentiles_between(None, histogram)
    assert found is not None
    asked = [histogram.quantile(q) for q in (0.5, 0.9, 0.99, 1.0)]
    assert [found.p50, found.p90, found.p99, found.max] == asked


def test_a_difference_to_what_was_not_kept_is_unknown() -> None:
    """Where the earlier histogram is missing although tuples had been executed, there is no latency."""
    later = statistics(split=TaskStatistics(executed=4, execute_times=times(1, 1, 1, 1)))
    kept_none = statistics(split=TaskStatistics(executed=2))
    assert figures_between(kept_none, later, 60).components["split"].execute is None
    assert figures_between(statistics(split=TaskStatistics()), later, 60).components["split"].execute


def test_tasks_that_were_not_kept_are_left_out() -> None:
    """Rates of a task from its start would not be those of the window."""
    later = statistics(split=TaskStatistics(executed=4))
    earlier = Statistics({"split": replace(later.components["split"], tasks=None)})
    found = figures_between(earlier, later, 60).components["split"]
    assert found.tasks == {}
    assert found.busiest is found


def test_streams_have_rates() -> None:
    """One that is new counts from 0."""
    old, new = StreamStatistics(10, 20), StreamStatistics(30, 60)
    component = of_component({})
    earlier = Statistics({"split": replace(component, streams={"default": old})})
    later = Statistics({"split": replace(component, streams={"default": new, "late": old})})
    found = figures_between(earlier, later, 10.0).components["split"].streams
    assert {name: (each.emitted, each.transferred) for name, each in found.items()} == {
        "default": (2.0, 4.0),
        "late": (1.0, 2.0),
    }


def test_edges_have_fill_and_waits() -> None:
    """The rate and the part waited are of the window, the fill is now."""
    before = edge("lines", "split", transferred=10, waited_seconds=5.0)
    now = replace(before, transferred=60, queued=512, capacity=1024, fullest=1.0, waited_seconds=7.5)
    (found,) = figures_between(Statistics({}, edges=[before]), Statistics({}, edges=[now]), 10.0).edges
    assert (found.rate, found.fill, found.fullest, found.waited) == (5.0, 0.5, 1.0, 0.25)
    assert (found.producer, found.stream, found.consumer, found.grouping) == (
        "lines",
        "default",
        "split",
        "shuffle",
    )


def test_an_edge_without_capacity_is_empty() -> None:
    """No division by 0."""
    (found,) = figures_between(START, Statistics({}, edges=[edge("a", "c", capacity=0)]), 10.0).edges
    assert (found.fill, found.waited) == (0.0, 0.0)


def test_what_holds_the_loop_is_ours_or_that_of_others() -> None:
    """Probes that came late tell how busy the loop is; what is not ours is of others."""
    before = LoopStatistics(100, 100, times(1.0), own_seconds=50.0, seconds=90.0)
    now = LoopStatistics(300, 240, times(1.0, 0.005, 0.02), own_seconds=51.0, seconds=100.0)
    loop = figures_between(Statistics({}, loop=before), Statistics({}, loop=now), 10.0).loop
    assert loop is not None
    assert (loop.busy, loop.own, loop.others) == pytest.approx((0.7, 0.1, 0.6))
    assert loop.lag.count == 2


def test_probes_that_rest_find_no_others() -> None:
    """A topology that works in bursts is late by itself while they are under way, and probes rest between."""
    now = LoopStatistics(10, 8, times(0.1), own_seconds=2.0, seconds=2.5)
    loop = figures_between(START, Statistics({}, loop=now), 10.0).loop
    assert loop is not None
    assert (loop.busy, loop.own, loop.others) == pytest.approx((0.2, 0.2, 0.0))


def test_a_loop_that_was_not_probed_is_unknown() -> None:
    """Without probes in the window nothing is said of it; nor are other parts of it negative."""
    loop = LoopStatistics(10, 1, times(0.0), own_seconds=9.0, seconds=10.0)
    assert figures_between(Statistics({}, loop=loop), Statistics({}, loop=loop), 10.0).loop is None
    found = figures_between(START, Statistics({}, loop=loop), 10.0).loop
    assert found is not None
    assert found.others == 0.0


def test_a_window_without_length() -> None:
    """Two statistics of one moment give figures all the same."""
    assert figures_between(START, statistics(split=TaskStatistics()), 0.0).components["split"].emitted == 0.0


def test_what_is_known_of_a_source() -> None:
    """Its lag, and whether more is to come than it has done."""
    lagging = of_component(
        {1: TaskStatistics()}, {1: Progress(3, 9)}, {1: Connection(address="x", lag={"0": 7})}
    )
    done = of_component({1: TaskStatistics()}, {1: Progress(9, 9)})
    endless = of_component({1: TaskStatistics()}, {1: Progress(9)})
    found = figures_between(START, Statistics({"a": lagging, "b": done, "c": endless}), 1.0).components
    assert [each.lag for each in found.values()] == [7, None, None]
    assert [each.is_ahead for each in found.values()] == [True, False, False]


def test_figures_are_written_as_json_and_read_again() -> None:
    """Each of them, down to the tasks."""
    later = replace(statistics(split=spent(awaiting=0.5)), pending_by_age=[AgedTrees(10.0, 3)])
    figures = figures_between(START, later, 100.0, "1m")
    assert json.decode(json.encode(figures), type=Figures) == figures
    assert (figures.window, figures.seconds, figures.pending_by_age) == ("1m", 100.0, [AgedTrees(10.0, 3)])
