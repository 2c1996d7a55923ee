"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

if "CI" not in os.environ:  # there Hypothesis chooses a profile of its own: no deadline, and always the same examples
    settings.register_profile("stormlet", deadline=None)
    settings.load_profile("stormlet")
