"""Histograms of seconds, with numpy as the oracle of their quantiles."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.histogram import FIRST_BOUND, LAST_BOUND, Histogram, merged

TIMES = st.floats(FIRST_BOUND, LAST_BOUND, exclude_max=True)
ANY = st.lists(st.floats(0.0, 1e9), max_size=50)
WIDTH = 1 + 1 / 16


def of(times: Sequence[float]) -> Histogram:
    histogram = Histogram()
    for each in times:
        histogram.add(each)
    return histogram


@given(st.lists(TIMES, min_size=1), st.floats(0.0, 1.0))
def test_a_quantile_is_the_one_of_numpy_and_at_most_a_sixteenth_more(times: list[float], q: float) -> None:
    """No quantile is below the true one, nor above it by more than the width of a bucket."""
    exact = float(np.quantile(times, q, method="inverted_cdf"))
    found = of(times).quantile(q)
    assert found is not None
    assert exact <= found <= exact * WIDTH


@pytest.mark.parametrize("seed", range(3))
def test_the_quantiles_of_many_times_are_those_of_numpy(seed: int) -> None:
    """Of a hundred thousand log-normal times p50, p90, p99 and the largest are right to a bucket."""
    times = np.random.default_rng(seed).lognormal(-7.0, 2.0, 100_000)
    histogram = of(times.tolist())
    for q in (0.5, 0.9, 0.99, 0.999, 1.0):
        exact = float(np.quantile(times, q, method="inverted_cdf"))
        assert exact <= (histogram.quantile(q) or 0.0) <= exact * WIDTH
    assert histogram.largest == histogram.quantile(1.0)
    assert histogram.mean == pytest.approx(float(times.mean()))


@given(TIMES)
def test_a_time_is_below_the_bound_of_its_bucket_and_not_below_the_last_one(time: float) -> None:
    """The bound of a time's bucket is above it by a sixteenth of an octave at most, and begins the next bucket."""
    ((bound, _),) = of([time]).buckets()
    assert time < bound <= time * WIDTH
    assert of([time, math.nextafter(bound, 0.0)]).counts == {bound: 2}
    assert bound == LAST_BOUND or len(of([time, bound]).counts) == 2


def test_there_are_16_buckets_in_an_octave() -> None:
    """From 60 ns to 48 days there are 46 octaves, and one bucket below them."""
    bounds = {
        bound
        for power in range(-25, 23)
        for part in range(64)
        for bound in of([2.0**power * (1 + part / 64)]).counts
    }
    assert len(bounds) == 46 * 16 + 1


@pytest.mark.parametrize(
    ("time", "bound"), [(0.0, FIRST_BOUND), (-1.0, FIRST_BOUND), (1e9, LAST_BOUND), (LAST_BOUND, LAST_BOUND)]
)
def test_what_is_beyond_the_bounds_is_in_the_outermost_buckets(time: float, bound: float) -> None:
    """No time is too short, too long or too odd."""
    assert list(of([time]).buckets()) == [(bound, 1)]


@given(ANY, ANY)
def test_the_sum_has_the_times_of_both(some: list[float], others: list[float]) -> None:
    """Adding is the same as having counted everything in one, and changes neither."""
    one, other = of(some), of(others)
    both = one + other
    assert both == of(some + others)
    assert list(both.buckets()) == list(of(some + others).buckets())
    assert (both.count, both.total) == (len(some) + len(others), pytest.approx(sum(some) + sum(others)))
    assert (one, other) == (of(some), of(others))


@given(ANY, ANY)
def test_the_difference_is_what_came_since(before: list[float], after: list[float]) -> None:
    """An earlier copy taken from a histogram leaves what was added later."""
    histogram = of(before)
    earlier = histogram.copy()
    for each in after:
        histogram.add(each)
    since = histogram - earlier
    assert since == of(after)
    assert (since.count, since.largest) == (len(after), of(after).largest)
    assert since.total == pytest.approx(sum(after), rel=1e-6, abs=1e-5 * sum(before))


def test_only_an_earlier_copy_can_be_taken_from_it() -> None:
    """What a histogram never had cannot be taken out."""
    with pytest.raises(ValueError, match="earlier copy"):
        of([1.0]) - of([2.0])


def test_one_time_counts_as_often_as_it_is_said_to() -> None:
    """A chunk's mean counts for each of its tuples."""
    histogram = Histogram()
    histogram.add(0.25, 8)
    assert histogram == of([0.25] * 8)
    assert (histogram.count, histogram.total) == (8, 2.0)


def test_an_empty_one_has_no_quantiles() -> None:
    """Nothing is said of no times, and nothing that could be taken for a number."""
    empty = Histogram()
    assert (empty.quantile(0.5), empty.largest, empty.mean) == (None, None, None)
    assert list(empty.buckets()) == []
    assert repr(empty) == "Histogram()"


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan")])
def test_a_quantile_is_a_share(q: float) -> None:
    """A percentage is refused."""
    with pytest.raises(ValueError, match="from 0 to 1"):
        of([1.0]).quantile(q)


def test_it_reads_as_its_quantiles() -> None:
    """In a debugger the numbers that matter are seen."""
    assert repr(of([0.99] * 99 + [63.0])) == "<Histogram of 100: p50 1 s, p99 1 s, largest 64 s>"


def test_a_missing_one_adds_nothing() -> None:
    """Of two histograms any may be missing, or both."""
    one = of([1.0])
    assert merged(one, None) is one
    assert merged(None, one) is one
    assert merged(None, None) is None
    assert merged(one, one) == of([1.0, 1.0])


def test_it_can_be_copied_to_another_process() -> None:
    """A pickled histogram is the same one."""
    again = pickle.loads(pickle.dumps(of([1.0, 2.0])))
    assert (again, again.total, type(again)) == (of([1.0, 2.0]), 3.0, Histogram)


def test_it_is_written_as_json() -> None:
    """As its counts by the upper bounds of the buckets, and the sum."""
    assert msgspec.json.decode(msgspec.json.encode(of([1.0, 1.0, 3.9]))) == {
        "counts": {"1.0625": 2, "4.0": 1},
        "total": 5.9,
    }


def test_it_cannot_be_a_key() -> None:
    """It can change, and so has no hash."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(of([]))
