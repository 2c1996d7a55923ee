"""Epochs, and a clock that somebody sets (law X1, K7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.model.state.keyed import states_of
from stormlet.runtime.epochs import keeper
from stormlet.state.memory import MemoryStore


class Count(KeyedBolt[str, str, None]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.total += 1


class Remind(KeyedBolt[str, str, str]):
    """Says each word again an hour later."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.set_timer(self.now + 3600)

    def on_timer(self, at: float, out: Collector[str]) -> None:
        out.emit(self.key)


@pytest.mark.asyncio
async def test_counts_do_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says another time whenever it is asked, of this year or the last one."""
    random, words = Random(1), list("abcab") * 20
    monkeypatch.setattr(keeper, "time", lambda: random.uniform(1.7e9, 1.8e9))
    topology, store = Topology("counting", epoch_messages=7), MemoryStore()
    topology.bolt("count", Count, topology.spout("words", words).fields())
    async with topology.run(state=store) as running:
        await running.finished()
    state = State(StateId("count", "total"), states_of(Count)["total"])
    state.load(store.load().states[state.id])
    assert dict(state.tables[0].committed_items()) == Counter(words)
    assert store.load().epoch == 15


@pytest.mark.asyncio
async def test_a_timer_comes_when_the_clock_was_set_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the end of the next epoch. While it is set back nothing comes."""
    now, seen = [1.7e9], list[str]()
    monkeypatch.setattr(keeper, "time", lambda: now[0])
    topology = Topology("reminding")
    words = topology.spout("words")
    topology.bolt("see", seen.append, topology.bolt("remind", Remind, words.fields()).shuffle())
    async with topology.run() as running:
        await (await running.emit(words, "a"))
        now[0] -= 100_000
        await (await running.emit(words, "b"))
        assert seen == []
        now[0] += 105_000
        await (await running.emit(words, "c"))
        for _ in range(100):
            if len(seen) < 2:
                await asyncio.sleep(0.02)
        assert sorted(seen) == ["a", "b"]
