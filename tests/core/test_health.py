"""What a readiness probe asks."""

from __future__ import annotations

import pytest

from stormlet.core.health import Health, RunState


@pytest.mark.parametrize("state", RunState)
def test_ready_is_what_takes_messages(state: RunState) -> None:
    """A topology is ready while it runs, also where its own spouts are not asked, and at no other time."""
    expected = state in (RunState.RUNNING, RunState.INACTIVE)
    assert Health(state, pending=0, full=(), crash=None).ready is expected
