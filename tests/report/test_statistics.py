from __future__ import annotations

import msgspec
import pytest

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import (
    MERGED,
    SUMMED,
    ComponentStatistics,
    EdgeStatistics,
    LoopStatistics,
    Progress,
    Statistics,
    StreamStatistics,
    TaskStatistics,
    of_component,
)

NAMES = TaskStatistics.__struct_fields__


def counted(factor: int) -> TaskStatistics:
    """Every count another number, so that a mix-up of two would show."""
    numbers = {name: factor * 8**place for place, name in enumerate(SUMMED)}
    times = {name: lasting(2.0**place, factor) for place, name in enumerate(MERGED)}
    return TaskStatistics(**numbers, **times)


def lasting(seconds: float, count: int = 1) -> Histogram:
    histogram = Histogram()
    histogram.add(seconds, count)
    return histogram


def test_counts_start_at_zero() -> None:
    """A task that has done nothing has counted nothing, and has no times of anything."""
    assert all(getattr(TaskStatistics(), name) == 0 for name in SUMMED)
    assert all(getattr(TaskStatistics(), name) is None for name in MERGED)


def test_what_is_not_busy_is_idle() -> None:
    """The five shares of the time of a task add up to it; calls that overlap cannot make it idle less than never."""
    task = TaskStatistics(
        uptime=10.0, executing_seconds=1.0, awaiting_seconds=2.0, blocked_seconds=3.0, limited_seconds=1.5
    )
    assert task.idle_seconds == 2.5
    assert TaskStatistics(uptime=1.0, executing_seconds=1.5).idle_seconds == 0.0


def test_the_streams_of_a_component_are_those_of_its_tasks() -> None:
    """The counts of a stream are added over the tasks."""
    of_tasks = [
        {"words": StreamStatistics(2, 4), "errors": StreamStatistics(1, 0)},
        {"words": StreamStatistics(3, 6)},
    ]
    component = of_component({}, streams=of_tasks)
    assert component.streams == {"words": StreamStatistics(5, 10), "errors": StreamStatistics(1, 0)}


def test_counts_are_added_one_by_one() -> None:
    """Each count of the sum is the sum of that count alone."""
    assert counted(2) + counted(3) == counted(5)


def test_a_component_is_the_sum_of_its_tasks() -> None:
    """And it tells the tasks too, by their ids."""
    tasks = {4: counted(1), 5: counted(2), 6: counted(4)}
    component = of_component(tasks)
    assert [getattr(component, name) for name in NAMES] == [getattr(counted(7), name) for name in NAMES]
    assert component.tasks == tasks


def test_reports_are_added() -> None:
    """What all have reported counts together; what is known in all, only where each knows."""
    tasks = {4: counted(1), 5: counted(2), 6: counted(4)}
    reported = {5: Progress(3, 10, "rows"), 6: Progress(4, 20, "rows"), 7: Progress(99)}
    assert of_component(tasks, reported).progress == Progress(7, 30, "rows")
    assert of_component(tasks, {**reported, 4: Progress(1, None, "rows")}).progress == Progress(
        8, None, "rows"
    )
    assert of_component(tasks, {7: Progress(99)}).progress is None


def test_a_component_without_tasks() -> None:
    """The ackers of a topology that has none have counted nothing."""
    assert of_component({}) == ComponentStatistics(tasks={})


def test_the_topology_sums_what_it_gave_up() -> None:
    """Dead letters and left-overs over all components."""
    statistics = Statistics(
        {
            "lines": ComponentStatistics(dead_letters=2, left_over=5),
            "other": ComponentStatistics(dead_letters=3),
            "__acker": ComponentStatistics(),
        }
    )
    assert statistics.dead_letters == 5
    assert statistics.left_over == 5


def test_a_topology_that_lost_nothing() -> None:
    """Both sums are 0."""
    assert (Statistics({}).dead_letters, Statistics({}).left_over) == (0, 0)


def test_a_record_does_not_change() -> None:
    """It is what was counted when it was asked for."""
    with pytest.raises(AttributeError):
        counted(1).acked = 3  # type: ignore[misc]


def test_latencies_are_means() -> None:
    """Execute latency is per executed input, complete latency per sampled message; both are of a component, too."""
    tasks = {
        1: TaskStatistics(executed=10, execute_seconds=1.0, complete_seconds=6.0, complete_samples=2),
        2: TaskStatistics(executed=30, execute_seconds=3.0),
    }
    component = of_component(tasks)
    assert (component.execute_latency, component.complete_latency) == (0.1, 3.0)
    assert (tasks[2].execute_latency, tasks[2].complete_latency) == (0.1, None)


def test_there_is_no_latency_of_nothing() -> None:
    """What has executed and completed nothing has no latency."""
    assert (TaskStatistics().execute_latency, TaskStatistics().complete_latency) == (None, None)


def test_statistics_are_written_as_json() -> None:
    """``msgspec.json.encode`` takes them as they are, down to each task."""
    component = of_component({4: counted(1)}, {4: Progress(3, 9, "rows")})
    written = msgspec.json.decode(msgspec.json.encode(Statistics({"split": component})))
    split = written["components"]["split"]
    assert [split["tasks"]["4"][name] for name in SUMMED] == [getattr(counted(1), name) for name in SUMMED]
    assert split["execute_times"]["counts"] == {"1.0625": 1}
    assert split["progress"] == {"done": 3, "known": 9, "unit": "rows"}


def test_edges_and_the_loop_are_written_as_json() -> None:
    """As are the numbers beside the components."""
    edge = EdgeStatistics("lines", "default", "split", "shuffle", 8, 2, 4, 0.5, 1.5)
    loop = LoopStatistics(probes=2, late=1, lag=lasting(1.0), own_seconds=0.5, seconds=2.0)
    written = msgspec.json.decode(msgspec.json.encode(Statistics({}, edges=[edge], loop=loop)))
    assert written["edges"][0]["waited_seconds"] == 1.5
    assert written["loop"] == {
        "probes": 2,
        "late": 1,
        "lag": {"counts": {"1.0625": 1}, "total": 1.0},
        "own_seconds": 0.5,
        "seconds": 2.0,
    }


def test_what_took_no_time_has_no_latency() -> None:
    """Nor has what was never executed: on simulated time a mean of 0 s would say nothing."""
    assert TaskStatistics(executed=3).execute_latency is None
    assert TaskStatistics(execute_seconds=3.0).execute_latency is None
    assert TaskStatistics(executed=2, execute_seconds=3.0).execute_latency == 1.5
