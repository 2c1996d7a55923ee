"""Pytest runs inside of tests, and clocks that are soon out of patience."""

from __future__ import annotations

from tests.testing.outsiders import impatient
from tests.testing.plugin_runs import inner

__all__ = ["impatient", "inner"]
