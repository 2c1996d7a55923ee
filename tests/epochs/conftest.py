"""Tests of what keyed state is everywhere take ``keyed_engine``."""

from __future__ import annotations

from tests.engines import keyed_engine as keyed_engine
