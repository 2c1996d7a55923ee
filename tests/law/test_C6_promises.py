"""The promises of the README's first screen (law C6)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from stormlet import Topology
from tests.cast import Count, Counting, Note, refuse
from tests.engines import FUSED, Engine
from tests.helpers import run_to_end
from tests.law.failing import fail_until


def test_C6_the_readme_says_so_on_its_first_screen() -> None:
    """That delivery is at least once, and that state is lost with the process unless it is declared, and exactly once
    then."""
    screen = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8").splitlines()[:24]
    text = " ".join(screen).lower()
    assert "in memory" in text
    assert "lost with the process" in text
    assert "at least once" in text
    assert "in declared state and in sinks that note the epoch each message counts exactly once" in text
    assert "state=" in text


@FUSED
@pytest.mark.simulated_time
async def test_C6_delivery_is_at_least_once(engine: Engine) -> None:
    """What was processed by one bolt is processed again when another one fails."""
    seen: list[object] = []
    topology = Topology("twice")
    source = topology.spout("one", ["x"])
    topology.bolt("note", partial(Note, seen), source.shuffle())
    topology.bolt("fail", fail_until(0.05, []), source.shuffle())
    running = await engine.run_to_end(topology)
    assert seen == ["x", "x"]
    assert running.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
async def test_C6_a_run_begins_with_nothing() -> None:
    """Instances, counts and dead letters of an earlier run are gone."""
    topology = Topology("fresh")
    topology.bolt("refuse", refuse, topology.spout("numbers", Counting).shuffle())
    await run_to_end(topology)
    async with topology.run(active=False) as running:
        statistics = running.statistics().components
        assert (statistics["numbers"].emitted, statistics["refuse"].executed) == (0, 0)
        assert running.dead_letters == ()


@pytest.mark.simulated_time
async def test_C6_state_lasts_for_one_run(engine: Engine) -> None:
    """A second one counts from one again."""
    seen: list[object] = []
    topology = Topology("anew")
    counts = topology.bolt("count", Count, topology.spout("words", ["a", "b", "a"]).fields())
    topology.bolt("note", partial(Note, seen), counts.shuffle())
    for _ in range(2):
        await engine.run_to_end(topology)
    assert seen == [1, 1, 2] * 2
