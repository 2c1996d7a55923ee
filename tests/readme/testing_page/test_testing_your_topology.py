"""The page "Testing your topology": its first words."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from stormlet import Topology
from stormlet.testing import Ack, Completed, Fail, Leaked, ScriptedBolt, complete
from tests.cast import Forget

ROOT = Path(__file__).parents[3]


async def a_while(hours: int) -> int:
    await asyncio.sleep(hours * 3600)
    return hours


def ran() -> Completed:
    topology = Topology("hours", message_timeout=None)
    topology.bolt("wait", a_while, topology.spout("hours", [3, 1, 2]).shuffle(), concurrency=3)
    return complete(topology)


def test_the_kit() -> None:
    """`stormlet.testing` runs real topologies, with the engine that runs them in production, on simulated time: hours
    pass in milliseconds, the same events come in the same order in every run, and what a topology leaves behind fails
    the test.
    """
    began = perf_counter()
    first, second = ran(), ran()
    assert perf_counter() - began < 60.0 < first.seconds == 3 * 3600
    assert list(first.emissions) == list(second.emissions)
    assert first["wait"] == [1, 2, 3]

    topology = Topology("holds", message_timeout=1.0, max_attempts=1)
    topology.bolt("hold", Forget, topology.spout("one", [1]).shuffle())
    with pytest.raises(Leaked, match=r"hold\[0\] never acked or failed"):
        complete(topology)


@pytest.mark.simulated_time
async def test_the_plugin() -> None:
    """The pytest plugin comes with the package; nothing needs to be installed or registered."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"stormlet": "stormlet.testing.plugin"}
    assert hasattr(asyncio.get_running_loop(), "simulated_time")


def test_the_example(orders: Any) -> None:
    """The examples test this topology. Orders come from a queue; an order that cannot be read is rejected; a service is
    asked for the price, and is asked again when it fails; the value of each customer's orders is added up.
    """
    with pytest.raises(ConnectionError):
        next(orders.incoming())
    service = ScriptedBolt({orders.Order("ann", "tea", 1): [Fail("busy"), Ack([orders.Bill("ann", 2.0)])]})
    result = complete(orders.billing(service), {"lines": ["nonsense", "ann tea 1"]})
    rejected = result.outcome("nonsense").failure
    assert rejected is not None
    assert rejected.permanent
    assert result.outcome("ann tea 1").attempts == 2

    slow = [f"ann tea {number}" for number in (1, 2)]
    totals = complete(orders.billing(), {"lines": _after_a_minute(slow)})["totals"]
    assert totals[-1] == orders.Bill("ann", 6.0)


def _after_a_minute(lines: list[str]) -> Any:
    async def source() -> Any:
        for line in lines:
            yield line
        await asyncio.sleep(61)

    return source
