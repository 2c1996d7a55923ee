"""Epochs of a run without ``state=``, which end with it."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value

pytestmark = pytest.mark.asyncio


class Threads(KeyedBolt[int, int, None]):
    """Counts inputs, and notes the threads that there are."""

    total = Value(int, 0)

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        self.total += 1
        self.seen.extend(thread.name for thread in threading.enumerate())


@pytest.mark.parametrize(("state", "threads"), [(None, False), ("numbers.state", True)])
async def test_no_thread_writes_into_memory(tmp_path: Path, state: str | None, threads: bool) -> None:
    """Into a file one does; all epochs are committed in both ways."""
    seen: list[str] = []
    topology = Topology("numbers", epoch_messages=10)
    topology.bolt("count", partial(Threads, seen), topology.spout("numbers", range(100)).fields())
    async with topology.run(state=None if state is None else tmp_path / state) as running:
        await running.finished()
        assert dict(running.state("count")) == dict.fromkeys(range(100), 1)
    assert any("numbers state" in name for name in seen) is threads
