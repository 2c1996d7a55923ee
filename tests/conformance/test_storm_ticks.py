"""Storm's cases of ticks, K1 to K4, from its TickTupleTest and the rolling counts of storm-starter.

A tick is a call of ``tick(out)``, not a tuple (law B5), and simulated time is exact: where Storm says "at
least one", these say when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import BasicBolt, Bolt, Collector, InvalidConfiguration, Topology, Tuple
from tests.cast import Ack, Feeder, given
from tests.conformance.kit import collect, until
from tests.helpers import now


class Ticked(Bolt[str, float]):
    """Acks its inputs and notes the moment of each tick."""

    def __init__(self) -> None:
        self.ticks: list[float] = []
        self.values: list[str] = []

    def execute(self, tup: Tuple[str], out: Collector[float]) -> None:
        self.values.append(tup.value)
        out.ack(tup)

    def tick(self, out: Collector[float]) -> None:
        self.ticks.append(now())


@pytest.mark.simulated_time
async def test_K1_ticks_set_for_the_topology() -> None:
    """Under Storm's name for the whole topology, every bolt with a tick gets one each 30 s, and no other
    tuple."""
    topology = Topology("K1", **{"topology.tick.tuple.freq.secs": 30})
    feeder, bolts = Feeder(), (Ticked(), Ticked())
    values = topology.spout("1", given(feeder))
    for id, bolt in zip("23", bolts, strict=True):
        topology.bolt(id, given(bolt), values.shuffle())
    topology.bolt("without", Ack, values.shuffle())
    async with topology.run():
        await until(1)
        feeder.feed("val", 1)
        for moment, ticks in ((29.9, []), (59.9, [30]), (89.9, [30, 60]), (119.9, [30, 60, 90])):
            await until(moment)
            assert [bolt.ticks for bolt in bolts] == [ticks, ticks]
    assert feeder.settled_at == {1: 1}
    assert [bolt.values for bolt in bolts] == [["val"], ["val"]]


class RollingCount(BasicBolt[Any, int]):
    """storm-starter's rolling count of one key: each tick emits the total of the last slots, then opens the
    next one. Nothing counted, nothing emitted."""

    def __init__(self, slots: int, emits_zero: bool = False) -> None:
        self._slots = deque([0], maxlen=slots)
        self._emits_zero = emits_zero

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        self._slots[-1] += 1

    def tick(self, out: Collector[int]) -> None:
        total = sum(self._slots)
        if total or self._emits_zero:
            out.emit(total)
        self._slots.append(0)


def rolling(bolt: RollingCount, tick: float) -> tuple[Topology, Feeder, list[int]]:
    topology, feeder = Topology("rolling"), Feeder()
    counts = topology.bolt("2", given(bolt), topology.spout("1", given(feeder)).shuffle(), tick=tick)
    return topology, feeder, collect(topology, counts)


@pytest.mark.simulated_time
async def test_K2_a_tick_emits_what_was_counted() -> None:
    """A tick without anything counted emits nothing, a tuple alone emits nothing, the tick after it one
    count."""
    topology, feeder, seen = rolling(RollingCount(9), tick=2)
    async with topology.run():
        await until(3)
        assert seen == []
        feeder.feed("a", 1)
        await until(3.9)
        assert (feeder.acked, seen) == ([1], [])
        await until(4.1)
        assert seen == [1]


def test_K2_the_frequency_is_part_of_the_description() -> None:
    """A bolt's ticks are seen in the description, in seconds."""
    topology, _, _ = rolling(RollingCount(9), tick=2)
    assert topology.describe().bolts["2"].tick == 2.0


@pytest.mark.parametrize("tick", [0, -1, -0.5])
def test_K2_a_frequency_is_positive(tick: float) -> None:
    """Anything else is refused, with the bolt, the option and what is expected."""
    with pytest.raises(
        InvalidConfiguration, match=r"bolt '2': tick=.*expected a finite number of seconds > 0"
    ):
        rolling(RollingCount(9), tick=tick)


WINDOWS = [
    (2, [3, 2, 0, 0, 1, 0, 0, 0], [3, 5, 2, 0, 1, 1, 0, 0]),
    (3, [3, 2, 0, 0, 1, 0, 0, 0], [3, 5, 5, 2, 1, 1, 1, 0]),
    (4, [3, 2, 0, 0, 1, 0, 0, 0], [3, 5, 5, 5, 3, 1, 1, 1]),
    (5, [3, 2, 0, 0, 1, 0, 0, 0], [3, 5, 5, 5, 6, 3, 1, 1]),
    (5, [3, 11, 5, 13, 7, 17, 0, 3, 50, 600, 7000], [3, 14, 19, 32, 39, 53, 42, 40, 77, 670, 7653]),
]


@pytest.mark.simulated_time
@pytest.mark.parametrize(("slots", "increments", "totals"), WINDOWS)
async def test_K3_a_sliding_window_of_ticks(
    slots: int, increments: Sequence[int], totals: Sequence[int]
) -> None:
    """Tuples and ticks are executed in the order of their moments: each total is exact."""
    topology, feeder, seen = rolling(RollingCount(slots, emits_zero=True), tick=1)
    async with topology.run():
        for step, increment in enumerate(increments):
            await until(step + 0.5)
            for _ in range(increment):
                feeder.feed("a")
        await until(len(increments) + 0.5)
        assert seen == totals


class NthLastModified(BasicBolt[Any, float]):
    """storm-starter's tracker: emits how long ago its n-th last input was, or its start."""

    def __init__(self, n: int) -> None:
        self._moments = deque([now()] * n, maxlen=n)

    def execute(self, tup: Tuple[Any], out: Collector[float]) -> None:
        self._moments.append(now())
        out.emit(now() - self._moments[0])


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("n", "advances", "ages"),
    [
        (3, [1, 2, 3, 4, 5, 6, 7], [1, 3, 5, 7, 9, 11, 13]),
        (1, [1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 0, 0, 0]),
        (5, [2, 2, 2, 2, 2, 2, 2], [2, 4, 6, 8, 8, 8, 8]),
    ],
)
async def test_K4_bolts_see_the_simulated_time(n: int, advances: Sequence[int], ages: Sequence[int]) -> None:
    """A bolt executes an input at the very moment of its emit, however much time passed before."""
    topology, feeder = Topology("K4"), Feeder()
    seen = collect(
        topology, topology.bolt("2", lambda: NthLastModified(n), topology.spout("1", given(feeder)).shuffle())
    )
    async with topology.run():
        for step in range(len(advances)):
            await until(sum(advances[: step + 1]))
            feeder.feed("a")
    assert seen == ages
