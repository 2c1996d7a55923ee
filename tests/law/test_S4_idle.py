"""A spout with nothing to emit costs nothing (law S4)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from stormlet import Spout, SpoutCollector, TaskContext, Topology
from tests.cast import Waiting, ignore
from tests.helpers import now
from tests.law.puppets import BRIEFLY


def iterations(loop: asyncio.AbstractEventLoop) -> Callable[[], int]:
    """Count the iterations of the loop from now on."""
    count = 0
    run_once: Callable[[], None] = loop._run_once  # type: ignore[attr-defined]

    def counted() -> None:
        nonlocal count
        count += 1
        run_once()

    loop._run_once = counted  # type: ignore[attr-defined]
    return lambda: count


async def waiting() -> AsyncIterator[int]:
    """A generator to which nothing ever comes."""
    await asyncio.get_running_loop().create_future()
    yield 0


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "source", [None, waiting, Waiting, range(3)], ids=["fed", "generator", "spout", "ended"]
)
async def test_S4_fed_async_and_generator_spouts_cause_no_wake_ups(source: object) -> None:
    """In an idle hour the loop goes round for the sleep of the test itself, and for nothing else."""
    topology = Topology("idle", ackers=0)
    topology.bolt("ignore", ignore, topology.spout("idle", source).shuffle())  # type: ignore[call-overload]
    async with topology.run():
        await asyncio.sleep(BRIEFLY)
        count = iterations(asyncio.get_running_loop())
        await asyncio.sleep(3600)
        assert count() <= 2


class Polled(Spout[str]):
    """A synchronous spout that emits what is put into ``ready``; notes when it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.ready: list[str] = []

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.asked.append(now())
        if self.ready:
            out.emit(self.ready.pop(), message_id=1)

    def pauses(self) -> list[float]:
        """The seconds between one call and the next."""
        return [round(later - before, 6) for before, later in itertools.pairwise(self.asked)]


def polled_topology(**options: object) -> tuple[Topology, Polled]:
    """A topology around one polled spout."""
    spout = Polled()
    topology = Topology("polled", message_timeout=None, **options)
    topology.bolt("ignore", ignore, topology.spout("polled", lambda: spout).shuffle())
    return topology, spout


@pytest.mark.simulated_time
async def test_S4_the_pauses_of_a_polled_spout_grow_to_idle_max() -> None:
    """They begin short, never shrink, and end at 100 ms."""
    topology, spout = polled_topology()
    async with topology.run():
        await asyncio.sleep(60)
    pauses = spout.pauses()
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.01
    assert pauses[20:] == [0.1] * len(pauses[20:])


@pytest.mark.simulated_time
async def test_S4_idle_max_is_an_option() -> None:
    """With ``idle_max=2`` the pauses grow to two seconds."""
    topology, spout = polled_topology(idle_max=2.0)
    async with topology.run():
        await asyncio.sleep(60)
    assert max(spout.pauses()) == 2


@pytest.mark.simulated_time
async def test_S4_an_emit_makes_the_pauses_short_again() -> None:
    """After a tuple came, the growth begins anew."""
    topology, spout = polled_topology(idle_max=5.0)
    async with topology.run():
        await asyncio.sleep(60)
        calls = len(spout.asked)
        spout.ready.append("new")
        await asyncio.sleep(15)
    assert max(spout.pauses()[calls : calls + 4]) < 0.01


@pytest.mark.simulated_time
async def test_S4_wake_ends_the_pause_at_once() -> None:
    """``out.wake()`` has the spout asked now instead of at the end of its pause."""
    topology, spout = polled_topology(idle_max=50.0)
    async with topology.run():
        await asyncio.sleep(60)
        before = len(spout.asked)
        spout.out.wake()
        await asyncio.sleep(0.0001)
        assert spout.asked[before:] == [60]
