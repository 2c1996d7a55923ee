"""The measurements of the bridge, on few rows."""

from __future__ import annotations

import pytest

from benchmarks.units import UNITS
from benchmarks.workloads import bridge

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.untraced
def test_every_way_of_a_row_is_measured() -> None:
    """Each gives a rate that can be shown."""
    figures = bridge.spark(1000)
    assert all(rate > 0 for rate in figures.values())
    assert figures.keys() <= UNITS.keys()


def test_memory_is_measured_twice() -> None:
    """After a tenth of the rows, and after all."""
    figures = bridge.spark_flat(1000)
    assert 0 < figures["peak_mib_early"] <= figures["peak_mib"]
