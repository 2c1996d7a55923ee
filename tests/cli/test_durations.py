"""Durations on the command line."""

from __future__ import annotations

import pytest

from stormlet.cli.durations import read_deadline, read_duration
from stormlet.errors import InvalidConfiguration


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
