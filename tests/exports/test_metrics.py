"""The metrics of a topology, from statistics that are made by hand."""

from __future__ import annotations

from msgspec import structs

from stormlet.core.histogram import Histogram
from stormlet.exports.metrics import BY_TASK, METRICS, measured
from stormlet.report.health import Health, RunState
from stormlet.report.statistics import (
    AgedTrees,
    EdgeStatistics,
    EpochStatistics,
    LoopStatistics,
    StateStatistics,
    Statistics,
    StreamStatistics,
    TaskStatistics,
    of_component,
)

HEALTH = Health(RunState.RUNNING, 7, (), None)
TIMES = Histogram()
TIMES.add(0.5, 4)
STATISTICS = Statistics(
    {
        "work": of_component(
            {
                2: TaskStatistics(executed=3, executing_seconds=1.0, uptime=4.0, execute_times=TIMES),
                3: TaskStatistics(executed=4, awaiting_seconds=2.0, uptime=4.0, execute_times=TIMES),
            },
            streams=[{"default": StreamStatistics(5, 10)}],
        )
    },
    EpochStatistics(3, 1.5, 2, {"work.total": StateStatistics(10, 200)}),
    [EdgeStatistics("spout", "default", "work", "shuffle", 7, 5, 100, 0.05, 1.25)],
    LoopStatistics(100, 20, TIMES, 1.5),
    [AgedTrees(0.0, 4), AgedTrees(10.0, 1), AgedTrees(20.0, 0)],
)


def found(
    statistics: Statistics = STATISTICS, *, by_task: bool = False
) -> dict[str, dict[tuple[str, ...], object]]:
    families: dict[str, dict[tuple[str, ...], object]] = {}
    for metric, labels, value in measured("t", statistics, HEALTH, by_task=by_task):
        families.setdefault(metric.name, {})[labels] = value
    return families


def test_everything_that_is_measured_is_told() -> None:
    """Components, streams, edges, the loop, epochs and states have their values."""
    told = found()
    assert told["executed_tuples"] == {("t", "work"): 7}
    assert told["tasks"] == {("t", "work"): 2}
    assert told["transferred_tuples"] == {("t", "work", "default"): 10}
    assert told["edge_fill_ratio"] == {("t", "spout", "default", "work"): 0.05}
    assert told["edge_waited_seconds"] == {("t", "spout", "default", "work"): 1.25}
    assert (told["loop_probes"], told["loop_late_probes"]) == ({("t",): 100}, {("t",): 20})
    assert told["state_bytes"] == {("t", "work.total"): 200}
    assert (told["pending_messages"], told["durable_epoch"]) == ({("t",): 7}, {("t",): 3})


def test_an_epoch_that_is_kept_nowhere_is_not_called_durable() -> None:
    """Its states are told of, and the messages that wait for its end."""
    assert STATISTICS.epoch is not None
    told = found(structs.replace(STATISTICS, epoch=structs.replace(STATISTICS.epoch, is_kept=False)))
    assert not {"durable_epoch", "durable_epoch_age_seconds"} & told.keys()
    assert told["withheld_messages"]


def test_shares_of_time_add_up() -> None:
    """The seconds of all activities are the age of the tasks."""
    seconds = found()["task_seconds"]
    assert seconds["t", "work", "executing"] == 1.0
    assert sum(float(str(each)) for each in seconds.values()) == 8.0


def test_the_oldest_tree_is_the_oldest_that_is_there() -> None:
    """An age that no tree has is none."""
    assert found()["oldest_tree_age_seconds"] == {("t",): 10.0}


def test_times_are_histograms_of_all_tasks() -> None:
    """Those of two tasks are merged."""
    (times,) = found()["execute_seconds"].values()
    assert isinstance(times, Histogram)
    assert (times.count, times.total) == (8, 4.0)


def test_tasks_have_a_label_of_their_own() -> None:
    """Asked for tasks, each has its own values, and no component has."""
    told = found(by_task=True)
    assert told["executed_tuples"] == {("t", "work", "2"): 3, ("t", "work", "3"): 4}
    assert told["tasks"] == {("t", "work"): 2}


def test_every_sample_has_as_many_labels_as_its_metric() -> None:
    """Names and values of labels go together, with the topology first."""
    known = {*METRICS, *BY_TASK.values()}
    for by_task in (False, True):
        for metric, labels, _ in measured("t", STATISTICS, HEALTH, by_task=by_task):
            assert metric in known
            assert len(labels) == 1 + len(metric.labels)


def test_names_follow_the_conventions() -> None:
    """Names are unique, counters end with _total, and base units stand before that."""
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert not [name for name in names if "_ms" in name or "minutes" in name or name.endswith("_total_total")]
