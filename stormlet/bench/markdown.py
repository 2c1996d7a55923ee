"""The measurements as the README shows them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from stormlet.bench.report import LABELS, Measured, Results

UNITS = {
    "tuples_per_s": "{:,.0f} tuples/s",
    "raw_rows_per_s": "{:,.0f} rows/s by Spark's iterator alone",
    "batched_rows_per_s": "{:,.0f} rows/s as record batches",
    "single_rows_per_s": "{:,.0f} rows/s as records",
    "sunk_rows_per_s": "{:,.0f} rows/s as records, and back by a sink",
    "exact_rows_per_s": "{:,.0f} rows/s as records, and back exactly once",
    "median_us": "{:,.0f} µs median",
    "p99_us": "{:,.0f} µs p99",
    "bytes_per_tree": "{:,.0f} bytes",
    "peak_mib_early": "{:,.1f} MiB peak after a tenth",
    "peak_mib": "{:,.1f} MiB peak at the end",
}
LIMITS = {"tuples_per_s": ("loops", "tuples_per_s")} | {
    f"{rows}_rows_per_s": ("spark", "raw_rows_per_s") for rows in ("batched", "single", "sunk", "exact")
}
"""What each rate is compared with: a figure of a workload."""


def markdown(results: Results, rounds: int) -> str:
    """A paragraph that says what was measured where and when, and a table."""
    return "\n".join((_where(rounds), "", *_table(results)))


def _where(rounds: int) -> str:
    return (
        f"`python -m stormlet bench --markdown` on {date.today():%-d %B %Y}: "
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores of {_processor()}, "
        f"default garbage collector, median of {rounds} rounds in which the workloads take turns (least to most)."
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _table(results: Results) -> Iterator[str]:
    yield "| what | figure | least to most | of the limit |"
    yield "| --- | --- | --- | --- |"
    for name, figures in results.items():
        for figure, measured in figures.items():
            spread = f"{min(measured.values):,.0f} to {max(measured.values):,.0f}"
            shown = UNITS[figure].format(measured.median)
            yield f"| {LABELS[name]} | {shown} | {spread} | {_share(results, name, figure, measured)} |"


def _share(results: Results, name: str, figure: str, measured: Measured) -> str:
    limit, limiting = LIMITS.get(figure, (name, figure))
    if (limit, limiting) == (name, figure) or limit not in results:
        return ""
    share = results[limit][limiting].median / measured.median
    return f"1/{share:.1f}" if share >= 1 else f"{1 / share:.1f}"
