"""The handle on a running topology."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Running, Topology, TopologyCrashed


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


class Odd(BaseException):
    """What ``except Exception`` does not catch."""


@pytest.mark.simulated_time
async def test_a_task_never_ends_unnoticed() -> None:
    """User code that raises no ordinary exception crashes the topology like any other crash."""
    topology = Topology("odd")

    def raise_odd(value: int) -> None:
        raise Odd(value)

    topology.bolt("bolt", raise_odd, topology.spout("spout", range(3)).shuffle())
    with pytest.raises(TopologyCrashed, match=r"execute of bolt\[0\] raised Odd\(0\)"):
        async with topology.run() as running:
            await running.finished()
