"""Batches that can never fill are flushed (law B8)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stormlet import BatchBolt, Bolt, Collector, Topology, Tuple
from tests.engines import Engine
from tests.helpers import now, run_to_end

Log = list[tuple[str, float]]


class Collecting(Bolt[object, object]):
    """Holds its inputs until ``flush``, then forwards and acks them; notes the times."""

    log: Log
    name = "collecting"

    def __init__(self) -> None:
        self.held: list[Tuple[object]] = []

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.held.append(tup)

    def flush(self, out: Collector[object]) -> None:
        self.log.append((self.name, now()))
        for tup in self.held:
            out.emit(tup.value, anchors=tup)
            out.ack(tup)
        self.held = []


def collecting(log: Log, name: str = "collecting") -> type[Collecting]:
    """A class of its own, with its own log."""
    return type("Collecting", (Collecting,), {"log": log, "name": name})


@pytest.mark.simulated_time
async def test_B8_a_batch_that_can_never_fill_is_written_and_not_timed_out(engine: Engine) -> None:
    """Seven values for batches of a hundred, of which three may be pending, long before any is due."""
    written: list[int] = []

    class Write(BatchBolt[int, int]):
        size = 100
        within = 1000.0

        def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            written.extend(each.value for each in tups)

    topology = Topology("write", max_spout_pending=3)
    topology.bolt("write", Write, topology.spout("numbers", range(7)).shuffle())
    running = await engine.run_to_end(topology)
    assert written == list(range(7))
    assert running.statistics().components["numbers"].acked == 7
    assert now() < 1


@pytest.mark.simulated_time
async def test_B8_a_spout_that_is_paused_by_max_spout_pending_leads_to_a_flush() -> None:
    """Where less may be pending than a batch holds, it is flushed as often as it takes."""
    log: Log = []
    topology = Topology("paused", max_spout_pending=3)
    topology.bolt("collect", collecting(log), topology.spout("numbers", range(9)).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].acked == 9
    assert len(log) == 3
    assert now() == 0


@pytest.mark.simulated_time
async def test_B8_no_flush_while_a_source_may_still_yield() -> None:
    """A generator that sleeps may bring more; the flush comes when it has ended."""
    log: Log = []

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(20)
        yield 2

    topology = Topology("sleeping")
    topology.bolt("collect", collecting(log), topology.spout("numbers", numbers).shuffle())
    await run_to_end(topology)
    assert log == [("collecting", 20)]


@pytest.mark.simulated_time
async def test_B8_no_flush_for_a_spout_that_the_host_has_paused() -> None:
    """A deactivated spout is not paused by max_spout_pending only."""
    log: Log = []

    async def numbers() -> AsyncIterator[int]:
        for number in itertools.count():
            yield number
            await asyncio.sleep(1)

    topology = Topology("inactive")
    topology.bolt("collect", collecting(log), topology.spout("numbers", numbers).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(2.5)
        running.deactivate()
        await asyncio.sleep(10)
        assert log == []


@pytest.mark.simulated_time
async def test_B8_no_flush_while_anything_runs_or_is_queued() -> None:
    """While another bolt works on a tuple, or has one in its queue, more may come."""
    log: Log = []

    async def slow(value: int) -> int:
        await asyncio.sleep(5)
        return value

    topology = Topology("running")
    forwarded = topology.bolt("slow", slow, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("collect", collecting(log), forwarded.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(7)
        await running.finished()
    assert log == [("collecting", 15)]


@pytest.mark.simulated_time
async def test_B8_flush_goes_upstream_first(engine: Engine) -> None:
    """Where several hold inputs, what the upstream flush emits joins the batch of the next one."""
    log: Log = []
    topology = Topology("chain")
    source = topology.spout("numbers", range(3))
    first = topology.bolt("first", collecting(log, "first"), source.shuffle())
    second = topology.bolt("second", collecting(log, "second"), source.shuffle(), first.shuffle())
    topology.bolt("third", collecting(log, "third"), source.shuffle(), second.shuffle())
    await engine.run_to_end(topology)
    assert [name for name, _ in log] == ["first", "second", "third"]


@pytest.mark.simulated_time
async def test_B8_only_tasks_that_hold_unsettled_inputs_are_flushed(engine: Engine) -> None:
    """Of three tasks only the one that got the tuple is asked; one that holds nothing never is."""
    log: Log = []
    topology = Topology("holders")
    source = topology.spout("one", ["a"])
    topology.bolt("collect", collecting(log), source.shuffle(), parallelism=3)

    class Idle(Collecting):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            out.ack(tup)

    Idle.log, Idle.name = log, "idle"
    topology.bolt("idle", Idle, source.shuffle())
    await engine.run_to_end(topology)
    assert log == [("collecting", 0)]


@pytest.mark.simulated_time
async def test_B8_a_holder_may_reset_the_timeout_of_what_it_holds() -> None:
    """With it an input is held for ten times the message timeout, and acked."""

    class Keep(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            self.held = tup
            self.due = now() + 100

        def tick(self, out: Collector[object]) -> None:
            if now() < self.due:
                out.reset_timeout(self.held)
            elif self.held is not None:
                out.ack(self.held)
                self.due = float("inf")

    topology = Topology("keep", message_timeout=10.0)
    topology.bolt("keep", Keep, topology.spout("one", ["a"]).shuffle(), tick=4.0)
    running = await run_to_end(topology)
    source = running.statistics().components["one"]
    assert (source.acked, source.failed) == (1, 0)
    assert now() == 100
