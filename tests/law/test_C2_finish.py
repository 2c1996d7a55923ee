"""The end of finite input (law C2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from tests.cast import AckLater, refuse
from tests.engines import FUSED, UNFUSED, Engine
from tests.helpers import now, run_to_end
from tests.law.calls import HoldAll, finishing


@FUSED
@pytest.mark.simulated_time
async def test_C2_finish_goes_downstream_and_what_it_emits_is_processed_first(engine: Engine) -> None:
    """Each bolt finishes when it has executed what the finish of the one before has emitted."""
    log: list[tuple[str, float]] = []
    logic = finishing(log)
    topology = Topology("chain")
    second = topology.bolt("first", logic, topology.spout("one", ["x"]).shuffle())
    topology.bolt("second", logic, second.shuffle())
    await engine.run_to_end(topology)
    assert [event for event, _ in log] == [
        "first gets x",
        "second gets x",
        "first finishes",
        "second gets end of first",
        "second finishes",
    ]


@pytest.mark.simulated_time
async def test_C2_a_component_finishes_after_all_its_upstreams(engine: Engine) -> None:
    """The end of a diamond waits for the longer of its two sides."""
    log: list[tuple[str, float]] = []
    logic = finishing(log)
    topology = Topology("diamond")
    source = topology.spout("one", ["x"])
    short = topology.bolt("short", logic, source.shuffle())
    long = topology.bolt("long 2", logic, topology.bolt("long 1", logic, source.shuffle()).shuffle())
    topology.bolt("last", logic, short.shuffle(), long.shuffle())
    await engine.run_to_end(topology)
    finished = [event.removesuffix(" finishes") for event, _ in log if "finishes" in event]
    assert sorted(finished) == ["last", "long 1", "long 2", "short"]
    assert finished[-1] == "last"
    assert finished.index("long 1") < finished.index("long 2")


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_source_may_yield() -> None:
    """It waits for the end of a generator that sleeps."""
    log: list[tuple[str, float]] = []

    async def late() -> AsyncIterator[str]:
        yield "x"
        await asyncio.sleep(30)

    topology = Topology("late")
    topology.bolt("bolt", finishing(log), topology.spout("late", late).shuffle())
    await run_to_end(topology)
    assert log == [("bolt gets x", 0), ("bolt finishes", 31)]


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_source_is_only_paused() -> None:
    """A spout that may have no more messages pending goes on when they are acked."""
    log: list[tuple[str, float]] = []

    class Finishes(AckLater):
        def finish(self, out: Collector[int]) -> None:
            log.append(("finish", now()))

    topology = Topology("paused", max_spout_pending=2)
    topology.bolt("later", partial(Finishes, 10), topology.spout("numbers", range(6)).shuffle())
    await run_to_end(topology)
    assert log == [("finish", 30)]


@pytest.mark.simulated_time
async def test_C2_no_finish_while_a_replay_waits(engine: Engine) -> None:
    """It is called when the message that failed has been executed again."""
    log: list[tuple[str, float]] = []

    class FailFirst(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            if tup.attempt == 1:
                raise ValueError(tup.value)
            log.append(("executed", now()))

        def finish(self, out: Collector[int]) -> None:
            log.append(("finish", now()))

    topology = Topology("waits", replay_delay=10.0)
    topology.bolt("fail", FailFirst, topology.spout("numbers", [1]).shuffle())
    await engine.run_to_end(topology)
    assert [event for event, _ in log] == ["executed", "finish"]


@UNFUSED
@pytest.mark.simulated_time
async def test_C2_finish_is_called_on_all_tasks_once(engine: Engine) -> None:
    """Also on those that never got a tuple; and not again where nothing came since."""
    log: list[tuple[str, float]] = []
    topology = Topology("tasks")
    topology.bolt("bolt", finishing(log), topology.spout("one", ["x"]).shuffle(), parallelism=3)
    await engine.run_to_end(topology)
    assert [event for event, _ in log].count("bolt finishes") == 3


@pytest.mark.simulated_time
async def test_C2_finish_is_called_where_no_tuple_ever_came(engine: Engine) -> None:
    """Behind an empty source a bolt can still emit its end."""
    log: list[tuple[str, float]] = []
    topology = Topology("empty")
    first = topology.bolt("first", finishing(log), topology.spout("none", []).shuffle())
    topology.bolt("second", finishing(log), first.shuffle())
    await engine.run_to_end(topology)
    assert [event for event, _ in log] == ["first finishes", "second gets end of first", "second finishes"]


@pytest.mark.simulated_time
async def test_C2_a_cycle_finishes_as_one_component() -> None:
    """Its bolts finish together, and what they emit then goes round before the next component finishes."""
    log: list[tuple[str, float]] = []

    class Once(finishing(log)):  # type: ignore[misc]
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.log.append((f"{self.name} gets {tup.value}", now()))
            if len(tup.value) < 9:
                out.emit(f"{tup.value}!")

        def finish(self, out: Collector[str]) -> None:
            self.log.append((f"{self.name} finishes", now()))
            if [event for event, _ in self.log].count(f"{self.name} finishes") == 1:
                out.emit("finish")

    topology = Topology("cycle")
    there = topology.bolt("there", Once, topology.spout("one", ["start"]).shuffle())
    back = topology.bolt("back", Once, there.shuffle())
    topology.connect(there, back.shuffle())
    topology.bolt("after", finishing(log), back.shuffle())
    await run_to_end(topology)
    events = [event for event, _ in log]
    first = events.index("there finishes")
    assert events[first + 1] == "back finishes"
    assert "back gets finish!!" in events[: events.index("after finishes")]
    assert events[-1] == "after finishes"


@pytest.mark.simulated_time
async def test_C2_what_finish_emits_joins_the_trees_of_held_inputs(engine: Engine) -> None:
    """When the sum is refused downstream, all the messages that it was made of fail."""
    topology = Topology("joined")
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("refuse", refuse, total.shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2, 3]


@pytest.mark.simulated_time
async def test_C2_what_finish_emits_unanchored_is_processed_and_untracked(engine: Engine) -> None:
    """The sum is executed, and its failure fails nobody."""

    class Unanchored(HoldAll):
        anchored = False

    topology = Topology("unanchored")
    total = topology.bolt("sum", Unanchored, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("refuse", refuse, total.shuffle())
    running = await engine.run_to_end(topology)
    statistics = running.statistics().components
    assert (statistics["refuse"].failed, statistics["numbers"].failed) == (1, 0)
    assert statistics["numbers"].acked == 3


@pytest.mark.simulated_time
async def test_C2_a_later_replay_is_executed_and_finish_called_again(engine: Engine) -> None:
    """The sum fails downstream at first; its inputs return, and the second sum is acked."""
    sums: list[int] = []

    def fail_first(value: int) -> None:
        sums.append(value)
        if len(sums) == 1:
            raise ValueError(value)

    topology = Topology("again")
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", [1, 2, 3]).shuffle())
    topology.bolt("fail", fail_first, total.shuffle())
    running = await engine.run_to_end(topology)
    assert sums[0] == 6
    assert sum(sums[1:]) == 6
    assert running.statistics().components["numbers"].acked == 3
