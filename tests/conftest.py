"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# In CI Hypothesis chooses a profile of its own: no deadline, and the same examples every time.
if "CI" not in os.environ:
    settings.register_profile("stormlet", deadline=None)
    settings.load_profile("stormlet")


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Ctrl-C is heard, here and in child processes, also where a shell has started the suite with SIGINT ignored, as
    it does in the background."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
