"""One call of an instance at a time (law B7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Topology, Tuple
from tests.engines import Engine
from tests.helpers import leave_by, run_to_end


class Exclusive:
    """Notes which calls of its owner there were, and which overlapped."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.overlaps: list[str] = []
        self._inside: list[str] = []

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        self.overlaps += [f"{name} in {other}" for other in self._inside]
        self._inside.append(name)
        try:
            yield
        finally:
            self._inside.remove(name)
            self.calls.append(name)


class Everything(Bolt[object, object]):
    """Has every method, and each takes its time."""

    exclusive: Exclusive

    def __init__(self) -> None:
        self.held: list[Tuple[object]] = []

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        with self.exclusive.call("execute"):
            await asyncio.sleep(0.7)
            self.held.append(tup)

    async def tick(self, out: Collector[object]) -> None:
        with self.exclusive.call("tick"):
            await asyncio.sleep(0.7)

    async def flush(self, out: Collector[object]) -> None:
        with self.exclusive.call("flush"):
            await asyncio.sleep(0.7)
            while self.held:
                out.ack(self.held.pop())

    async def finish(self, out: Collector[object]) -> None:
        with self.exclusive.call("finish"):
            await asyncio.sleep(0.7)

    async def cleanup(self) -> None:
        with self.exclusive.call("cleanup"):
            await asyncio.sleep(0.7)


@pytest.mark.simulated_time
async def test_B7_no_two_methods_of_one_instance_overlap() -> None:
    """Execute, tick, flush, finish and cleanup wait for each other's awaits."""
    exclusive = Exclusive()

    class Strict(Everything):
        pass

    Strict.exclusive = exclusive
    topology = Topology("strict", max_spout_pending=2)
    topology.bolt("strict", Strict, topology.spout("numbers", range(7)).shuffle(), tick=0.5)
    await run_to_end(topology)
    assert set(exclusive.calls) == {"execute", "tick", "flush", "finish", "cleanup"}
    assert exclusive.overlaps == []
    assert exclusive.calls[-1] == "cleanup"


@pytest.mark.simulated_time
async def test_B7_no_two_methods_overlap_in_a_bolt_without_ticks(engine: Engine) -> None:
    """Execute, flush, finish and cleanup of an instance follow one another."""
    exclusive = Exclusive()
    strict = type("Strict", (Everything,), {"exclusive": exclusive})
    topology = Topology("strict")
    topology.bolt("strict", strict, topology.spout("numbers", range(7)).shuffle())
    await engine.run_to_end(topology)
    assert set(exclusive.calls) == {"execute", "flush", "finish", "cleanup"}
    assert exclusive.overlaps == []
    assert exclusive.calls[-1] == "cleanup"


@pytest.mark.simulated_time
async def test_B7_cleanup_waits_for_a_call_that_is_cancelled() -> None:
    """When the block is left by an exception, the suspended execute ends before cleanup begins."""
    calls: list[str] = []

    class Cancelled(BasicBolt[object, object]):
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(1)
                calls.append("execute")

        def cleanup(self) -> None:
            calls.append("cleanup")

    topology = Topology("cancelled")
    topology.bolt("bolt", Cancelled, topology.spout("one", ["a"]).shuffle())
    with pytest.raises(ZeroDivisionError):
        await leave_by(ZeroDivisionError(), topology)
    assert calls == ["execute", "cleanup"]


@pytest.mark.simulated_time
async def test_B7_batches_do_not_overlap_either(engine: Engine) -> None:
    """A batch that is due by its age waits for the full one of another key that runs."""
    exclusive = Exclusive()

    class Batch(BatchBolt[int, int]):
        size = 2
        within = 0.3

        def key(self, value: int) -> int:
            return value % 2

        async def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            with exclusive.call(str([each.value for each in tups])):
                await asyncio.sleep(0.5)

    topology = Topology("batches")
    topology.bolt("batch", Batch, topology.spout("numbers", [0, 1, 3]).shuffle())
    await engine.run_to_end(topology)
    assert exclusive.overlaps == []
    assert exclusive.calls == ["[1, 3]", "[0]"]
