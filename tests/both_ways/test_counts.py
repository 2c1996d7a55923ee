"""What is counted for as long as a service runs."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import Running, Topology
from tests.cast import Counting, ignore

pytestmark = pytest.mark.simulated_time

MANY = 2**53
"""More than comes in a year, on a machine of any word size: 285 million a second."""


def count_many(running: Running) -> None:
    """As if all of it had happened before."""
    tasks: Any = running._tasks  # pyright: ignore[reportPrivateUsage] - nobody waits for a year
    for spout in tasks.all_spouts:
        spout.tracker.emitted = MANY
        spout.tracker.counts.acked = spout.tracker.counts.failed = spout.tracker.counts.replayed = MANY
    for bolt in tasks.all_bolts:
        bolt.account.acked = bolt.account.failed = bolt._executed_before = MANY
    for acker in tasks.ackers:
        books = acker._bookkeeper
        books.applied = books.acked = books.failed = books.ledger.settled = MANY
    for task in (*tasks.all_spouts, *tasks.all_bolts):
        for outlet in task.outlets.values():
            innermost(outlet)._emitted = MANY


def innermost(outlet: Any) -> Any:
    """Without what simulated time has put around it."""
    return innermost(outlet.inner) if hasattr(outlet, "inner") else outlet


async def test_counts_go_on_beyond_any_that_a_year_reaches() -> None:
    """They stay exact, and a spout is asked as before, which its own count has a part in."""
    topology = Topology("year")
    numbers = topology.spout("numbers", Counting)
    topology.bolt("sink", ignore, topology.bolt("same", abs, numbers.shuffle()).shuffle())
    async with topology.run(active=False) as running:
        count_many(running)
        running.activate()
        await running.finished()
        counts = running.statistics().components
    assert (counts["numbers"].emitted, counts["numbers"].acked) == (MANY + 3, MANY + 3)
    assert (counts["same"].executed, counts["same"].emitted) == (MANY + 3, MANY + 3)
    assert counts["__acker"].acked == MANY + 3
