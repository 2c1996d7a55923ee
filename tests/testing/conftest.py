"""Pytest runs inside of tests have a configuration of their own."""

from __future__ import annotations

import pytest

INI = """
[pytest]
addopts = --strict-markers
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore:Module already imported:pytest.PytestAssertRewriteWarning
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for a pytest run, which prints the same on a developer's machine and in CI."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    pytester.makeini(INI)
    return pytester
