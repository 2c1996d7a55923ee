from __future__ import annotations

import pytest
from msgspec.structs import replace

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import Statistics, TaskStatistics
from stormlet.report.steps import at_once
from stormlet.report.windows import Windows
from tests.report.numbers import statistics, times


def counted(at: float, per_second: float = 10.0) -> Statistics:
    """One message a tenth of a second from the start, and half as many executed inputs."""
    count = round(at * per_second)
    complete = Histogram()
    complete.add(2.0, count)
    return statistics(
        lines=TaskStatistics(
            emitted=count, acked=count, pending=4, complete_samples=count, complete_times=complete
        ),
        split=TaskStatistics(executed=count // 2, queued=3, pending=3),
    )


def fed(until: float, step: float = 10.0) -> Windows:
    """Windows that were fed at each step from the start."""
    windows = Windows(["lines"])
    for number in range(1, int(until / step) + 1):
        at_once(windows.feed(number * step, counted(number * step)))
    return windows


@pytest.mark.parametrize("window", ["1m", "10m", "1h", "all"])
def test_a_young_run_is_its_own_window(window: str) -> None:
    """Before a window is full it says how long it is, and its rates are of that time."""
    figures = at_once(fed(20).figures(window, 25.0, counted(25)))  # type: ignore[arg-type]
    assert (figures.seconds, figures.window) == (25.0, window)
    assert figures.components["lines"].emitted == 10.0


@pytest.mark.parametrize(("window", "length", "step"), [("1m", 60, 10), ("10m", 600, 60), ("1h", 3600, 600)])
def test_a_full_window_is_about_as_long_as_it_is_named(window: str, length: float, step: float) -> None:
    """Within half a step, whenever it is asked for."""
    windows = fed(9000)
    for at in (9000.0, 9003.0, 9007.0, 9009.9):
        figures = at_once(windows.figures(window, at, counted(at)))  # type: ignore[arg-type]
        assert abs(figures.seconds - length) <= step / 2 + 5
        assert figures.components["lines"].emitted == pytest.approx(10.0, rel=0.001)


def test_a_window_forgets() -> None:
    """What happened before it is in none of its rates, and in those of all time."""
    windows = Windows(["lines"])
    for number in range(1, 13):
        at_once(windows.feed(number * 10.0, counted(10)))
    assert at_once(windows.figures("1m", 120.0, counted(10))).components["lines"].emitted == 0.0
    assert at_once(windows.figures("all", 120.0, counted(10))).components["lines"].emitted == pytest.approx(
        100 / 120
    )


def test_latencies_of_tasks_are_those_of_the_last_minute() -> None:
    """Longer windows leave them out, and have those of components."""
    windows = fed(3000)
    lines = {
        name: at_once(windows.figures(name, 3000.0, counted(3000), ["lines"])).components["lines"]  # type: ignore[arg-type]
        for name in ("1m", "10m", "all")
    }
    assert {name: each.complete and each.complete.count for name, each in lines.items()} == {
        "1m": 600,
        "10m": 6000,
        "all": 30000,
    }
    tasks = {name: each.tasks[1].complete for name, each in lines.items()}
    assert (tasks["10m"], tasks["1m"]) == (None, lines["1m"].complete)


def test_other_windows_are_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(ValueError, match="'5m'; there are 1m, 10m, 1h and all"):
        at_once(fed(10).figures("5m", 10.0, counted(10)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'2h'; there are 1h and 1d"):
        fed(10).series("2h")  # type: ignore[arg-type]


def test_a_timer_that_is_late_or_early_loses_no_step() -> None:
    """A sample is due once in each step, also where timers are not exact."""
    windows = Windows(["lines"])
    for number, late in enumerate((0.003, -0.005, 0.0, 4.0, 0.001), 1):
        at = number * 10 + late
        assert windows.is_due(at)
        at_once(windows.feed(at, counted(at)))
        assert not windows.is_due(at + 1)
    assert len(windows.series()) == 5


def test_a_feed_too_many_is_left_out() -> None:
    """Whoever asks more often than each step changes nothing."""
    windows = Windows(["lines"])
    for at in (10.0, 11.0, 12.0, 20.0):
        at_once(windows.feed(at, counted(at)))
    assert [point.at for point in windows.series()] == [10.0, 20.0]


def test_a_chart_has_a_point_for_each_step() -> None:
    """Of the topology the messages that were acked count, of a spout what it has emitted, of a bolt its inputs."""
    windows = fed(50)
    assert [point.at for point in windows.series()] == [10, 20, 30, 40, 50]
    topology, lines, split = (windows.series("1h", name)[-1] for name in ("", "lines", "split"))
    assert (topology.throughput, lines.throughput, split.throughput) == (10, 10, 5)
    assert (topology.pending, lines.pending, split.pending) == (4, 4, 3)
    assert topology.p50 == lines.p50 == pytest.approx(2.0, rel=0.07)
    assert (split.p50, split.p99) == (None, None)


def test_charts_keep_an_hour_and_a_day() -> None:
    """360 points ten seconds apart, and 144 ten minutes apart; older ones are forgotten."""
    windows = Windows(["lines"])
    for number in range(1, 9001):
        at_once(windows.feed(number * 10.0, statistics(lines=TaskStatistics(emitted=number))))
    hour, day = windows.series("1h", "lines"), windows.series("1d", "lines")
    assert (len(hour), len(day)) == (360, 144)
    assert (hour[-1].at, hour[0].at) == (90_000, 90_000 - 3590)
    assert (day[-1].at, day[0].at) == (90_000, 90_000 - 143 * 600)
    assert [point.throughput for point in day] == pytest.approx([0.1] * 144)


def test_there_is_no_chart_before_the_first_step() -> None:
    """And none of a component that there is not."""
    assert Windows(["lines"]).series("1h", "lines") == ()
    with pytest.raises(KeyError):
        fed(10).series("1h", "nobody")


def test_the_slowest_spout_stands_for_the_topology() -> None:
    """Latencies of several spouts cannot be added, so that the largest is shown."""
    tasks = {
        name: TaskStatistics(acked=1, complete_samples=1, complete_times=times(seconds))
        for name, seconds in (("a", 1.0), ("b", 5.0))
    }
    windows = Windows(["a", "b"])
    at_once(windows.feed(10.0, statistics(**tasks, split=replace(tasks["b"], acked=50))))
    (point,) = windows.series()
    assert point.p50 == pytest.approx(5.0, rel=0.07)
    assert point.throughput == pytest.approx(0.2)
