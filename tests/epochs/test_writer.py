"""The thread that writes epochs gets the interpreter (law F5). Real time is the subject."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Collection
from threading import Event
from typing import Any

import pytest

from stormlet.core.state.commits import Commit
from stormlet.runtime.epochs.writer import WAIT, EpochWriter
from stormlet.runtime.slices import Activity
from stormlet.state.memory import MemoryStore

LONG = 5.0
"""Seconds after which a test has failed."""


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
        writer.write(Commit(1, 0.0, {}), durable.set)
        async with asyncio.timeout(LONG):
            await durable.wait()
        await asyncio.sleep(0.02)
        await writer.close(lambda: None)
        assert not errors

    monkeypatch.setattr(concurrent.futures, "wait", wait)
    asyncio.run(main())
    assert waits == [WAIT] * 3
