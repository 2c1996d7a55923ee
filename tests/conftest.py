"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

# In CI Hypothesis chooses a profile of its own: no deadline, and the same examples every time.
if "CI" not in os.environ:
    settings.register_profile("stormlet", deadline=None)
    settings.load_profile("stormlet")
