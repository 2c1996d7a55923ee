"""Word counts with more ackers, and with more tasks; those with one of each are in ``stormlet.bench``."""

from __future__ import annotations

from functools import partial

from stormlet.bench.word_count import WORKLOADS as OWN
from stormlet.bench.word_count import word_count
from stormlet.bench.workload import Workload

WORKLOADS = (
    OWN["acked"],
    OWN["unacked"],
    Workload("ackers-2", "word count, 2 ackers", partial(word_count, ackers=2), 100_000),
    Workload("ackers-4", "word count, 4 ackers", partial(word_count, ackers=4), 100_000),
    Workload(
        "tasks-64", "word count, 64 tasks of each bolt", partial(word_count, ackers=1, tasks=64), 50_000
    ),
)
