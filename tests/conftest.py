"""What all tests share."""

from __future__ import annotations

import os
import signal
import sys
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


@pytest.fixture(autouse=True)
def _forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test has imported from files that it wrote is not there for the next one."""
    yield
    written = str(tmp_path_factory.getbasetemp())
    sys.path[:] = [folder for folder in sys.path if not folder.startswith(written)]
    for name, module in list(sys.modules.items()):
        places = (getattr(module, "__file__", None), *getattr(module, "__path__", ()))
        if any(str(place).startswith(written) for place in places):
            del sys.modules[name]
