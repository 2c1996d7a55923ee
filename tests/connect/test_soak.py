"""An hour of simulated time at each twin, with a fault every ten seconds."""

from __future__ import annotations

import pytest

from stormlet.testing.brokers import PROFILES
from tests.connect.conformance import TwinBench, soak


@pytest.mark.parametrize("profile", PROFILES)
def test_an_hour_with_all_faults(profile: str) -> None:
    """Nothing is lost, and nothing is done that no source may do, while messages come."""
    bench = TwinBench(profile)
    bench.begin()
    bench.run(lambda: soak(bench, 3600.0, pause=20.0))
