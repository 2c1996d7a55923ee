"""The engines that run a topology. A test that takes ``engine`` runs on each of them, with one set of expectations.

======================  =================================================================================
``in process``          a run on the loop of the test
``on Spark``            Spark's chain of stages without Spark, bolts fused where Spark fuses them
``on Spark in stages``  the same with an exchange before each bolt
======================  =================================================================================

Spark's chain runs on the loop of the test too, one partition after another (``tests/spark/engine/twin.py``), and its
ledger must add up.

Tests of keyed state that take ``keyed_engine`` run on these and in a naive model (``tests/naive.py``), and ask for what
is left of the state.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeAlias
from unittest.mock import patch

import pytest

from stormlet import DeadLetter, Statistics, Topology
from stormlet.core.state.commits import Append, Commit, StateId, Stored
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.spark.engine.partition.keyed.groups import blob_in, by_state
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning import layout
from stormlet.spark.engine.planning.numbering import StatePlan
from stormlet.state.memory import MemoryStore
from tests.helpers import run_to_end
from tests.naive import Model
from tests.spark.engine.twin import twin_async

States: TypeAlias = Mapping[str, Mapping[Any, Any]]


class Ended(Protocol):
    """What is left of a run."""

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The messages that were given up."""
        ...

    def statistics(self) -> Statistics:
        """The counts of all components."""
        ...


class Left(Protocol):
    """What is left of a run with keyed state."""

    @property
    def dead_letters(self) -> Sequence[Any]:
        """The messages that were given up, each with its value."""
        ...

    @property
    def states(self) -> States:
        """All keyed state, by ``component.state`` and key."""
        ...

    def executed(self, component: str) -> int:
        """The number of inputs that a bolt has executed, in all attempts."""
        ...


Epoch: TypeAlias = tuple[float, Mapping[str, Sequence[Any]]]
"""The time of an epoch, and the values of its sources."""


class KeyedEngine(Protocol):
    """One that keeps state; its text is the id of the parameter."""

    async def leave(self, topology: Topology, epochs: Sequence[Epoch] = ((0.0, {}),)) -> Left:
        """Run one epoch after another, each until everything is settled; without ``epochs`` all that the sources of the
        topology give."""
        ...


class Engine(Protocol):
    """One of them; its text is the id of the parameter."""

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run until everything is settled."""
        ...


class InProcess:
    """See above."""

    def __str__(self) -> str:
        return "in process"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run until everything is settled, and leave."""
        return await run_to_end(topology, seed=seed)

    async def leave(self, topology: Topology, epochs: Sequence[Epoch] = ((0.0, {}),)) -> Left:
        """Run each epoch in a run of its own, which begins with the state of the one before at its time."""
        loop, stored, letters, executed = (
            asyncio.get_running_loop(),
            Stored("line"),
            list[Any](),
            Counter[str](),
        )
        began = loop.time()
        for now, sources in epochs:
            await asyncio.sleep(max(0.0, began + now - loop.time()))
            store = MemoryStore("line")  # without positions, as the sources begin anew
            store.declare(stored.shapes)
            appends = [Append(id, blob) for id, blobs in stored.states.items() for blob in blobs]
            store.commit(Commit(1, 0.0, {}, appends))
            running = await run_to_end(topology, state=store, sources=sources or None)
            letters += running.dead_letters
            executed.update({id: each.executed for id, each in running.statistics().components.items()})
            stored = store.load()
        return AtRest(letters, opened(topology, stored.states, loop.time()), executed)


class OnSpark:
    """See above."""

    def __str__(self) -> str:
        return "on Spark"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run all partitions of all stages, and check the ledger."""
        run = await twin_async(topology, seed=seed)
        assert run.differences == []
        return run

    async def leave(self, topology: Topology, epochs: Sequence[Epoch] = ((0.0, {}),)) -> Left:
        """Run all partitions of all stages in each epoch, with what counts of the groups before."""
        letters, executed, rows, began = (
            list[Any](),
            Counter[str](),
            list[Row](),
            asyncio.get_running_loop().time(),
        )
        batch = len(epochs) == 1
        for number, (now, sources) in enumerate(epochs):
            plan = StatePlan(began + now, number, opens_all=number == 0)
            run = await twin_async(topology, sources, spouts=2, states=None if batch else rows, state=plan)
            assert run.differences == []
            letters += run.dead_letters
            executed.update({id: each.executed for id, each in run.statistics().components.items()})
            rows = run.left
        blobs = by_state([blob_in(row) for row in rows if row.kind == Kind.KEYED])
        return AtRest(letters, opened(topology, blobs, began + epochs[-1][0]), executed)


class InModel:
    """See above."""

    def __str__(self) -> str:
        return "in the naive model"

    async def leave(self, topology: Topology, epochs: Sequence[Epoch] = ((0.0, {}),)) -> Left:
        """Process one message after another."""
        data, letters, executed, began = None, list[Any](), Counter[str](), asyncio.get_running_loop().time()
        for now, sources in epochs:
            model = Model(topology, data, began + now)
            await model.run(sources)
            data = model.data
            letters += model.given_up
            executed.update(model.executed)
        return AtRest([SimpleNamespace(value=each) for each in letters], model.states, executed)


class AtRest:
    """See :class:`Left`."""

    def __init__(self, dead_letters: Sequence[Any], states: States, executed: Counter[str]) -> None:
        self.dead_letters = dead_letters
        self.states = {name: _times(name, each) for name, each in states.items() if each}
        self._executed = executed

    def executed(self, component: str) -> int:
        """See :meth:`Left.executed`."""
        return self._executed[component]


def _times(name: str, values: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Timers by key, without the numbers by which engines order them."""
    return {key: sorted(each) for key, each in values.items()} if name.endswith(f".{TIMERS}") else values


def opened(topology: Topology, blobs: Mapping[StateId, Sequence[bytes]], now: float) -> States:
    """All states of a topology at a time, read from blobs."""
    found: dict[str, dict[Any, Any]] = {}
    for id, declared in topology.describe().states.items():
        state = State(id, declared)
        state.load(blobs.get(id, ()))
        state.tell(now)
        found[str(id)] = dict(state.tables[0].committed_items())
    return found


class InStages(OnSpark):
    """See above."""

    def __str__(self) -> str:
        return "on Spark in stages"

    async def run_to_end(self, topology: Topology, *, seed: int = 0) -> Ended:
        """Run them with an exchange before each bolt."""
        with patch.object(layout, "_is_fused", return_value=False):
            return await super().run_to_end(topology, seed=seed)


IN_MODEL: Final = InModel()
IN_PROCESS: Final = InProcess()
ON_SPARK: Final = OnSpark()
IN_STAGES: Final = InStages()

UNFUSED: Final = pytest.mark.parametrize("engine", [IN_PROCESS, IN_STAGES], ids=str)
"""For a test of a bolt with several tasks that subscribes by shuffle: fused, it has those of its partition."""
FUSED: Final = pytest.mark.parametrize("engine", [IN_PROCESS, ON_SPARK], ids=str)
"""For a test of what happens between bolts while they run: with an exchange, one stage ends before the next begins."""


@pytest.fixture(params=[IN_PROCESS, ON_SPARK, IN_STAGES], ids=str)
def engine(request: pytest.FixtureRequest) -> Any:
    """Each engine in turn."""
    return request.param


@pytest.fixture(params=[IN_MODEL, IN_PROCESS, ON_SPARK], ids=str)
def keyed_engine(request: pytest.FixtureRequest) -> Any:
    """The naive model, a run in process, and Spark's chain of stages; with an exchange behind it, keyed state would
    count what is given up there."""
    return request.param
