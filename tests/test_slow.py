"""The list of slow tests, and the door that it keeps."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.slow import HERE, SLOW, in_process

ROOT = HERE.parent


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if hasattr(node, "name")}


def test_every_slow_test_exists() -> None:
    """What is renamed or moved is renamed in the list too."""
    gone = [
        entry
        for entry in SLOW
        for path, _, function in [entry.partition("::")]
        if not (HERE / path).exists() or (function and function not in functions(HERE / path))
    ]
    assert gone == []


def test_a_fast_test_starts_no_process(request: pytest.FixtureRequest) -> None:
    """It would fail, with the place where it must be listed."""
    with pytest.raises(AssertionError, match=r"list it in tests/slow\.py"), in_process(request.node):
        subprocess.run([sys.executable, "--version"], check=True)


def test_just_runs_the_command_of_the_readme() -> None:
    """``just test`` is the README's own test command, from the environment on."""
    (command,) = (
        line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if "pytest -n auto" in line
    )
    recipe = (ROOT / "justfile").read_text("utf-8").replace("{{python}}", ".venv/bin/python")
    assert f"    {command.split(' && ')[-1]} {{{{arguments}}}}\n" in recipe


def test_what_just_runs_is_installed_with_the_tests() -> None:
    """The set-up of CONTRIBUTING.md has all that the recipes call."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    installed = " ".join((*extras["test"], *extras["docs"]))
    wanted = {
        "pytest-xdist",
        "mypy",
        "pyright",
        "ruff",
        "codespell",
        "sphinx",
        "rust-just",
        "stormlet[cli,docs,",
    }
    assert {name for name in wanted if name not in installed} == set()
