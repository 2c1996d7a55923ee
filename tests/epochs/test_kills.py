"""Topologies that are killed at named points and at random moments: a short form of
``python -m tests.epochs.kills --kills 300``; one with a DataFrame is beside the tests of Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.epochs.kills import points_of
from tests.epochs.mortals import TOPOLOGIES
from tests.helpers import interpreted_only

ROOT = Path(__file__).parents[2]


@interpreted_only
@pytest.mark.untraced
@pytest.mark.skipif(sys.platform == "win32", reason="runs are forked")
@pytest.mark.parametrize("store", ["sqlite", "rocksdb"])
def test_what_is_left_after_twenty_kills_is_as_in_a_direct_computation(store: str) -> None:
    """State, tables, sinks, dead letters and the broker of six topologies."""
    names = [name for name, kind in TOPOLOGIES.items() if not kind.frame]
    options = ["--kills", "20", "--seed", "2", "--store", store]
    command = [sys.executable, "-m", "tests.epochs.kills", *names, *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("20 kills")


def test_the_points_are_those_of_an_epochs_life() -> None:
    """There are twelve and more, and each is passed by one of the topologies."""
    assert len({point for name in TOPOLOGIES for point in points_of(name)}) == 17
