"""The page about topologies on Spark: its walk prints what it shows, and its program of a stream goes on."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from stormlet.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "spark-engine.md").read_text("utf-8")
WALK: Final = dict(
    re.findall(r"^```console\n\$ stormlet ([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)
"""By command, the lines that it shows."""
PROGRAMS: Final = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
VARIES: Final = re.compile(r"\.\.\.|flights: [\d.]+ s; .*")


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands are given at the root of the checkout, in a terminal of 100 columns."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in ("flights", "flights_spark", "totals"):
        sys.modules.pop(name, None)


def walk(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Sequence[str]]:
    """Run a command of the page; return its exit code, and the lines of the page that it has not printed, but for those
    that vary."""
    code = main(command.split())
    output = capsys.readouterr()
    printed = iter([*output.out.splitlines(), *output.err.splitlines()])
    shown = [line for line in WALK[command].splitlines() if not VARIES.fullmatch(line)]
    return code, [line for line in shown if line not in printed]


def test_the_walk_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    """In this order."""
    assert walk("run examples/flights.py", capsys) == (0, [])


def test_the_walk_to_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Every line of it."""
    command = "check examples/flights.py --engine spark"
    assert main(command.split()) == 0
    assert capsys.readouterr().out == WALK[command]


@pytest.mark.untraced
def test_the_walk_on_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the same tables as in process."""
    assert walk("run examples/flights.py --engine spark", capsys) == (0, [])
    here, there = (
        [line for line in WALK[f"run examples/flights.py{engine}"].splitlines() if not VARIES.fullmatch(line)]
        for engine in ("", " --engine spark")
    )
    assert here == there


def test_the_walk_to_a_refusal(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence is that of ``check``, too."""
    assert walk("run examples/flights_spark.py --engine spark", capsys) == (2, [])
    sys.modules.pop("flights_spark")
    assert main(["check", "examples/flights_spark.py", "--engine", "spark"]) == 2
    assert capsys.readouterr().err == WALK["run examples/flights_spark.py --engine spark"]


@pytest.mark.untraced
def test_the_totals_of_the_page_go_on(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run reads only the second file, and begins with the totals of the first."""
    (tmp_path / "totals.py").write_text(PROGRAMS["totals.py"], "utf-8")
    (tmp_path / "orders").mkdir()
    command = ["run", str(tmp_path / "totals.py"), "--engine", "spark", "--arg", f"folder={tmp_path}"]
    for file, (line, code) in enumerate([('{"customer": "ann", "cents": 5}', 0), ('{"cents": 1}', 1)]):
        lines = f'{line}\n{{"customer": "ann", "cents": 2}}\n'
        (tmp_path / "orders" / f"{file}.json").write_text(lines, "utf-8")
        assert main([*command, "--dead-letters", str(tmp_path / "rejected.jsonl")]) == code
        sys.modules.pop("totals")
    capsys.readouterr()
    rows = spark.read.parquet(str(tmp_path / "totals")).select("customer", "orders", "cents").collect()
    assert sorted(map(tuple, rows)) == [("ann", 1, 5), ("ann", 2, 7), ("ann", 3, 9)]
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 1
