"""How the examples are run: as their users run them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormlet.cli import main
from tests.examples.runs import Outcome, RunExample

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of the examples, whose modules are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield EXAMPLES
    for file in EXAMPLES.rglob("*.py"):
        sys.modules.pop(file.stem, None)


@pytest.fixture
def run_example(examples: Path, capsys: pytest.CaptureFixture[str]) -> RunExample:
    """Runs ``python -m stormlet run examples/NAME OPTIONS…``."""

    def run(name: str, *options: str) -> Outcome:
        code = main(["run", str(examples / name), *options])
        output = capsys.readouterr()
        return Outcome(code, output.out.splitlines(), output.err)

    return run
