"""The table of the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stormlet.bench.markdown import UNITS, markdown
from stormlet.bench.report import LABELS, Measured
from stormlet.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")

RESULTS = {
    "loops": {"tuples_per_s": Measured([4_000_000.0])},
    "acked": {"tuples_per_s": Measured([400_000.0, 500_000.0, 600_000.0])},
    "latency": {"median_us": Measured([50.0]), "p99_us": Measured([100.0])},
}


def test_rates_are_shares_of_the_loops() -> None:
    """Only what ran side by side compares, so each rate stands beside its ratio."""
    lines = markdown(RESULTS, 3).splitlines()
    assert "median of 3 rounds" in lines[0]
    assert lines[4:] == [
        f"| {LABELS['loops']} | 4,000,000 tuples/s | 4,000,000 to 4,000,000 |  |",
        f"| {LABELS['acked']} | 500,000 tuples/s | 400,000 to 600,000 | 1/8.0 |",
        f"| {LABELS['latency']} | 50 µs median | 50 to 50 |  |",
        f"| {LABELS['latency']} | 100 µs p99 | 100 to 100 |  |",
    ]


def test_rows_from_spark_are_shares_of_its_iterator() -> None:
    """Sinking a row costs more than getting it."""
    figures = {"raw_rows_per_s": Measured([1_000_000.0]), "sunk_rows_per_s": Measured([100_000.0])}
    assert markdown({"spark": figures}, 1).splitlines()[4:] == [
        f"| {LABELS['spark']} | 1,000,000 rows/s by Spark's iterator alone | 1,000,000 to 1,000,000 |  |",
        f"| {LABELS['spark']} | 100,000 rows/s as records, and back by a sink | 100,000 to 100,000 | 1/10.0 |",
    ]


def test_without_the_loops_there_is_no_share() -> None:
    """A single workload is measured without anything to compare it with."""
    assert markdown({"acked": RESULTS["acked"]}, 1).endswith("600,000 |  |")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """``--markdown`` is the form that the README has."""
    assert main(["bench", "loops", "--rounds", "1", "--scale", "0.001", "--markdown"]) == 0
    assert "| what | figure |" in capsys.readouterr().out


def test_the_readme_has_what_the_command_prints() -> None:
    """Every row of the README's table is one that ``bench --markdown`` prints."""
    section = README.split("## What it costs\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if re.match(r"\| \w", line)]
    assert rows[0] == "what"
    assert set(rows) - {"what"} == set(LABELS.values())
    assert all(unit.partition("} ")[2].split()[0] in section for unit in UNITS.values())
