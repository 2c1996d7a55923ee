"""How tests are written here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def find_tests(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring of one sentence or so: what holds, in words."""
    silent = [
        f"{file.relative_to(TESTS)}:{test.lineno} {test.name}"
        for file in sorted(TESTS.rglob("test_*.py"))
        for test in find_tests(file)
        if not ast.get_docstring(test)
    ]
    assert silent == []


def test_every_name_is_the_same_in_each_run(request: pytest.FixtureRequest) -> None:
    """No test of this run is called by the address of an object, which runners in several processes cannot agree on."""
    assert [item.nodeid for item in request.session.items if " at 0x" in item.nodeid] == []
