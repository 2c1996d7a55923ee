"""The search for who holds tuples of trees that have timed out (law L14)."""

from __future__ import annotations

import gc
import sys

import pytest

from stormlet import Topology
from stormlet.core.acks import Acks
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.trees import OpenTree
from stormlet.runtime.acker.holders import FoundHolders, HolderScan
from stormlet.runtime.tasks import Directory
from stormlet.runtime.wire.outbox import Control
from tests.cast import ignore
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
        directory = Directory()
        directory.tasks = running._tasks
        scan = HolderScan(directory.unsettled(), set(roots))
        assert scan.advance(1) == 1
        puppets[0].ack_all()
        assert scan.advance(10) == 2
    assert [scan.found.pop(root, ()) for root in roots] == [("puppets",), (), ()]


@pytest.mark.simulated_time
async def test_a_message_is_known_before_its_acker_has_read_of_it() -> None:
    """A log line about one of its tuples names the message while its tree waits with a busy acker."""
    topology = Topology("unread")
    topology.bolt("ignore", ignore, topology.spout("feed").shuffle())
    async with topology.run() as running:
        directory, tree = Directory(), OpenTree(root=7, message_id="the message")
        directory.tasks = running._tasks
        running._tasks.ackers[0].post(Control([tree], Acks((root, 1) for root in range(8, 18)), [], []))
        assert directory.message_id([6, 7]) == "the message"
        running._tasks.ackers[0].fail_all(Failure(FailureKind.SHUTDOWN))


def test_the_collector_does_not_look_into_what_was_found() -> None:
    """However many trees time out, there are as many objects as ways in which they are held."""
    found = FoundHolders()
    for root in range(1, 10_001):
        found.add(root, "split")
        if root % 2:
            found.add(root, "count")
            found.add(root, "count")
    shards = found._shards  # pyright: ignore[reportPrivateUsage] - memory has no public face
    # From 3.14 on, Python looks into every dict.
    assert sys.version_info >= (3, 14) or not any(gc.is_tracked(shard) for shard in shards)
    assert [found.pop(root, ()) for root in (7, 8, 7)] == [("split", "count"), ("split",), ()]
    assert sum(map(len, shards)) == 9998
