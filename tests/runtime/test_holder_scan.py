"""The search for who holds tuples of trees that have timed out (law L14)."""

from __future__ import annotations

import pytest

from stormlet import Topology
from stormlet.runtime.holder_scan import HolderScan
from tests.law.puppets import Puppets, settle


@pytest.mark.simulated_time
async def test_what_was_settled_meanwhile_is_held_by_nobody() -> None:
    """The search takes a while: what it has not come to yet may be acked before it does."""
    topology, puppets = Topology("scan", drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run() as running:
        for number in range(3):
            await running.emit(feed, number)
        await settle()
        roots = [tup.root for tup in puppets[0].got]
        scan = HolderScan(running._tasks.all_bolts, set(roots))
        assert scan.advance(1) == 1
        puppets[0].ack_all()
        assert scan.advance(10) == 2
    assert [scan.found.pop(root, ()) for root in roots] == [("puppets",), (), ()]
