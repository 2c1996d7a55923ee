"""Pytest runs inside of tests."""

from __future__ import annotations

from importlib.metadata import entry_points
from textwrap import dedent

import pytest

LOAD = () if "stormlet" in entry_points(group="pytest11").names else ("-p", "stormlet.testing.plugin")
"""Loads our plugin where stormlet only lies here and is not installed."""


def run(inner: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run the tests of this source."""
    inner.makepyfile("import asyncio\nimport pytest\n" + dedent(source))
    return inner.runpytest_inprocess(*LOAD, *arguments)
