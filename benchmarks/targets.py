"""The targets that stormlet is meant to reach, as ratios in one run wherever possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

import msgspec

from benchmarks.peers.bytewax_peer import BATCHES
from benchmarks.units import LIMITS, UNITS
from stormlet.bench.rounds import Measured, Results, figure
from stormlet.model.configuration import Configuration

Build: TypeAlias = Literal["interpreted", "compiled"]

RATE = "tuples_per_s"
CPU_RATE = "tuples_per_cpu_s"
BYTEWAX = tuple(f"bytewax-{batch}" for batch in BATCHES)
UNKEYED = tuple(f"bytewax-unkeyed-{batch}" for batch in BATCHES)


SLICE_US = Configuration().slice * 1e6

AT_MOST: Sequence[tuple[str, str, str, float, Build | None]] = (
    ("a rotation with 1,000,000 trees open, less than 1 ms", "rotation", "rotation_us", 1000, None),
    ("the loop is never held longer than 5 ms by an expiry", "expiry", "longest_hold_ms", 5, None),
    ("nor by the garbage collector within one", "expiry", "longest_collecting_ms", 5, None),
    ("a pending tree, 300 bytes", "pending", "bytes_per_tree", 300, "interpreted"),
    ("a pending tree, 150 bytes", "pending", "bytes_per_tree", 150, "compiled"),
    ("two bolts, one tree at a time, median less than 30 µs", "latency", "median_us", 30, None),
    ("two bolts, one tree at a time, p99 less than 100 µs", "latency", "p99_us", 100, None),
    ("two bolts at half of maximum load, p99 less than 10 ms", "half-load", "p99_us", 10_000, None),
    ("a host's wait at full load, p99 at most twice the slice", "host-wait", "p99_us", 2 * SLICE_US, None),
    ("a page with 240 tasks, less than 2 % of a core", "page-240", "core_percent", 2, None),
    ("a page with 240 tasks, less than 50 kB/s", "page-240", "kb_per_s", 50, None),
    ("an idle topology, no wake-ups", "idle", "idle_wakeups", 0, None),
    ("`import stormlet`, less than 80 ms", "start-up", "import_ms", 80, None),
    ("`check` of the word count, less than 300 ms", "start-up", "check_ms", 300, None),
    (
        "state, loading keys, at most 3 times decoding one blob",
        "state-load",
        "load_over_decode",
        3,
        "compiled",
    ),
    ("state, at most 250 bytes a key", "state-load", "bytes_per_key", 250, None),
    ("state, `await tree`, at most 3 times a synced commit", "state-await", "await_over_commit", 3, None),
    (
        "flights on Spark, CPU at most twice that in process",
        "spark-engine",
        "on_spark_over_in_process",
        2,
        None,
    ),
    (
        "flights on Spark with `merge`, CPU at most 1.3 of by hand",
        "spark-engine",
        "merged_over_by_hand",
        1.3,
        None,
    ),
    (
        "10,000,000 flights, the driver's Python below 250 MiB",
        "spark-engine-flat",
        "driver_peak_mib",
        250,
        None,
    ),
    ("10,000,000 flights, a worker below 400 MiB", "spark-engine-flat", "worker_peak_mib", 400, None),
    (
        "90 % of flights with one key, a worker below 500 MiB",
        "spark-engine-skew",
        "worker_peak_mib",
        500,
        None,
    ),
    (
        "the same with `merge`, 1.5 of the even case",
        "spark-engine-skew",
        "merged_skewed_over_even",
        1.5,
        None,
    ),
)
"""Target, workload, figure, bound, build."""


OF_STATE: Sequence[tuple[str, str, str, float]] = (
    ("epochs without state, at least 0.95", "state-epochs", "state-none", 0.95),
    ("keyed state in memory, at least 0.9", "state-memory", "state-none", 0.9),
    ("durable, 10,000 messages an epoch, at least 0.8", "state-durable", "state-none", 0.8),
    ("durable, 1,000 messages an epoch, at least 0.7", "state-short", "state-none", 0.7),
    ("durable, each word another of a million, at least 0.6", "state-many", "state-many-none", 0.6),
)
"""Target, workload, the one that it is compared with, and the least ratio of their rates by CPU time."""

OF_WATCHING: Sequence[tuple[str, str]] = (
    ("with a page open", "watched-page"),
    ("with traces of 1 in 1000", "watched-traces-1000"),
)
"""What is looked at, and the workload."""

OF_CALLS: Sequence[tuple[str, str, str, str, float]] = (
    ("100 calls at a time : tasks under a semaphore", "async-bolt-100", "calls-by-tasks", "at least", 1),
    ("100 calls at a time : tasks under a semaphore", "async-bolt-100", "calls-by-tasks", "wanted", 1.6),
    ("100 calls at a time : worker coroutines", "async-bolt-100", "calls-by-workers", "at least", 0.25),
    ("100 calls at a time : worker coroutines", "async-bolt-100", "calls-by-workers", "wanted", 0.4),
    ("one call at a time : a loop of awaits", "async-bolt", "calls-by-loop", "at least", 0.3),
    ("one call at a time : a loop of awaits", "async-bolt", "calls-by-loop", "wanted", 0.5),
)
"""The way calls are made, workload, its limit, how strictly it is asked, and the least ratio of their rates."""

OF_SPARK: Sequence[tuple[str, str, float]] = (
    ("as records, at least 0.45", "single_rows_per_s", 0.45),
    ("as records to a sink and back, at least 0.2", "sunk_rows_per_s", 0.2),
    ("as records to a sink and back, wanted 0.3", "sunk_rows_per_s", 0.3),
    ("as records to a sink and back exactly once, at least 0.18", "exact_rows_per_s", 0.18),
)
"""Target, figure, and the least share of Spark's own iterator."""


