"""Pytest runs inside of tests."""

from __future__ import annotations

from importlib.metadata import entry_points
from textwrap import dedent

import pytest

LOAD = () if "stormlet" in entry_points(group="pytest11").names else ("-p", "stormlet.testing.plugin")
"""Loads our plugin where stormlet only lies here and is not installed."""

INI = """
[pytest]
addopts = --strict-markers
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore:Module already imported:pytest.PytestAssertRewriteWarning
"""
"""They have a configuration of their own."""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for a pytest run, which prints the same on a developer's machine and in CI."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    pytester.makeini(INI)
    return pytester


def run(inner: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run the tests of this source."""
    inner.makepyfile("import asyncio\nimport pytest\n" + dedent(source))
    return inner.runpytest_inprocess(*LOAD, *arguments)
