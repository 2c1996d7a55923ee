"""Tests of what both engines must do take ``engine``, and those of keyed state ``keyed_engine``."""

from __future__ import annotations

from tests.engines import engine as engine
from tests.engines import keyed_engine as keyed_engine
