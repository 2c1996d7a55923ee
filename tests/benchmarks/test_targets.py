"""What is meant to be, and what was measured."""

from __future__ import annotations

import pytest

from benchmarks.catalogue import WORKLOADS
from benchmarks.targets import AT_MOST, OF_SPARK, TARGETS, verdicts
from benchmarks.units import LIMITS, UNITS
from stormlet.bench.workload import Figures
from tests.benchmarks.reports import report_of


def judged(figures: dict[str, Figures], *, compiled: bool = False) -> dict[str, bool | None]:
    """Whether each target was met that one round tells of."""
    results = report_of(
        {name: {which: [value] for which, value in each.items()} for name, each in figures.items()}
    ).results
    return {each.target: each.met for each in verdicts(results, compiled=compiled)}


def rates(**by_name: float) -> dict[str, Figures]:
    """Tuples per second, by workload."""
    return {name.replace("_", "-"): {"tuples_per_s": value} for name, value in by_name.items()}


def test_a_target_is_asked_of_its_build_alone() -> None:
    """The compiled one has more to reach."""
    half = rates(loops=1000.0, acked=150.0)
    assert judged(half) == {
        "word count, acked : the limit, at least 1/10": True,
        "word count, acked : the limit, at least 1/5": None,
        "word count, acked : the limit, wanted 1/3": None,
    }
    assert judged(half, compiled=True) == {
        "word count, acked : the limit, at least 1/10": None,
        "word count, acked : the limit, at least 1/5": False,
        "word count, acked : the limit, wanted 1/3": False,
    }


def test_the_best_batches_of_a_peer_count() -> None:
    """Not those that make it look bad."""
    measured = judged(rates(acked=130.0, bytewax_1=10.0, bytewax_256=100.0, bytewax_1000=90.0), compiled=True)
    assert measured == {
        "word count, acked : Bytewax with keys, its best batches, at least 1.25": True,
        "word count, acked : Bytewax with keys, its best batches, wanted 2": False,
    }


@pytest.mark.parametrize(("acked", "met"), [(60.0, True), (59.0, False)])
def test_acking_may_cost_so_much(acked: float, met: bool) -> None:
    """At most 40 % of the rate without."""
    assert judged(rates(acked=acked, unacked=100.0)) == {"word count, acked : unacked, at least 0.6": met}


def test_ratios_are_those_of_one_round() -> None:
    """The median of the ratios, not the ratio of the medians."""
    report = report_of(
        {"loops": {"tuples_per_s": [100.0, 900.0, 1000.0]}, "acked": {"tuples_per_s": [50.0, 90.0, 90.0]}}
    )
    assert next(iter(verdicts(report.results, compiled=False))).value == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("written", "met"), [(30.0, [True, True]), (29.0, [True, False]), (19.0, [False, False])]
)
def test_rows_from_spark_have_a_share_of_its_iterator(written: float, met: list[bool]) -> None:
    """So much must be, and so much is wanted, of rows that go back by a sink."""
    measured = judged({"spark": {"raw_rows_per_s": 100.0, "sunk_rows_per_s": written}}, compiled=True)
    assert list(measured.values()) == met


def test_what_is_exactly_once_has_a_share_of_the_iterator_over_files() -> None:
    """As it reads them."""
    figures = {"raw_rows_per_s": 1.0, "raw_files_rows_per_s": 100.0, "exact_rows_per_s": 17.0}
    assert list(judged({"spark": figures}, compiled=True).values()) == [False]


@pytest.mark.parametrize(("milliseconds", "met"), [(5.0, True), (5.1, False)])
def test_a_figure_has_its_bound(milliseconds: float, met: bool) -> None:
    """In its own unit."""
    assert judged({"expiry": {"longest_hold_ms": milliseconds}}) == {
        "the loop is never held longer than 5 ms by an expiry": met
    }


def test_every_bound_is_of_a_figure_that_there_is() -> None:
    """A misspelt one would never be judged."""
    assert {name for _, name, _, _, _ in AT_MOST} <= WORKLOADS.keys()
    assert {which for _, _, which, _, _ in AT_MOST} <= UNITS.keys()
    assert {which for _, which, _ in OF_SPARK} <= LIMITS.keys()


def test_what_was_not_measured_is_not_judged() -> None:
    """No targets without figures; and each says something else."""
    assert judged({}) == {}
    assert len({each.text for each in TARGETS}) == len(TARGETS)
