"""What a run leaves behind: nothing that the garbage collector could not collect."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from weakref import ref

import pytest

from stormlet import Bolt, Running, Topology
from stormlet.runtime.acker.holders import HolderScan
from tests.cast import Forget, Refuse

pytestmark = pytest.mark.simulated_time


class Value:
    """Knows the topology that it runs through, as the request of a web application does."""

    running: Running


@pytest.mark.parametrize("bolt", [Forget, Refuse])
async def test_values_that_know_their_topology_are_collected(bolt: type[Bolt[Any, None]]) -> None:
    """Trees are hidden from the collector, so a run that is cancelled must leave none of them: neither of a spout
    nor of the host."""
    values = [ref(value) for value in await cancelled_with_open_trees(bolt)]
    gc.collect()
    assert [value() for value in values] == [None, None]


async def test_values_are_collected_of_a_run_that_ends_within_an_expiry() -> None:
    """What an acker has begun to look through for them is hidden, too, and let go."""
    values = [ref(value) for value in await cancelled_within_an_expiry()]
    gc.collect()
    assert {value() for value in values} == {None}


async def cancelled_within_an_expiry() -> list[Value]:
    topology, values = Topology("cycles"), [Value() for _ in range(20)]
    topology.bolt("bolt", Forget, topology.spout("spout", iter(values)).shuffle())
    with suppress(Leave):
        async with topology.run() as running:
            for value in values:
                value.running = running
            await asyncio.sleep(1)
            acker: Any = running._tasks.ackers[0]  # pyright: ignore[reportPrivateUsage] - it takes a moment only
            acker._scan = HolderScan(acker._unsettled(), {})
            assert acker._scan.advance(10) == 10
            raise Leave
    return values


async def cancelled_with_open_trees(bolt: type[Bolt[Any, None]]) -> list[Value]:
    topology = Topology("cycles", replay_delay=1000.0, replay_delay_max=1000.0)
    values = [Value(), Value()]

    async def spout() -> AsyncIterator[Value]:
        yield values[0]
        await asyncio.sleep(1000)

    fed = topology.spout("fed", outputs=Value)
    topology.bolt("bolt", bolt, topology.spout("spout", spout).shuffle(), fed.shuffle())
    with suppress(Leave):
        async with topology.run() as running:
            for value in values:
                value.running = running
            await running.emit(fed, values[1], attempts=5)
            await asyncio.sleep(1)
            assert [running.statistics().components[each].pending for each in ("spout", "fed")] == [1, 1]
            raise Leave
    return values


class Leave(Exception):
    """Ends the block."""
