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
def run_example(
    examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> RunExample:
    """Runs ``python -m stormlet run examples/NAME OPTIONS…``, which refuses a ``STORMLET_…`` that sets no option."""

    def run(name: str, *options: str) -> Outcome:
        with monkeypatch.context() as without:
            for of_tests in ("STORMLET_RABBITMQ", "STORMLET_RABBITMQ_ROOT"):
                without.delenv(of_tests, raising=False)
            code = main(["run", str(examples / name), *options])
        output = capsys.readouterr()
        return Outcome(code, output.out.splitlines(), output.err)

    return run
