"""``stormlet.run`` for people with no loop."""

from __future__ import annotations

import asyncio
from inspect import signature
from pathlib import Path

import pytest
import uvloop

import stormlet
from stormlet import DeadLetter, InvalidConfiguration, Topology, TopologyCrashed


def seen_by(topology: Topology, values: list[int]) -> list[int]:
    """What the only bolt of a topology of these values will have seen."""
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("values", values).shuffle())
    return seen


def test_it_runs_until_all_is_settled() -> None:
    """It blocks, and returns the statistics of a finished run."""
    topology = Topology("blocking")
    seen = seen_by(topology, [1, 2, 3])
    statistics = stormlet.run(topology)
    assert seen == [1, 2, 3]
    assert statistics.components["values"].acked == 3


def test_it_runs_again() -> None:
    """A topology can be run any number of times."""
    topology = Topology("again")
    seen = seen_by(topology, [1])
    stormlet.run(topology)
    stormlet.run(topology)
    assert seen == [1, 1]


def test_the_loop_can_be_chosen() -> None:
    """The loop is the one that the factory makes."""
    loops: list[asyncio.AbstractEventLoop] = []
    topology = Topology("loops")
    topology.bolt(
        "note", lambda value: loops.append(asyncio.get_running_loop()), topology.spout("one", [1]).shuffle()
    )
    stormlet.run(topology, loop_factory=uvloop.new_event_loop)
    assert [type(loop) for loop in loops] == [uvloop.Loop]


def test_options_and_dead_letters_reach_the_run() -> None:
    """It takes what Topology.run takes."""

    def fail(value: object) -> None:
        raise ValueError("never")

    letters: list[DeadLetter] = []
    topology = Topology("letters", max_attempts=5)
    topology.bolt("fail", fail, topology.spout("one", [7]).shuffle())
    stormlet.run(topology, dead_letters=letters.append, max_attempts=1)
    assert [(letter.value, letter.attempts) for letter in letters] == [(7, 1)]
    with pytest.raises(InvalidConfiguration, match="max_atempts"):
        stormlet.run(topology, max_atempts=1)


def test_state_hooks_and_traces_reach_the_run(tmp_path: Path) -> None:
    """All that Topology.run takes stands in its signature, for editors and for those who check types."""
    assert {*signature(Topology.run).parameters} - {"self", "active"} <= {*signature(stormlet.run).parameters}
    place = tmp_path / "counts.state"
    topology = Topology("kept")
    seen_by(topology, [1])
    stormlet.run(topology, state=place)
    assert place.exists()


def test_a_crash_is_raised() -> None:
    """What crashes the topology comes out, with its cause."""

    def stop(value: object) -> None:
        raise ValueError("no")

    topology = Topology("crash")
    topology.bolt("stop", stop, topology.spout("one", [1]).shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed) as raised:
        stormlet.run(topology)
    assert isinstance(raised.value.__cause__, ValueError)


def test_inside_a_loop_it_says_what_to_write() -> None:
    """Where a loop runs already it cannot block, and says so before anything starts."""
    topology = Topology("inside")
    seen = seen_by(topology, [1])

    async def main() -> None:
        stormlet.run(topology)

    with pytest.raises(RuntimeError, match=r"async with topology\.run\(\) as running"):
        asyncio.run(main())
    assert seen == []
