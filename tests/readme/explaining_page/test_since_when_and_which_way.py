"""The page "Why is it stuck?": the recorder."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import Counter

import pytest

from stormlet import DeadLetter, Place, Topology, TupleTimedOut, is_compiled
from stormlet.runtime.wire.outlets import WrappedOutlet
from tests.cast import Hold, ignore
from tests.readme.explaining_page.kit import lines, one_bolt, wait_for_ever


@pytest.mark.simulated_time
async def test_without_and_with_a_recorder() -> None:
    """All this is there without preparation. A *recorder* adds since when each tuple is where it is, by way of which
    tasks it came, how long the tree has been open, and for an attempt that timed out or was left over at the end the
    tuples that were outstanding then; `TupleTimedOut` has them as notes, a dead letter in
    `letter.failure.outstanding`.
    """
    topology = Topology("way", drain_timeout=0, message_timeout=10, max_attempts=1)
    words = topology.spout("words", ["a"])
    source = topology.spout("source")
    upper = topology.bolt("upper", str.upper, source.shuffle(), words.shuffle())
    topology.bolt("keep", Hold, upper.shuffle())
    letters: list[DeadLetter] = []
    for record in (0, 1):
        async with topology.run(dead_letters=letters.append, active=False) as running:
            running.record_edges(record)
            running.activate()
            tree = await running.emit(source, "b")
            await asyncio.sleep(5)
            first, second = lines(tree.explain())[:2]
            if not record:
                assert first == "message of 'source', 'b', is open (root)"
                assert second.startswith("'B' is held by keep[0], by way of upper[0]: ")
            else:
                assert first == "message of 'source', 'b', is open for 5 s (root)"
                assert second.startswith(
                    "'B' is held by keep[0], delivered 5 s ago, by way of source[0] > upper[0]: "
                )
            with pytest.raises(TupleTimedOut) as raised:
                await tree
            assert len(getattr(raised.value, "__notes__", ())) == record
            await asyncio.sleep(1)
            left_over = await running.emit(source, "c")
        assert left_over.failure is not None
        assert [each.value for each in left_over.failure.outstanding] == ["C"] * record
    assert [[each.place for each in letter.failure.outstanding] for letter in letters] == [[], [Place.HELD]]


@pytest.mark.simulated_time
async def test_how_much_is_recorded() -> None:
    """`record_edges=1` records every tree, `record_edges=0.01` one in a hundred, and `running.record_edges(share)`
    changes that while the topology runs, for trees that begin from then on. What is recorded of a tree is forgotten
    when it is settled. With `record_edges=0`, the default, it costs nothing: outlets are wrapped when it is switched
    on, and unwrapped again.
    """
    counted: dict[float, int] = {}
    for share in (0.0, 1.0, 0.01):
        async with one_bolt(Hold, record=share) as (running, source):
            trees = [await running.emit(source, number) for number in range(900)]
            await asyncio.sleep(1)
            counted[share] = sum(tree.explain().recorded for tree in trees)
    assert (counted[0.0], counted[1.0]) == (0, 900)
    assert 1 <= counted[0.01] <= 25

    async with one_bolt(Hold) as (running, source):
        (task,) = running._tasks.all_spouts  # pyright: ignore[reportPrivateUsage] - nobody else can count outlets
        wrapped = depth(task.outlets["default"])
        before = await running.emit(source, 1)
        running.record_edges(1)
        assert depth(task.outlets["default"]) == wrapped + 1
        during = await running.emit(source, 2)
        await asyncio.sleep(1)
        assert (before.explain().recorded, during.explain().recorded) == (False, True)
        running.record_edges(0)
        assert depth(task.outlets["default"]) == wrapped

    async with one_bolt(ignore, record=1) as (running, source):
        recorder = running._explainer.recorder  # pyright: ignore[reportPrivateUsage]
        tree = await running.emit(source, 1)
        assert len(recorder.trees) == 1
        await tree
        assert not recorder.trees


def depth(outlet: object) -> int:
    return 1 + depth(outlet.inner) if isinstance(outlet, WrappedOutlet) else 0


def calls_of(share: float) -> int:
    """How many functions, of Python and of C, a small word count calls: a measure of its cost that no load disturbs,
    as its slices are not cut short on a slow machine."""
    topology = Topology("word count", record_edges=share, slice=60.0)
    lines = topology.spout("lines", ["the cow jumped over the moon"] * 1000)
    words = topology.bolt("split", lambda line: iter(line.split()), lines.shuffle(), parallelism=2)
    counts = Counter[str]()
    topology.bolt("count", lambda word: counts.update((word,)), words.fields(), parallelism=4)

    async def run() -> None:
        async with topology.run() as running:
            await running.finished()

    calls = itertools.count()

    def count(_frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            next(calls)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        asyncio.run(run())
    finally:
        sys.setprofile(before)
    return next(calls)


@pytest.mark.skipif(
    is_compiled(),
    reason="a profile sees no calls of compiled functions; `python -m benchmarks watched-recorded` is for both builds",
)
def test_what_it_costs() -> None:
    """Word counts with every tree recorded take two to five times as long, with one in a hundred up to a
    quarter longer.
    """
    none, every, few = (calls_of(share) for share in (0.0, 1.0, 0.01))
    assert 1.3 < every / none < 5
    assert few / none < 1.25


@pytest.mark.simulated_time
async def test_in_tests() -> None:
    """Tests on simulated time always record."""
    topology = Topology("recorded", drain_timeout=0)
    topology.bolt("waits", wait_for_ever, topology.spout("numbers", [1]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        (told,) = running.explain_oldest()
    assert told.recorded
