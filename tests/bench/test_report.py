"""The bench command measures every workload and prints medians and ratios."""

from __future__ import annotations

import json

import pytest

from stormlet.bench.report import Measured, as_json, measure, text, usual_names
from stormlet.cli import main


def test_every_workload_gives_positive_figures() -> None:
    """A short round of all workloads that need no Spark measures something in each."""
    results = measure(usual_names(), rounds=1, scale=0.002)
    assert list(results) == ["loops", "bare", "acked", "unacked", "latency", "pending", "flat"]
    assert all(
        value > 0 for figures in results.values() for each in figures.values() for value in each.values
    )


def test_the_median_is_what_is_quoted() -> None:
    """One outlier does not move the figure."""
    assert Measured([3.0, 100.0, 1.0]).median == 3.0


def test_the_table_names_the_ratios() -> None:
    """The ratio is the one of the medians."""
    results = {"loops": {"tuples_per_s": Measured([900.0])}, "acked": {"tuples_per_s": Measured([100.0])}}
    assert text(results, 1).splitlines()[-1].endswith("word count, fully acked = 9.0")


def test_what_comes_from_spark_is_compared_with_its_iterator() -> None:
    """Each rate of the bridge is a share of what Spark itself gives, beside what is aimed at."""
    rates = {"raw": 900.0, "single": 450.0, "sunk": 90.0}
    results = {"spark": {f"{name}_rows_per_s": Measured([rate]) for name, rate in rates.items()}}
    assert text(results, 1).splitlines()[-2:] == [
        "single_rows_per_s : raw_rows_per_s = 0.50   (the aim is 0.25, or 200,000 rows/s)",
        "sunk_rows_per_s : raw_rows_per_s = 0.10",
    ]


def test_json_has_every_value() -> None:
    """Scripts get the rounds, not the medians."""
    assert json.loads(as_json({"loops": {"tuples_per_s": Measured([1.0, 2.0])}})) == {
        "loops": {"tuples_per_s": [1.0, 2.0]}
    }


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """``stormlet bench loops`` measures that workload alone."""
    assert main(["bench", "loops", "--rounds", "1", "--scale", "0.001"]) == 0
    assert "nested loops" in capsys.readouterr().out


def test_an_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists those that exist."""
    assert main(["bench", "loop"]) == 2
    assert "there is no workload 'loop'; there are loops, bare, acked" in capsys.readouterr().err


def test_memory_stays_flat_with_a_slow_last_bolt() -> None:
    """Ten times as many tuples need no more memory: the queues are bounded (law B6)."""
    figures = measure(["flat"], rounds=1, scale=0.4)["flat"]
    assert figures["peak_mib"].median - figures["peak_mib_early"].median < 4
