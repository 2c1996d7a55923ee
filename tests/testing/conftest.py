"""Pytest runs inside of tests."""

from __future__ import annotations

from tests.testing.plugin_runs import inner

__all__ = ["inner"]
