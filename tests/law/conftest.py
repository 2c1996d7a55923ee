"""Tests of what both engines must do take ``engine``."""

from __future__ import annotations

from tests.engines import engine as engine
