"""The most trees that may be open (law L13)."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import FailureKind, Topology, TupleFailed
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.law.puppets import Puppets, Script, ackers, orphans, script, settle, until


@pytest.mark.simulated_time
async def test_L13_high_water_is_decided_in_emit() -> None:
    """With a high water of 2, the fifth of the messages that one call emits is refused at once, though no
    init has been sent: it reaches no task and fails with OVERFLOW."""
    topology, puppets = Topology("full", acker_high_water=2), Puppets()
    spout, stream = script(topology, *range(7))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert [bool(reached) for reached in spout.reached] == [True] * 4 + [False] * 3
        assert [tup.value for tup in puppets.got] == [0, 1, 2, 3]
        kinds = {each: failure.kind for each, failure in spout.failed.items()}
        assert kinds == dict.fromkeys([4, 5, 6], FailureKind.OVERFLOW)
        counts = running.statistics().components["script"]
        assert (counts.overflowed, counts.failed, counts.pending, counts.transferred) == (3, 3, 4, 4)


@pytest.mark.simulated_time
async def test_L13_open_trees_count() -> None:
    """Room is there again as soon as, and as far as, trees have their verdict."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    spout, stream = script(topology, *range(2))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
        assert spout.out.emit("too many", message_id="too many") == ()
        puppets[0].out.ack(puppets[0].got[0])
        puppets[0].out.fail(puppets[0].got[1])
        await settle()
        reached = [bool(spout.out.emit(each, message_id=each)) for each in range(2, 5)]
    assert reached == [True, True, False]


@pytest.mark.simulated_time
async def test_L13_timed_out_trees_do_not_count() -> None:
    """What has timed out makes room, as any other verdict does."""
    topology, puppets = Topology("full", acker_high_water=1, message_timeout=10), Puppets()
    spout, stream = script(topology, *range(3))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await until(20)
        assert [bool(spout.out.emit(each, message_id=each)) for each in range(3, 6)] == [True] * 2 + [False]


@pytest.mark.simulated_time
async def test_L13_entries_without_init_do_not_count() -> None:
    """Late acks of trees that failed leave entries at the acker, and take no room."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), parallelism=2)
    async with topology.run(drain_timeout=0) as running:
        for number in range(10):
            await running.emit(feed, number)
            await settle()
            puppets[0].out.fail(puppets[0].got.pop())
            await settle()
            puppets[1].ack_all()
            await settle()
        assert orphans(running) == 10
        trees = [await running.emit(feed, number) for number in range(2)]
        await settle()
        assert [tree.failure for tree in trees] == [None] * 2


@pytest.mark.simulated_time
async def test_L13_the_host_is_told() -> None:
    """Awaiting the tree of a refused message raises, and says that it was OVERFLOW."""
    topology, puppets = Topology("full", acker_high_water=1), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run(drain_timeout=0) as running:
        *_, refused = [await running.emit(feed, number) for number in range(3)]
        with pytest.raises(TupleFailed) as caught:
            await refused
    assert caught.value.failure.kind is FailureKind.OVERFLOW


@pytest.mark.parametrize(
    ("pending", "parallelism", "shards", "most"),
    [(1000, 1, 1, 2000), (10, 1, 1, 2000), (1500, 3, 1, 9000), (1500, 3, 2, 4500), (700, 3, 2, 2100)],
)
@pytest.mark.simulated_time
async def test_L13_default_high_water(pending: int, parallelism: int, shards: int, most: int) -> None:
    """By default it is the sum of all spouts' ``max_spout_pending`` over the ackers, at least 1000."""
    topology = Topology("defaults", max_spout_pending=pending, ackers=shards)
    stream = topology.spout("script", Script, parallelism=parallelism)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run() as running:
        assert [acker.load.limit for acker in ackers(running)] == [most] * shards


@pytest.mark.simulated_time
async def test_L13_the_default_guards_one_call_that_floods() -> None:
    """Of the thousands of messages that a call emits in spite of its ``max_spout_pending``, 2000 get in."""
    topology, puppets = Topology("flood"), Puppets()
    spout, stream = script(topology, *range(2500))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
    assert sum(map(bool, spout.reached)) == len(puppets.got) == 2000


@pytest.mark.simulated_time
async def test_L13_the_default_does_not_throttle() -> None:
    """Spouts that emit one message a call never meet it, however long their trees stay open."""

    async def slow(value: int) -> None:
        await asyncio.sleep(0.001)

    topology = Topology("busy", ackers=2)
    numbers = [topology.spout(f"numbers {each}", list(range(2500))) for each in range(3)]
    topology.bolt("slow", slow, *(each.shuffle() for each in numbers), concurrency=100)
    running = await run_to_end(topology)
    assert running.statistics().components["__acker"].acked == 7500
    assert sum(each.overflowed for each in running.statistics().components.values()) == 0


@pytest.mark.simulated_time
async def test_L13_unlimited_pending_has_no_high_water() -> None:
    """Where a spout may have any number pending, so may the ackers."""
    topology, puppets = Topology("unlimited", max_spout_pending=None), Puppets()
    spout, stream = script(topology, *range(5000))
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
    assert all(spout.reached)
