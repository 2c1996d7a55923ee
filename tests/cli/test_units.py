"""Figures as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.cli.units import (
    duration,
    latency,
    rate,
    read_deadline,
    read_duration,
    rough_duration,
    short_count,
    size,
)
from stormlet.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0 k"),
        (12_345, "12.3 k"),
        (99_949, "99.9 k"),
        (99_950, "100 k"),
        (999_499, "999 k"),
        (999_500, "1.00 M"),
        (1_234_567, "1.23 M"),
        (12_345_678_901, "12.3 G"),
    ],
)
def test_counts_have_three_digits_and_a_unit(count: int, shown: str) -> None:
    """Small counts are exact; greater ones are rounded, and step up to the next unit where they reach it."""
    assert short_count(count) == shown


@given(st.integers(min_value=0, max_value=10**15))
def test_counts_are_never_wide(count: int) -> None:
    """A count takes at most six characters, so that its column never moves."""
    assert len(short_count(count)) <= 6


@pytest.mark.parametrize(
    ("per_second", "shown"), [(0, "0"), (0.25, "0.2"), (99.9, "99.9"), (100, "100"), (48_211, "48.2 k")]
)
def test_slow_rates_have_a_decimal(per_second: float, shown: str) -> None:
    """Below a hundred a second, whole numbers would say too little."""
    assert rate(per_second) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (3.4e-7, "0.34 µs"),
        (0.00034, "340 µs"),
        (0.0009996, "1.00 ms"),
        (0.0193, "19.3 ms"),
        (0.99999, "1.00 s"),
        (12.34, "12.3 s"),
        (1000, "16 min 40 s"),
    ],
)
def test_latencies_have_the_unit_that_fits(seconds: float | None, shown: str) -> None:
    """Three digits, in microseconds, milliseconds or seconds; nothing where nothing was measured."""
    assert latency(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (185, "3 min 05 s"), (7_380, "2 h 03 min")],
)
def test_durations_are_words_from_a_minute_on(seconds: float, shown: str) -> None:
    """Seconds with a decimal, then minutes and seconds, then hours and minutes."""
    assert duration(seconds) == shown


def test_what_is_only_estimated_has_no_decimal() -> None:
    """The time that is left is not known to a tenth of a second."""
    assert [rough_duration(each) for each in (0.4, 12.4, 59.9)] == ["0 s", "12 s", "1 min 00 s"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5", 1.5), ("5m", 300), (" 1H ", 3600), ("250ms", 0.25), ("0", 0)],
)
def test_a_number_may_have_a_unit(text: str, seconds: float) -> None:
    """Without one it is seconds."""
    assert read_duration("--duration", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "3x", "-1", "-1s", "nan", "inf", "1e999", "5 min", "none"])
def test_anything_else_is_refused(text: str) -> None:
    """The message names the option and says what to write."""
    with pytest.raises(
        InvalidConfiguration, match=r"^--duration .*: write seconds, or a number with its unit"
    ):
        read_duration("--duration", text)


def test_a_deadline_may_be_none() -> None:
    """No deadline is said with a word; the rest is a duration."""
    assert read_deadline("None") is None
    assert read_deadline("2m") == 120
    with pytest.raises(InvalidConfiguration, match="--drain-timeout never"):
        read_deadline("never")


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (12_345_678, "12.3 MB"),
        (7e12, "7000 GB"),
    ],
)
def test_sizes_have_three_digits_and_a_unit(count: float, shown: str) -> None:
    """As counts have."""
    assert size(count) == shown
