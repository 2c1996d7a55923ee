"""Storm's cases of state checkpointing (S), on cells: a prepare and its commit are one step here."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Collector, KeyedBolt, TaskContext, Topology, Tuple, Value
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable
from stormlet.state.memory import MemoryStore
from tests.conformance.epochs import Count, kept, whole_run

pytestmark = pytest.mark.simulated_time


class Cells:
    """The cells of one state, as a call sees them."""

    def __init__(self) -> None:
        self.state = State(StateId("bolt", "state"), Declared("value", int, key=str))
        table = self.state.tables[0]
        assert isinstance(table, ValueTable)
        self.table = table

    def put(self, **values: int | None) -> None:
        for key, value in values.items():
            self.table.put(key, value)

    def values(self) -> tuple[int | None, ...]:
        """Those of a, b and c."""
        return tuple(self.table.get(key) for key in "abc")


def test_S1_put_and_delete() -> None:
    """What is deleted is absent."""
    cells = Cells()
    cells.put(a=1, b=2)
    assert cells.values() == (1, 2, None)
    cells.put(a=None)
    assert cells.values() == (None, 2, None)


def test_S2_roll_back_before_the_first_commit() -> None:
    """Nothing is left."""
    cells = Cells()
    cells.put(a=1, b=2)
    cells.put(c=3)
    assert cells.values() == (1, 2, 3)
    cells.state.roll_back()
    assert cells.values() == (None, None, None)


def test_S2_roll_back_after_commits() -> None:
    """What was committed is left, each time; deletions are committed and rolled back as well."""
    cells = Cells()
    cells.put(a=1, b=2)
    cells.state.seal()
    cells.put(c=3)
    assert cells.values() == (1, 2, 3)
    cells.state.roll_back()
    assert cells.values() == (1, 2, None)
    cells.put(c=3)
    cells.put(b=None, c=None)
    assert cells.values() == (1, None, None)
    cells.state.seal()
    assert cells.values() == (1, None, None)
    cells.put(b=2, c=3)
    assert cells.values() == (1, 2, 3)
    cells.state.roll_back()
    assert cells.values() == (1, None, None)


def test_T1_two_roll_backs_in_a_row() -> None:
    """What is put between them does not stay: in Storm's state in memory it does."""
    cells = Cells()
    cells.put(a=1)
    cells.state.seal()
    for _ in range(2):
        cells.put(a=2, b=2)
        cells.state.roll_back()
        assert cells.values() == (1, None, None)


@pytest.mark.simulated_time
async def test_S5_nothing_is_executed_before_state_is_there() -> None:
    """Inputs wait while the bolt prepares itself, and are executed once; their state is that of the last run."""
    seen: list[tuple[float, str, int]] = []

    class Late(Count):
        async def prepare(self, context: TaskContext) -> None:
            await asyncio.sleep(5)

        def execute(self, tup: Tuple[str], out: Collector[tuple[str, int]]) -> None:
            super().execute(tup, out)
            seen.append((asyncio.get_running_loop().time(), tup.value, self.total))

    store = MemoryStore("line")
    words = ["a", "b"]
    topology = Topology("late")
    topology.bolt("count", Late, topology.spout("words", words).fields())
    await whole_run(topology, store)
    words += ["a"]
    await whole_run(topology, store)
    assert [each for _, *each in seen] == [["a", 1], ["b", 1], ["a", 2]]
    assert seen[0][0] >= 5


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_S5_roll_back_and_commit_reach_the_state() -> None:
    """An epoch that fails after its inputs is rolled back once, and the state has each of them once."""
    attempts: list[str] = []
    fails = [1]

    class Noting(KeyedBolt[str, str, str]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.total += 1
            attempts.append(f"{tup.value}{self.total}")
            out.emit(tup.value)

    def after(value: str) -> None:
        if value == "b" and fails:
            fails.pop()
            raise ValueError("after it was counted")

    store = MemoryStore("line")
    topology = Topology("roll back", replay_delay=0.01, epoch_messages=2)
    counted = topology.bolt("count", Noting, topology.spout("words", ["a", "b"]).fields())
    topology.bolt("after", after, counted.shuffle())
    await whole_run(topology, store)
    assert attempts == ["a1", "b1", "a1", "b1"]
    assert kept(store) == {"a": 1, "b": 1}
