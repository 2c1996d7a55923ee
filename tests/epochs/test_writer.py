"""The thread that writes epochs gets the interpreter (law F5). Real time is the subject."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Collection
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.core.state.commits import Commit
from stormlet.runtime.epochs.writer import EpochWriter
from stormlet.runtime.other_threads import WAY, make_way
from stormlet.runtime.slices import Activity
from stormlet.state.memory import MemoryStore

LONG = 5.0
"""Seconds after which a test has failed."""


class Count(KeyedBolt[str, str, int]):
    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        self.total += 1


async def be_busy() -> None:
    """Other code of the host, in turns of half a millisecond."""
    while True:
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)


class SlowStore(MemoryStore):
    """Writes an epoch when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = Event()

    def commit(self, commit: Commit) -> None:
        assert self.may_write.wait(LONG)
        super().commit(commit)


def test_the_loop_waits_now_and_then_for_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the epoch is written when it does so for the third time; from then on it does not."""
    store, waits = SlowStore(), list[float]()
    real = concurrent.futures.wait

    def wait(futures: Collection[concurrent.futures.Future[Any]], timeout: float) -> Any:
        waits.append(timeout)
        if len(waits) == 3:
            store.may_write.set()
        return real(futures, LONG if len(waits) == 3 else timeout)

    async def main() -> None:
        loop, durable = asyncio.get_running_loop(), asyncio.Event()
        errors = list[Exception]()
        writer = EpochWriter(
            store, loop, Activity(), lambda _, error: errors.append(error), "test", inline=False
        )
        busy = loop.create_task(be_busy())
        writer.write(Commit(1, 0.0, {}), durable.set)
        async with asyncio.timeout(LONG):
            await durable.wait()
        await asyncio.sleep(0.02)
        busy.cancel()
        await writer.close(lambda: None)
        assert not errors

    monkeypatch.setattr(concurrent.futures, "wait", wait)
    asyncio.run(main())
    assert waits == [WAY] * 3


def test_the_loop_sleeps_now_and_then_for_other_work() -> None:
    """Until it is done, and not from then on."""
    waits = list[float]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        work: asyncio.Future[None] = loop.create_future()

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                work.set_result(None)

        busy = loop.create_task(be_busy())
        make_way(loop, work, wait)
        async with asyncio.timeout(LONG):
            await work
        await asyncio.sleep(0.02)
        busy.cancel()

    asyncio.run(main())
    assert waits == [WAY] * 3


def test_an_idle_loop_does_not_wait() -> None:
    """Its host may have something to do at any moment, and the thread has the interpreter anyway. In the first
    milliseconds it may have computed more than half of the time."""
    waits = list[float]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        work: asyncio.Future[None] = loop.create_future()
        make_way(loop, work, waits.append)
        await asyncio.sleep(0.1)
        work.set_result(None)

    asyncio.run(main())
    assert len(waits) < 3


def test_a_state_is_opened_and_closed_beside_a_busy_host(tmp_path: Path) -> None:
    """The threads that do it need the interpreter hundreds of times."""
    topology = Topology("kept")
    words = topology.spout("words", ["word"])
    topology.bolt("count", Count, words.fields())

    async def main() -> None:
        busy = asyncio.create_task(be_busy())
        async with asyncio.timeout(LONG), topology.run(state=tmp_path / "kept.state") as running:
            await running.finished()
        busy.cancel()
        assert running.state("count")["word"] == 1

    asyncio.run(main())
