"""Spark's names of time zones."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from stormlet import InvalidTopology
from stormlet.spark.frames import zone_of


@pytest.mark.parametrize(
    ("name", "ahead"),
    [
        ("UTC", timedelta(0)),
        ("Z", timedelta(0)),
        ("America/New_York", timedelta(hours=-4)),
        ("+02:00", timedelta(hours=2)),
        ("-01:30", -timedelta(hours=1, minutes=30)),
        ("GMT+8", timedelta(hours=8)),
        ("UTC-03:30", -timedelta(hours=3, minutes=30)),
        ("+02:00:30", timedelta(hours=2, seconds=30)),
    ],
)
def test_a_name_gives_its_zone(name: str, ahead: timedelta) -> None:
    """Regions and all forms of offsets that Spark accepts are known."""
    assert datetime(2026, 7, 1, tzinfo=zone_of(name)).utcoffset() == ahead


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A zone that Python does not know is named, with the option that it comes from."""
    with pytest.raises(InvalidTopology, match=r"spark\.sql\.session\.timeZone is"):
        zone_of(name)
