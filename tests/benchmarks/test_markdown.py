"""The tables of the README."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from benchmarks.catalogue import WORKLOADS
from benchmarks.command import main
from benchmarks.markdown import markdown
from tests.benchmarks.reports import MACHINE, PAUSES, report_of

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
LABELS = {name: each.label for name, each in WORKLOADS.items()}

REPORT = report_of(
    {
        "loops": {"tuples_per_s": [4_000_000.0, 4_000_000.0, 2_000_000.0]},
        "acked": {"tuples_per_s": [400_000.0, 500_000.0, 600_000.0]},
        "latency": {"median_us": [50.0, 50.0, 50.0], "p99_us": [100.0, 90.0, 110.0]},
    }
)


def rows(text: str) -> list[str]:
    """Of the first table, without its head."""
    return text.split("\n\n")[1].splitlines()[2:]


def test_rates_are_shares_of_the_loops() -> None:
    """Only what ran side by side compares, so each rate stands beside the median of its ratios within a round."""
    shown = markdown(REPORT)
    assert shown.startswith(
        "`python -m benchmarks --rounds 3 --markdown` on 22 November 2026, stormlet 0.1.0 interpreted"
    )
    assert "median of 3 rounds" in shown.splitlines()[0]
    assert rows(shown) == [
        f"| {LABELS['loops']} | 4,000,000 tuples/s | 2,000,000 to 4,000,000 |  |  |",
        f"| {LABELS['acked']} | 500,000 tuples/s | 400,000 to 600,000 | 1/8.0 |  |",
        f"| {LABELS['latency']} | 50 µs median | 50 to 50 |  |  |",
        f"| {LABELS['latency']} | 100 µs p99 | 90 to 110 |  |  |",
    ]


def test_rows_from_spark_are_shares_of_its_iterator() -> None:
    """Sinking a row costs more than getting it."""
    report = report_of({"spark": {"raw_rows_per_s": [1_000_000.0], "sunk_rows_per_s": [100_000.0]}})
    assert rows(markdown(report)) == [
        f"| {LABELS['spark']} | 1,000,000 rows/s by Spark's iterator alone | 1,000,000 to 1,000,000 |  |  |",
        f"| {LABELS['spark']} | 100,000 rows/s as records, and back by a sink | 100,000 to 100,000 | 1/10.0 |  |",
    ]


def test_without_the_loops_there_is_no_share() -> None:
    """A single workload is measured without anything to compare it with."""
    assert rows(markdown(report_of({"acked": {"tuples_per_s": [1.0]}})))[0].endswith("1 to 1 |  |  |")


def test_what_the_collector_took_stands_beside_it() -> None:
    """Of the round in which it took a middling time; the longest pause of all rounds."""
    report = report_of({"acked": {"tuples_per_s": [1.0, 1.0, 1.0]}}, collector=PAUSES)
    assert rows(markdown(report))[0].endswith("| 4 pauses, 5 ms, longest 4.0 ms |")


def test_who_is_not_installed_is_named() -> None:
    """With the command that changes it."""
    machine = msgspec.structs.replace(MACHINE, missing={"bytewax": "pip install bytewax"})
    shown = markdown(report_of({"acked": {"tuples_per_s": [1.0]}}, machine=machine))
    assert "Not installed, and so not measured: bytewax (pip install bytewax)." in shown
    assert "Not installed" not in markdown(REPORT)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """``--markdown`` is the form that the README has."""
    assert main(["loops", "--rounds", "1", "--scale", "0.001", "--markdown"]) == 0
    assert "| what | figure |" in capsys.readouterr().out


def test_the_readme_has_what_the_command_prints() -> None:
    """Every row of the README's tables of figures is one that ``python -m benchmarks --markdown`` prints."""
    section = README.split("## What it costs\n")[1].split("\n## ")[0]
    tables = re.findall(r"^\| what \|.*\n\| ---.*\n((?:\|.*\n)+)", section, re.M)
    shown = {line.split("|")[1].strip() for table in tables for line in table.splitlines()}
    assert {LABELS["acked"], LABELS["loops"]} <= shown <= set(LABELS.values())
