"""Exceptions in user code (law B4)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Reject, Topology, TopologyCrashed, Tuple
from tests.engines import Engine


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_B4_the_instance_goes_on_after_an_exception(engine: Engine, asynchronous: bool) -> None:
    """One instance sees all the inputs; the ones it raised on are failed, the others acked."""
    made: list[object] = []

    class Odd(BasicBolt[int, int]):
        def __init__(self) -> None:
            made.append(self)

        def check(self, value: int) -> None:
            if value % 2:
                raise ValueError(value)

        async def later(self, value: int) -> None:
            self.check(value)

        def execute(self, tup: Tuple[int], out: Collector[int]) -> Awaitable[None] | None:
            return self.later(tup.value) if asynchronous else self.check(tup.value)

    topology = Topology("odd", max_attempts=1)
    topology.bolt("odd", Odd, topology.spout("numbers", range(6)).shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 3, 5]
    assert running.statistics().components["odd"].acked == 3
    assert len(made) == 1


@pytest.mark.simulated_time
async def test_B4_an_exception_is_logged_once_with_component_task_and_value(
    engine: Engine,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One record that says where it happened and on what, with the traceback."""

    def fail(value: object) -> None:
        raise ZeroDivisionError("why")

    topology = Topology("log", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("one", ["the value"]).shuffle())
    with caplog.at_level(logging.WARNING):
        await engine.run_to_end(topology)
    (record,) = [each for each in caplog.records if each.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    for part in ("fail[0]", "the value", "why"):
        assert part in record.getMessage()


class SettleAndRaise(Bolt[object, object]):
    """Acks its input and raises then."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.ack(tup)
        raise ValueError("afterwards")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_B4_an_exception_after_the_ack_is_logged_and_counted(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot fail the input any more, which stays acked."""
    topology = Topology("afterwards")
    topology.bolt("settled", SettleAndRaise, topology.spout("one", ["a"]).shuffle())
    running = await engine.run_to_end(topology)
    statistics = running.statistics().components
    assert (statistics["one"].acked, statistics["one"].failed) == (1, 0)
    assert (statistics["settled"].errors, statistics["settled"].failed) == (1, 0)
    assert "afterwards" in caplog.text


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B4_on_error_stop_crashes_the_topology(engine: Engine, concurrency: int) -> None:
    """With ``on_error="stop"`` the first exception ends the run and is its cause."""

    def fail(value: object) -> None:
        raise ZeroDivisionError(value)

    topology = Topology("stop")
    source = topology.spout("one", ["a"])
    topology.bolt("fail", fail, source.shuffle(), on_error="stop", concurrency=concurrency)
    with pytest.raises(TopologyCrashed, match=r"execute of fail\[0\]") as crash:
        await engine.run_to_end(topology)
    assert isinstance(crash.value.__cause__, ZeroDivisionError)


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B4_the_input_that_crashes_the_topology_has_failed(concurrency: int) -> None:
    """And was not acked, as its statistics say."""

    async def fail_later(value: int) -> None:
        if value == 3:
            raise ZeroDivisionError(value)

    def fail(value: int) -> None:
        if value == 3:
            raise ZeroDivisionError(value)

    topology = Topology("stop")
    source = topology.spout("numbers", [1, 2, 3])
    function = fail if concurrency == 1 else fail_later
    topology.bolt("fail", function, source.shuffle(), on_error="stop", concurrency=concurrency)
    with pytest.raises(TopologyCrashed):
        async with topology.run() as running:
            await running.finished()
    counts = running.statistics().components["fail"]
    assert (counts.executed, counts.acked, counts.failed) == (3, 2, 1)


@pytest.mark.simulated_time
async def test_B4_an_exception_in_a_batch_fails_its_unsettled_members(engine: Engine) -> None:
    """A member that was acked before stays acked; the others fail."""

    class AckFirst(BatchBolt[int, int]):
        size = 3

        def execute_batch(self, tups: Any, out: Collector[int]) -> None:
            out.ack(tups[0])
            raise Reject("the rest")

    topology = Topology("batch")
    topology.bolt("batch", AckFirst, topology.spout("numbers", range(3)).shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2]
    assert running.statistics().components["numbers"].acked == 1
