"""Runs the workloads in rounds and prints medians, spread and ratios."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from stormlet.bench.workloads import WORKLOADS, Figures

SIZES: Mapping[str, int] = {
    "loops": 100_000,
    "bare": 100_000,
    "acked": 50_000,
    "unacked": 50_000,
    "latency": 5_000,
    "pending": 100_000,
    "flat": 500_000,
    "spark": 2_000_000,
    "spark-flat": 10_000_000,
}
"""How much each workload does: sentences, trees, rows."""

WITH_SPARK = ("spark", "spark-flat")
"""Workloads that need Spark, and run only when they are named."""

LABELS: Mapping[str, str] = {
    "loops": "nested loops, a record and a Counter per word",
    "bare": "nested loops and a dict, no records",
    "acked": "word count, fully acked",
    "unacked": "word count, ackers=0",
    "latency": "two bolts, one tree at a time",
    "pending": "a pending tree",
    "flat": "500,000 tuples into a slow bolt",
    "spark": "rows from Spark",
    "spark-flat": "10,000,000 records from Spark",
}

AIMS: Mapping[str, str] = {
    "batched_rows_per_s": "0.5",
    "single_rows_per_s": "0.25, or 200,000 rows/s",
}
"""What the bridge is meant to reach at least, of the rate of Spark's iterator."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one workload over all rounds."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The one to quote."""
        return median(self.values)

    def __str__(self) -> str:
        return f"{self.median:>13,.0f}   ({min(self.values):,.0f} to {max(self.values):,.0f})"


Results = Mapping[str, Mapping[str, Measured]]


def measure(names: Sequence[str], rounds: int, scale: float = 1.0) -> Results:
    """Run each workload once a round, each in a process of its own, in turn: machines drift, and only what
    ran side by side compares."""
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            runs[name].append(_run(name, max(1, round(SIZES[name] * scale))))
    return {
        name: {figure: Measured([run[figure] for run in each]) for figure in each[0]}
        for name, each in runs.items()
    }


def text(results: Results, rounds: int) -> str:
    """The table that people read."""
    lines = [
        f"CPython {platform.python_version()}, {platform.machine()}, median of {rounds} rounds (min to max)"
    ]
    for name, figures in results.items():
        lines += [f"{LABELS[name]:<46} {figure:<15}{measured}" for figure, measured in figures.items()]
    return "\n".join(lines + _ratios(results))


def as_json(results: Results) -> str:
    """The same for scripts."""
    return json.dumps(
        {
            name: {figure: list(each.values) for figure, each in figures.items()}
            for name, figures in results.items()
        }
    )


def _ratios(results: Results) -> list[str]:
    return [*_ratios_of_word_counts(results), *_ratios_of_spark(results)]


def _ratios_of_spark(results: Results) -> list[str]:
    figures = results.get("spark", {})
    return [
        f"{figure} : raw_rows_per_s = {measured.median / figures['raw_rows_per_s'].median:.2f}{_aim(figure)}"
        for figure, measured in figures.items()
        if figure != "raw_rows_per_s"
    ]


def _aim(figure: str) -> str:
    return f"   (the aim is {AIMS[figure]})" if figure in AIMS else ""


def _ratios_of_word_counts(results: Results) -> list[str]:
    pairs = [("loops", "acked"), ("bare", "acked"), ("unacked", "acked")]
    return [
        f"{LABELS[fast]} : {LABELS[slow]} = {_rate(results, fast) / _rate(results, slow):.1f}"
        for fast, slow in pairs
        if fast in results and slow in results
    ]


def _rate(results: Results, name: str) -> float:
    return results[name]["tuples_per_s"].median


def _run(name: str, size: int) -> Figures:
    command = [sys.executable, "-m", "stormlet.bench.workloads", name, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"workload {name} failed:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    return figures


def all_names() -> Sequence[str]:
    """Every workload."""
    return list(WORKLOADS)


def usual_names() -> Sequence[str]:
    """The workloads that run where none is named."""
    return [name for name in WORKLOADS if name not in WITH_SPARK]
