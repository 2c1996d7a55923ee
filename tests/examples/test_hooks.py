"""The example ``hooks.py``."""

from __future__ import annotations

import pytest

from examples.hooks import main


@pytest.mark.simulated_time
async def test_the_slowest_input_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The hook of the bolt names the one input that takes long."""
    await main()
    assert capsys.readouterr().out == "look_up took longest for 7: 0.3 s\n"
