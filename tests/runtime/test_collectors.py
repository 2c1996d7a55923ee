"""What bolts emit, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormlet import BasicBolt, Bolt, Collector, Topology, Tuple
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Later(BasicBolt[int, int]):
    """Emits from a callback of the loop, a second after its call."""

    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Ask for the callback."""
        asyncio.get_running_loop().call_later(1.0, self.emit, out)

    def emit(self, out: Collector[int]) -> None:
        """Emit without saying of anchors."""
        try:
            out.emit(2)
        except Exception as error:
            self.problems.append(error)


class AsyncLater(Later):
    """The same from an asynchronous call."""

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:  # type: ignore[override]
        """Ask for the callback."""
        await asyncio.sleep(0.5)
        super().execute(tup, out)


@pytest.mark.parametrize("kind", [Later, AsyncLater])
@pytest.mark.parametrize("origin", [None, "somebody"])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_an_emit_after_the_call_is_unanchored(
    kind: type[Later], origin: object, concurrency: int
) -> None:
    """What a BasicBolt emits when its call is over belongs to no tree, however the call was made (B1, L8)."""
    bolt, seen = kind(), list[tuple[int, float]]()
    topology = Topology("later")
    spout = topology.spout("spout")
    stream = topology.bolt("later", lambda: bolt, spout.shuffle(), concurrency=concurrency)
    topology.bolt("see", lambda value: seen.append((value, now())), stream.shuffle())
    async with topology.run() as running:
        await (await running.emit(spout, 1, origin=origin))
        await asyncio.sleep(5)
    assert bolt.problems == []
    assert seen == [(2, 1.5 if kind is AsyncLater else 1.0)]


class Unanchored(Bolt[int, int]):
    """Says that its output belongs to no tree."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Emit."""
        out.emit(tup.value, anchors=None)
        out.ack(tup)


@pytest.mark.parametrize("options", [{}, {"executor": "thread"}])
async def test_no_anchors_may_be_none(options: dict[str, Any]) -> None:
    """anchors=None is the same as no anchors (L8)."""
    seen = list[int]()
    topology = Topology("none", max_attempts=1)
    stream = topology.bolt("bolt", Unanchored, topology.spout("spout", [1, 2]).shuffle(), **options)
    topology.bolt("see", seen.append, stream.shuffle())
    running = await run_to_end(topology)
    assert (seen, running.dead_letters) == ([1, 2], ())
