"""The handle on a running topology."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Running, Topology


def stop_twice(running: Running) -> None:
    running.stop()
    running.stop()


@pytest.mark.simulated_time
async def test_two_stop_requests_at_once_cancel() -> None:
    """A second stop request cancels even if the drain of the first one has not begun yet (law C3)."""

    async def wait(value: int) -> None:
        await asyncio.Event().wait()

    topology = Topology("stuck", message_timeout=None, drain_timeout=None)
    topology.bolt("wait", wait, topology.spout("numbers", [1]).shuffle())
    async with topology.run() as running:
        asyncio.get_running_loop().call_later(1.0, stop_twice, running)
        await running.finished()
    assert running.statistics().left_over == 1
