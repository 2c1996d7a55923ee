"""What a large expiry has Python's garbage collector do, which holds the loop while it looks through all there is."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from stormlet import Topology, Tree
from stormlet.testing import run_simulated
from tests.cast import Counting, Forget, ignore

pytestmark = pytest.mark.untraced

MANY = 10_000
"""Of which each would take one object that the collector counts, for 14 collections by its default settings."""
FEW = 5


class Numbers(Counting):
    """Knows them by their message ids, and is told."""

    count = MANY

    def fail(self, message_id: object, failure: object) -> None:
        """Nothing is to be done."""


class Collections:
    """Counts them."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, phase: str, info: Mapping[str, int]) -> None:
        """As ``gc.callbacks`` are called."""
        self.count += phase == "stop"


@pytest.fixture
def collections() -> Iterator[Collections]:
    """Those of the test."""
    counted = Collections()
    gc.callbacks.append(counted.note)
    yield counted
    gc.callbacks.remove(counted.note)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        pytest.param(Numbers, {}, id="told to a spout"),
        pytest.param(range(MANY), {"max_attempts": 1}, id="dead letters"),
        pytest.param(range(MANY), {"replay_delay": 100.0, "replay_delay_max": 100.0}, id="replays"),
        pytest.param(None, {}, id="awaited by the host"),
    ],
)
def test_an_expiry_leaves_little_to_the_garbage_collector(
    source: Any, options: Mapping[str, Any], collections: Collections
) -> None:
    """Of each tree there is nothing new that it would look into: what they have in common is there once."""
    assert run_simulated(collections_of_expiry(source, options, collections)) <= FEW


async def collections_of_expiry(
    source: Any, options: Mapping[str, Any], collections: Collections
) -> int:  # in no marked test, which records trees
    topology = Topology("expiry", message_timeout=60.0, max_spout_pending=MANY, drain_timeout=0, **options)
    numbers = topology.spout("numbers", source)
    topology.bolt("hold", Forget, numbers.shuffle())
    trees: list[Tree[Any]] = []
    async with topology.run(dead_letters=ignore) as running:
        if source is None:
            trees.extend([await running.emit(numbers, number) for number in range(MANY)])
        await asyncio.sleep(59)
        gc.collect()
        before = collections.count
        await asyncio.sleep(32)
        assert running.statistics().components["numbers"].failed == MANY
        return collections.count - before
