"""What the type checkers accept of the public face, and what they reject."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest

from stormlet.model.builder_types import BoltOptions, SpoutOptions, TopologyOptions
from stormlet.model.configuration import COMPONENT_OPTIONS, ComponentKind, Configuration

ROOT = Path(__file__).parents[2]
RIGHT = Path("tests/typing/api.py")
WRONG = [file.relative_to(ROOT) for file in sorted(Path(__file__).parent.glob("wrong/*.py"))]

Lines = set[tuple[str, int]]


def mypy_errors() -> Lines:
    """The lines that mypy --strict reports in all these files."""
    found = check("mypy", "--output=json", "--no-error-summary", "--no-incremental")
    errors = [json.loads(line) for line in found.splitlines()]
    return {(Path(error["file"]).name, error["line"]) for error in errors if error["severity"] == "error"}


def pyright_errors() -> Lines:
    """The lines that pyright, in its strict mode, reports in all these files."""
    report = json.loads(check("pyright", "--outputjson", "--pythonpath", sys.executable))
    return {
        (Path(error["file"]).name, error["range"]["start"]["line"] + 1)
        for error in report["generalDiagnostics"]
        if error["severity"] == "error"
    }


def check(checker: str, *options: str) -> str:
    command = [sys.executable, "-m", checker, *options, *map(str, [RIGHT, *WRONG])]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def marked(checker: str) -> Lines:
    """The lines that are marked for this checker."""
    mark = re.compile(rf"# error: .*\b{checker}\b")
    return {
        (file.name, number)
        for file in WRONG
        for number, line in enumerate((ROOT / file).read_text("utf-8").splitlines(), 1)
        if mark.search(line)
    }


@pytest.mark.parametrize(("checker", "errors"), [("mypy", mypy_errors), ("pyright", pyright_errors)])
def test_wrong_wirings_are_rejected_and_right_ones_are_not(checker: str, errors: Callable[[], Lines]) -> None:
    """Every line that is marked for a checker is reported by it, and no other."""
    assert errors() == marked(checker)


@pytest.mark.parametrize(
    ("options", "kind", "keywords"),
    [
        (SpoutOptions, "spout", {"parallelism"}),
        (BoltOptions, "bolt", {"parallelism", "outputs", "concurrency", "executor", "on_error"}),
    ],
)
def test_the_checkers_know_the_options(options: type, kind: ComponentKind, keywords: set[str]) -> None:
    """The keywords that the checkers allow are those of the configuration and those of the method itself."""
    assert set(options.__annotations__) == {*COMPONENT_OPTIONS[kind], *keywords}


def test_the_checkers_know_the_options_of_a_topology() -> None:
    """A topology and a run take exactly the options of the configuration, each of its type."""
    assert get_type_hints(TopologyOptions) == get_type_hints(Configuration)


@pytest.mark.parametrize("options", [SpoutOptions, BoltOptions])
def test_an_option_has_one_type(options: type) -> None:
    """An option of a single component has the type that it has in the configuration."""
    hints, configured = get_type_hints(options), get_type_hints(Configuration)
    shared = hints.keys() & configured.keys()
    assert {name: hints[name] for name in shared} == {name: configured[name] for name in shared}
