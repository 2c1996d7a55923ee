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
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder for a pytest run."""
    pytester.makeini(INI)
    return pytester
