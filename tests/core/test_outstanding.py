"""Outstanding tuples in words."""

from __future__ import annotations

import pytest

from stormlet.core.outcomes import Outstanding, Place, spelt


@pytest.mark.parametrize(
    ("ahead", "words"), [(0, ""), (1, ", behind another one"), (1234, ", behind 1,234 others")]
)
def test_how_many_are_ahead(ahead: int, words: str) -> None:
    """One, or so many; nothing is said of none."""
    outstanding = Outstanding("row", "save", 4, "save[0]", Place.QUEUED, ("read[0]",), ahead)
    assert str(outstanding) == f"'row' is queued at save[0]{words}, by way of read[0]"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0124, "0.012 s"), (12.34, "12.3 s"), (1_234_567.0, "1234567 s")]
)
def test_seconds_are_spelt_out(seconds: float, words: str) -> None:
    """In tenths, below one in thousandths, and never as 1e+06."""
    assert spelt(seconds) == words
