"""The figures in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.bench import report

UNITS: Mapping[str, str] = {
    **report.UNITS,
    "load_s": "{:,.2f} CPU s to load them",
    "load_over_decode": "{:,.2f} times as long as decoding one blob",
    "bytes_per_key": "{:,.0f} bytes a key",
    "await_ms": "{:,.2f} ms median",
    "commit_ms": "{:,.2f} ms median for a bare synced commit",
    "await_over_commit": "{:,.2f} times a bare synced commit",
    "messages_per_s": "{:,.0f} messages/s",
    "raw_rows_per_s": "{:,.0f} rows/s by Spark's iterator alone",
    "raw_files_rows_per_s": "{:,.0f} rows/s by Spark's iterator alone, of files",
    "plain_rows_per_s": "{:,.0f} rows/s by Spark's iterator as its own rows",
    "batched_rows_per_s": "{:,.0f} rows/s as record batches",
    "single_rows_per_s": "{:,.0f} rows/s as records",
    "sunk_batches_rows_per_s": "{:,.0f} rows/s as record batches, and back by a sink",
    "sunk_rows_per_s": "{:,.0f} rows/s as records, and back by a sink",
    "exact_rows_per_s": "{:,.0f} rows/s as records, and back exactly once",
    "long_exact_rows_per_s": "{:,.0f} rows/s as records, and back exactly once by long epochs",
    "kept_rows_per_s": "{:,.0f} rows/s as records, and back exactly once by the epochs of a state",
    **{
        f"{way}_{time}_s": f"{{:,.2f}} {word} s {text}"
        for way, text in (
            ("in_process", "in process"),
            ("on_spark", "on Spark"),
            ("merged", "on Spark, with `merge`"),
            ("by_hand", "by hand in `mapInArrow`, with the same combiner"),
            ("sql", "by Spark SQL"),
        )
        for time, word in (("cpu", "CPU"), ("wall", "wall"))
    },
    "on_spark_over_in_process": "{:,.2f} of the CPU in process",
    "merged_over_by_hand": "with `merge` {:,.2f} of the CPU by hand",
    "cores": "faster than in process from {:,.1f} cores on",
    "driver_peak_mib_early": "{:,.0f} MiB peak of the driver's Python after a tenth",
    "worker_peak_mib_early": "{:,.0f} MiB peak of a worker after a tenth",
    "driver_peak_mib": "{:,.0f} MiB peak of the driver's Python",
    "worker_peak_mib": "{:,.0f} MiB peak of a worker",
    "even_wall_s": "{:,.2f} wall s where keys are spread",
    "skewed_wall_s": "{:,.2f} wall s with one hot key",
    "merged_even_wall_s": "{:,.2f} wall s where keys are spread, with `merge`",
    "merged_skewed_wall_s": "{:,.2f} wall s with one hot key, with `merge`",
    "merged_skewed_over_even": "{:,.2f} times as long with one hot key, with `merge`",
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
    "core_percent": "{:,.2f} % of a core",
    "kb_per_s": "{:,.1f} kB/s",
    "scrape_ms": "{:,.1f} ms a scrape",
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
    "long_exact_rows_per_s": ("spark", "raw_files_rows_per_s"),
    "kept_rows_per_s": ("spark", "raw_files_rows_per_s"),
}
"""Rate -> the workload and its figure that it is compared with."""


def shown(figure: str, value: float) -> str:
    """The figure in words."""
    return UNITS[figure].format(value)


def spread(figure: str, values: Sequence[float]) -> str:
    """Least to most, in the precision of the figure."""
    return report.spread(UNITS[figure], values)
