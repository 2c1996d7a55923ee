"""Every twin passes every case, so that what a topology does with a twin, it does with the broker."""

from __future__ import annotations

import os
from typing import Final

import pytest

from stormlet.testing.brokers import PROFILES
from tests.connect.conformance import CASES, Bench, Case, TwinBench, name_of
from tests.connect.troubles import trouble

SEEDS: Final = int(os.environ.get("TESTS_SEEDS", "5"))


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize("bench", [TwinBench(profile) for profile in PROFILES], ids=str)
def test_conformance(bench: Bench, case: Case) -> None:
    """Each case says what it holds."""
    bench.hold(case)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("profile", PROFILES)
def test_troubles_by_seeds(profile: str, seed: int) -> None:
    """Nothing is lost or settled twice, whatever the faults; ``TESTS_SEEDS`` has more of them."""
    bench = TwinBench(profile)
    bench.begin()
    bench.run(lambda: trouble(bench, seed))
