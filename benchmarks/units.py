"""The figures in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.bench import report

UNITS: Mapping[str, str] = {
    **report.UNITS,
    "messages_per_s": "{:,.0f} messages/s",
    "raw_rows_per_s": "{:,.0f} rows/s by Spark's iterator alone",
    "raw_files_rows_per_s": "{:,.0f} rows/s by Spark's iterator alone, of files",
    "plain_rows_per_s": "{:,.0f} rows/s by Spark's iterator as its own rows",
    "batched_rows_per_s": "{:,.0f} rows/s as record batches",
    "single_rows_per_s": "{:,.0f} rows/s as records",
    "sunk_batches_rows_per_s": "{:,.0f} rows/s as record batches, and back by a sink",
    "sunk_rows_per_s": "{:,.0f} rows/s as records, and back by a sink",
    "exact_rows_per_s": "{:,.0f} rows/s as records, and back exactly once",
    "longest_us": "{:,.0f} µs at the longest",
    "held_p99_us": "{:,.0f} µs p99 of CPU time alone",
    "bytes_per_tree": "{:,.0f} bytes",
    "resident_bytes_per_tree": "{:,.0f} bytes more resident",
    "peak_mib_early": "{:,.1f} MiB peak after a tenth",
    "peak_mib": "{:,.1f} MiB peak at the end",
    "most_queued": "{:,.0f} tuples queued at the most",
    "rotation_us": "{:,.0f} µs for a rotation",
    "expiry_us_per_tree": "{:,.2f} µs to expire a tree",
    "longest_hold_ms": "{:,.1f} ms of the loop at a time, at the longest",
    "longest_collecting_ms": "{:,.1f} ms of Python's garbage collector at a time, at the longest",
    "idle_wakeups": "{:,.0f} wake-ups with nothing open",
    "wakeups_per_rotation": "{:,.1f} wake-ups per rotation",
    "import_ms": "{:,.0f} ms for `import stormlet`",
    "check_ms": "{:,.0f} ms for `check`",
}
"""Figure -> its value in words."""

LIMITS: Mapping[str, tuple[str, str]] = {
    "tuples_per_s": ("loops", "tuples_per_s"),
    **{
        f"{rows}_rows_per_s": ("spark", "raw_rows_per_s")
        for rows in ("plain", "batched", "single", "sunk_batches", "sunk")
    },
    "exact_rows_per_s": ("spark", "raw_files_rows_per_s"),
}
"""Rate -> the workload and its figure that it is compared with."""


def shown(figure: str, value: float) -> str:
    """The figure in words."""
    return UNITS[figure].format(value)


def spread(figure: str, values: Sequence[float]) -> str:
    """Least to most, in the precision of the figure."""
    return report.spread(UNITS[figure], values)
