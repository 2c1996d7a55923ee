"""A run gets on at any rate of failures after state was reached (law X7): more by ``tests.epochs.progress``."""

from __future__ import annotations

import pytest

from tests.epochs.progress import Progress


@pytest.mark.untraced
@pytest.mark.parametrize(("rate", "most"), [(1e-4, 1.6), (1e-3, 1.6), (1e-2, 1.6)])
def test_executions_a_message_are_few_at_any_rate_of_failures(rate: float, most: float) -> None:
    """In epochs of 10,000, where whole repetitions would never end from a failure in a thousand on."""
    found = Progress(20_000, rate)
    assert found.failures
    assert 1.0 < found.executions_a_message < most
