"""Topologies with state that are killed at any step and started again (law X1 to X8)."""

from __future__ import annotations

import pytest

from tests.epochs.lives import Lives


@pytest.mark.parametrize("seed", range(60))
def test_state_is_that_of_a_direct_computation_whatever_happens(seed: int) -> None:
    """Failures before and after state was reached, kills at any step, another parallelism in each life."""
    lives = Lives(seed)
    lives.run()
    assert lives.differences() == []