@dataclass(frozen=True, slots=True)
class Target:
    """One sentence of what is meant to be."""

    text: str
    measured: Callable[[Results], Measured | None]
    """None if what it is about was not measured."""
    least: float = -inf
    most: float = inf
    unit: str = "{:,.2f}"
    build: Build | None = None
    """Of which alone it is asked."""


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of a target."""

    target: str
    value: float
    shown: str
    met: bool | None
    """None if it is asked of another build than the one that ran."""


def verdicts(results: Results, *, compiled: bool) -> Iterator[Verdict]:
    """The outcome of every target whose figures are among these results."""
    build: Build = "compiled" if compiled else "interpreted"
    for target in TARGETS:
        measured = target.measured(results)
        if measured is not None:
            yield _verdict(target, measured.median, build)


def _verdict(target: Target, value: float, build: Build) -> Verdict:
    asked = target.build in (None, build)
    met = target.least <= value <= target.most
    return Verdict(target.text, value, target.unit.format(value), met if asked else None)


def _rates(name: str, *others: str, rate: str = RATE) -> Callable[[Results], Measured | None]:
    """The ratio of the rate of one workload to that of the fastest of the others."""

    def measured(results: Results) -> Measured | None:
        ours = figure(results, name, rate)
        theirs = [each for other in others if (each := figure(results, other, rate)) is not None]
        if ours is None or not theirs:
            return None
        return ours.over(max(theirs, key=lambda each: each.median))

    return measured


def _share(name: str, which: str) -> Callable[[Results], Measured | None]:
    """The share that a figure has of its limit."""

    def measured(results: Results) -> Measured | None:
        ours, limit = figure(results, name, which), figure(results, *LIMITS[which])
        return None if ours is None or limit is None else ours.over(limit)

    return measured


def _figure(name: str, which: str) -> Callable[[Results], Measured | None]:
    return lambda results: figure(results, name, which)


TARGETS = (
    Target(
        "word count, acked : the limit, at least 1/10", _rates("acked", "loops"), 0.1, build="interpreted"
    ),
    Target("word count, acked : the limit, at least 1/5", _rates("acked", "loops"), 0.2, build="compiled"),
    Target("word count, acked : the limit, wanted 1/3", _rates("acked", "loops"), 1 / 3, build="compiled"),
    *(
        Target(
            f"word count, acked : {peer}, {asked} {least}", _rates("acked", *names), least, build="compiled"
        )
        for peer, names, asked, least in (
            ("Bytewax with keys, its best batches", BYTEWAX, "at least", 1.25),
            ("Bytewax with keys, its best batches", BYTEWAX, "wanted", 2),
            ("Bytewax without keys, its best batches", UNKEYED, "at least", 1.25),
            ("streamz", ("streamz",), "at least", 4),
            ("Pathway", ("pathway",), "at least", 2),
        )
    ),
    *(
        Target(f"async bolt, {text}, {asked} {least}", _rates(name, limit), least, build="compiled")
        for text, name, limit, asked, least in OF_CALLS
    ),
    Target("word count, acked : unacked, at least 0.6", _rates("acked", "unacked"), 0.6),
    Target(
        "word count with 1,000,000 trees open : with 1,000, at least 0.85",
        _rates("pending-1m", "pending-1k"),
        0.85,
    ),
    *(
        Target(f"state, {text}", _rates(name, other, rate=CPU_RATE), least, build="compiled")
        for text, name, other, least in OF_STATE
    ),
    *(
        Target(f"word count, {text}, at least 0.95", _rates(name, "watched-none", rate=CPU_RATE), 0.95)
        for text, name in OF_WATCHING
    ),
    Target(
        "state, durable each 100 ms : Bytewax with recovery, at least 2",
        _rates("state-interval", "bytewax-state"),
        2,
        build="compiled",
    ),
    *(
        Target(
            f"rows from Spark, {text} of Spark's iterator", _share("spark", which), least, build="compiled"
        )
        for text, which, least in OF_SPARK
    ),
    *(
        Target(text, _figure(name, which), most=most, unit=UNITS[which], build=build)
        for text, name, which, most, build in AT_MOST
    ),
)
