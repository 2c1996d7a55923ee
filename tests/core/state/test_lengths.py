"""The length of epochs in time (law X1)."""

from __future__ import annotations

import pytest

from stormlet.core.state.lengths import AT_ONCE, Length


def ended(wanted: float, waited: float) -> Length:
    """The length of epochs, after one whose end has taken so long."""
    length = Length(wanted)
    length.begin(100.0)
    length.close(100.0 + wanted)
    length.end(100.0 + wanted + waited)
    return length


@pytest.mark.parametrize(
    ("waited", "seconds"), [(0.0, 1.0), (0.1, 1.0), (0.5, 5.0), (1.0, 10.0), (30.0, 10.0)]
)
def test_an_epoch_lasts_ten_times_as_long_as_the_last_end_has_taken(waited: float, seconds: float) -> None:
    """But not shorter than wanted, nor longer than ten times that."""
    assert ended(1.0, waited).seconds == pytest.approx(seconds)


def test_so_much_is_left_of_it() -> None:
    """From its first message on."""
    length = ended(1.0, 0.5)
    length.begin(200.0)
    assert length.left(201.0) == pytest.approx(4.0)
    assert length.left(205.0 - AT_ONCE / 2) == length.left(206.0) == 0.0


def test_an_end_begins_when_the_sources_begin_to_wait() -> None:
    """It is closed once, whoever says so again."""
    length = Length(1.0)
    length.close(1.0)
    length.close(1.4)
    length.end(1.5)
    assert length.seconds == pytest.approx(5.0)


def test_an_attempt_that_is_repeated_says_nothing() -> None:
    """Neither does an epoch that was full."""
    length = ended(1.0, 0.5)
    length.close(300.0)
    length.repeat()
    length.end(400.0)
    assert length.seconds == pytest.approx(5.0)
