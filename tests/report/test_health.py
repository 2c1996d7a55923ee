"""What a readiness probe asks."""

from __future__ import annotations

import msgspec
import pytest

from stormlet.report.health import Health, RunState


@pytest.mark.parametrize("state", RunState)
def test_ready_is_what_takes_messages(state: RunState) -> None:
    """A topology is ready while it runs, also where its own spouts are not asked, and at no other time."""
    expected = state in (RunState.RUNNING, RunState.INACTIVE)
    assert Health(state, pending=0, full=(), crash=None).ready is expected


def test_health_is_written_as_json() -> None:
    """``msgspec.json.encode`` takes it as it is."""
    health = Health(RunState.RUNNING, pending=2, full=("split",), crash=None)
    written = msgspec.json.decode(msgspec.json.encode(health))
    assert {**written, "state": "running", "pending": 2, "full": ["split"], "crash": None} == written
