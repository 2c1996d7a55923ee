"""Where spouts get their tuples from: how they are woken, and how they are closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from stormlet import EndOfStream, Spout, SpoutCollector, Topology
from tests.cast import ignore
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Waking(Spout[int]):
    """Asks to be called again at once while it is being called, some times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.called: list[float] = []

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Emit nothing."""
        self.called.append(now())
        if not self.left:
            raise EndOfStream
        self.left -= 1
        out.wake()


class WakingLater(Waking):
    """The same after a while of its own."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        """Wait, and emit nothing."""
        await asyncio.sleep(0.25)
        super().next_tuple(out)


@pytest.mark.parametrize(("kind", "step"), [(Waking, 0.0), (WakingLater, 0.25)])
async def test_wake_during_next_tuple_is_heard(kind: type[Waking], step: float) -> None:
    """A wake() while next_tuple runs does away with the pause that would follow (S4)."""
    spout = kind(8)
    topology = Topology("wake")
    topology.bolt("bolt", ignore, topology.spout("spout", lambda: spout).shuffle())
    await run_to_end(topology)
    assert spout.called == [step * n for n in range(bool(step), 9 + bool(step))]


class Numbers:
    """An iterator over 1, 2, … ``count`` that counts how often it is closed."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.number = 0
        self.closed = 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.number == self.count:
            raise StopIteration
        self.number += 1
        return self.number

    def close(self) -> None:
        """Count."""
        self.closed += 1


class AsyncNumbers(Numbers):
    """The same with awaits."""

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0.01)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Count."""
        self.close()


@pytest.mark.parametrize("kind", [Numbers, AsyncNumbers])
@pytest.mark.parametrize("count", [3, 10**9])
async def test_an_iterator_is_closed_once(kind: type[Numbers], count: int) -> None:
    """close() or aclose() of the user's iterator is called once, whether it ended or the topology drains."""
    values = kind(count)
    topology = Topology("close", max_spout_pending=1)
    topology.bolt("bolt", ignore, topology.spout("spout", values).shuffle())
    async with topology.run():
        await asyncio.sleep(0.1 if kind is AsyncNumbers or count == 3 else 0)
    assert values.closed == 1


class Slowly:
    """An async iterator, which unlike an async generator goes on where it was."""

    def __init__(self, *values: int) -> None:
        self.left = list(values)

    def __aiter__(self) -> Slowly:
        return self

    async def __anext__(self) -> int:
        """Return the next value a second later."""
        await asyncio.sleep(1)
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("values", [[1, 2, 3], Slowly(1, 2, 3)], ids=["iterable", "async iterable"])
async def test_a_value_that_could_not_be_emitted_is_emitted_once(values: Iterable[int]) -> None:
    """The source has given it, and gives it no more: the restarted task emits it first."""
    refusals, seen = [ValueError("not yet")], list[int]()

    def key(value: int) -> int:
        if value == 2 and refusals:
            raise refusals.pop()
        return value

    topology = Topology("refusing")
    topology.bolt("see", seen.append, topology.spout("values", values).fields(key))
    await run_to_end(topology)
    assert seen == [1, 2, 3]
