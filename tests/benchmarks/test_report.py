"""The report: every value for scripts, the medians for people."""

from __future__ import annotations

import json

import msgspec

from benchmarks.plain import text
from benchmarks.report import as_json
from tests.benchmarks.reports import MACHINE, PAUSES, report_of

RATES = {"loops": {"tuples_per_s": [900.0, 100.0]}, "acked": {"tuples_per_s": [100.0, 50.0]}}


def test_the_text_has_machine_figures_and_targets() -> None:
    """One after the other, in columns."""
    where, figures, targets = text(report_of(RATES)).split("\n\n")
    assert where.startswith(
        "22 November 2026, stormlet 0.1.0 interpreted, CPython 3.11.7, asyncio, msgspec 0.22.0"
    )
    assert [line.split("  ")[0] for line in figures.splitlines()] == [
        "what",
        "nested loops, a record and a Counter per word",
        "word count, fully acked",
    ]
    assert targets.splitlines()[0].split() == ["target", "measured", "met"]


def test_without_anything_to_judge_there_are_no_targets() -> None:
    """A table without rows is not shown."""
    assert "target" not in text(report_of({"bare": {"tuples_per_s": [1.0]}}))


def test_json_has_every_value() -> None:
    """Scripts get the rounds, not the medians."""
    data = json.loads(as_json(report_of(RATES, collector=PAUSES)))
    assert data["machine"] == msgspec.to_builtins(MACHINE)
    assert data["rounds"] == 2
    assert data["workloads"]["acked"]["figures"] == {"tuples_per_s": [100.0, 50.0]}
    assert data["workloads"]["acked"]["shares_of_the_limit"] == {"tuples_per_s": [1 / 9, 0.5]}
    assert data["workloads"]["acked"]["collector"][0] == {"count": 3, "total_ms": 6.0, "longest_ms": 4.0}
    assert data["targets"][0]["met"] is True
