"""From counts to rates, latencies and the fill of queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from stormlet import Topology
from stormlet.cli.running.meter import WINDOW, Frame, Meter, Row, known_length
from stormlet.report.statistics import ComponentStatistics, Progress, Statistics


def topology(source: object = range(100), **options: object) -> Topology:
    """Numbers that are printed."""
    made = Topology("metered", max_spout_pending=10, queue_capacity=4, **options)
    numbers = made.spout("numbers", source)  # type: ignore[call-overload]
    made.bolt("print", print, numbers.shuffle(), parallelism=3)
    return made


def counts(emitted: int, executed: int, **more: float) -> Statistics:
    """The statistics of such a topology."""
    numbers = ComponentStatistics(
        emitted=emitted,
        acked=executed,
        pending=emitted - executed,
        complete_seconds=0.5 * executed,
        complete_samples=executed,
    )
    prints = ComponentStatistics(executed=executed, queued=6, execute_seconds=more.get("took", 0.0))
    return Statistics({"__acker": ComponentStatistics(executed=7), "numbers": numbers, "print": prints})


def rows(frame: Frame) -> tuple[Row, Row]:
    numbers, prints = frame.rows
    return numbers, prints


def test_components_stand_in_their_order_without_the_ackers() -> None:
    """Spouts first, as they were added; the engine's own are nobody's business here."""
    frame = Meter(topology().describe(), {}, None).frame(counts(10, 4), 1.0)
    assert [(row.id, row.is_spout) for row in frame.rows] == [("numbers", True), ("print", False)]


def test_reports_stand_in_the_order_of_the_components() -> None:
    """Those who report nothing have none."""
    statistics = counts(10, 4)
    reporting = replace(statistics.components["print"], progress=Progress(3, 9, "rows written"))
    statistics = Statistics({**statistics.components, "print": reporting})
    frame = Meter(topology().describe(), {}, None).frame(statistics, 1.0)
    assert frame.reports == {"print": Progress(3, 9, "rows written")}


def test_rates_are_those_of_the_last_two_seconds() -> None:
    """What happened before has no part in them; at the end they are those of the whole run."""
    meter = Meter(topology().describe(), {}, None)
    for seconds, done in ((1.0, 1000), (2.0, 2000), (3.0, 2010), (4.0, 2020)):
        frame = meter.frame(counts(done + 5, done), seconds)
    assert [row.per_second for row in frame.rows] == [10, 10]
    assert frame.tuples_per_second == 10
    assert [row.per_second for row in meter.summary(counts(2025, 2020), 4.0).rows] == [2025 / 4, 2020 / 4]


def test_it_remembers_no_more_than_it_needs() -> None:
    """However long a run is watched: the frames of two seconds, and the one before them."""
    meter = Meter(topology().describe(), {}, None)
    for frame in range(10_000):
        meter.frame(counts(frame, frame), frame / 4)
        assert len(meter._past) <= 4 * WINDOW + 2  # pyright: ignore[reportPrivateUsage] - memory has no public face


def test_a_latency_is_that_of_the_last_two_seconds_or_the_last_known() -> None:
    """Execute latency of bolts, complete latency of spouts; where nothing happens, what was last seen stays."""
    meter = Meter(topology().describe(), {}, None)
    assert [row.latency for row in meter.frame(counts(0, 0), 0.5).rows] == [None, None]
    meter.frame(counts(100, 100, took=10.0), 1.0)
    meter.frame(counts(100, 100, took=10.0), 2.9)
    assert [row.latency for row in meter.frame(counts(110, 110, took=10.1), 3.0).rows] == [
        0.5,
        pytest.approx(0.01),
    ]
    assert [row.latency for row in meter.frame(counts(110, 110, took=10.1), 9.0).rows] == [
        0.5,
        pytest.approx(0.01),
    ]


def test_what_waits_is_set_against_what_may_wait() -> None:
    """Of a spout its pending messages, of a bolt the tuples queued, for all tasks together; settings count."""
    numbers, prints = rows(Meter(topology().describe(), {}, None).frame(counts(10, 4), 1.0))
    assert (numbers.waiting, numbers.capacity, numbers.fill) == (6, 10, 0.6)
    assert (prints.waiting, prints.capacity, prints.fill) == (6, 12, 0.5)
    settings = {"max_spout_pending": None, "queue_capacity": 1}
    numbers, prints = rows(Meter(topology().describe(), settings, None).frame(counts(10, 4), 1.0))
    assert (numbers.capacity, numbers.fill) == (None, None)
    assert (prints.capacity, prints.fill) == (3, 1.0)


def test_what_is_crowded_was_so_all_the_time() -> None:
    """A queue that was half full in each of the last frames holds others up; one that is so now may only be busy."""
    meter = Meter(topology().describe(), {"queue_capacity": 2}, None)
    crowded = [rows(meter.frame(counts(10, 4), seconds))[1].is_crowded for seconds in (0.5, 1.0, 2.0, 2.5)]
    assert crowded == [False, False, False, True]
    assert not rows(meter.frame(counts(10, 4), 2.75))[0].is_crowded


def test_progress_counts_messages_acked_and_given_up() -> None:
    """Of the total that is known; the time left is what the rest takes at the rate so far."""
    meter = Meter(topology().describe(), {}, 100)
    progress = meter.frame(counts(30, 20), 4.0).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.seconds_left) == (20, 100, 16.0)
    before = meter.frame(counts(0, 0), 4.0).progress
    assert before is not None
    assert before.seconds_left is None
    more = meter.frame(counts(130, 120), 4.0).progress
    assert more is not None
    assert (more.done, more.seconds_left) == (100, 0)


def test_the_length_of_iterables_is_known() -> None:
    """Where every source says how many values it has, and only there."""

    def generator() -> Iterator[int]:
        yield 1

    both = topology()
    both.spout("more", iter([1, 2]))
    assert known_length(both.describe()) == 102
    both.spout("unknown", generator)
    assert known_length(both.describe()) is None
    assert known_length(topology([]).describe()) is None


def test_a_source_whose_length_raises_has_none() -> None:
    """No bar is worth a run."""

    class Sulky(list[int]):
        def __len__(self) -> int:
            raise ZeroDivisionError

    assert known_length(topology(Sulky()).describe()) is None
