"""Bytewax with recovery: the counts are saved to its SQLite partitions, and the source notes where it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.peers.bytewax_peer import nowhere, split_keyed
from stormlet.bench.word_count import Total, check, rate, sentences
from stormlet.bench.workload import Figures, Workload

if TYPE_CHECKING:
    from bytewax.inputs import FixedPartitionedSource
    from bytewax.operators import StatefulBatchLogic

BATCH = 256
"""Of its batches, the fastest."""
INTERVAL = 0.1
"""Seconds between two snapshots."""


def with_recovery(size: int) -> Figures:
    """Words are keyed by themselves."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.recovery import RecoveryConfig, init_db_dir
    from bytewax.testing import run_main

    counts = Counter[str]()
    flow = Dataflow("word_count")
    words = op.flat_map("split", op.input("lines", flow, _source(size)), split_keyed)
    op.output("nowhere", op.stateful_batch("count", words, lambda state: _logic(counts, state)), nowhere())
    with TemporaryDirectory() as folder:
        init_db_dir(Path(folder), 1)
        began = time.perf_counter()
        run_main(flow, epoch_interval=timedelta(seconds=INTERVAL), recovery_config=RecoveryConfig(folder))
        seconds = time.perf_counter() - began
    check(counts, size)
    return rate(size, seconds)


def _logic(counts: Counter[str], state: int | None) -> StatefulBatchLogic[str, Total, int]:
    from bytewax.operators import StatefulBatchLogic

    class Count(StatefulBatchLogic[str, Total, int]):
        def __init__(self) -> None:
            self.total = state or 0

        def on_batch(self, values: list[str]) -> tuple[Iterable[Total], bool]:
            totals: list[Total] = []
            for word in values:
                self.total += 1
                totals.append(Total(word, self.total))
            counts[values[0]] = self.total  # for the check alone
            return totals, False

        def snapshot(self) -> int:
            return self.total

    return Count()


def _source(size: int) -> FixedPartitionedSource[str, int]:
    from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

    class Batches(StatefulSourcePartition[str, int]):
        def __init__(self) -> None:
            self._lines = sentences(size)
            self._given = 0

        def next_batch(self) -> list[str]:
            lines = list(islice(self._lines, BATCH))
            if not lines:
                raise StopIteration
            self._given += len(lines)
            return lines

        def snapshot(self) -> int:
            return self._given

    class Sentences(FixedPartitionedSource[str, int]):
        def list_parts(self) -> list[str]:
            return ["all"]

        def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Batches:
            return Batches()

    return Sentences()


WORKLOADS = (
    Workload(
        "bytewax-state", "Bytewax with recovery, each 100 ms", with_recovery, 100_000, "state", "bytewax"
    ),
)
