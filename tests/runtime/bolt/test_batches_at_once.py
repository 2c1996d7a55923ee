"""Batches that are executed while others are collected (``BatchBolt.at_once``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from stormlet import BatchBolt, Collector, InvalidTopology, Topology, TopologyCrashed, Tuple
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Beside(BatchBolt[int, str]):
    """Takes a second for two values; notes when each batch began, and those that ended."""

    size = 2
    within = 50.0
    at_once = 2

    def __init__(self, wrong: Sequence[int] = ()) -> None:
        self.wrong = list(wrong)
        self.began: list[tuple[list[int], float]] = []
        self.ended: list[list[int]] = []

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[str]) -> None:
        """Emit once; raise once for each of the wrong values."""
        values = [tup.value for tup in tups]
        self.began.append((values, now()))
        await asyncio.sleep(1.0)
        out.emit(f"{values}")
        for value in values:
            if value in self.wrong:
                self.wrong.remove(value)
                raise LookupError(value)
        self.ended.append(values)


def writing(bolt: BatchBolt[int, Any], values: Any = (1, 2, 3, 4, 5, 6, 7), **options: Any) -> Topology:
    topology = Topology("beside", message_timeout=None, replay_delay=0.0)
    topology.bolt("write", lambda: bolt, topology.spout("values", values).shuffle(), **options)
    return topology


async def test_so_many_are_executed_at_a_time() -> None:
    """Two here; then inputs wait for the end of one. The rest is executed when nothing runs that could bring more."""
    bolt = Beside()
    running = await run_to_end(writing(bolt))
    assert bolt.began == [([1, 2], 0.0), ([3, 4], 0.0), ([5, 6], 1.0), ([7], 2.0)]
    assert running.statistics().components["values"].acked == 7
    assert running.statistics().components["write"].acked == 7


async def test_nothing_is_acked_before_its_batch_has_ended() -> None:
    """Inputs are held meanwhile."""
    async with writing(Beside(), [1, 2, 3, 4]).run() as running:
        await asyncio.sleep(0.5)
        assert running.statistics().components["write"].pending == 4
        await asyncio.sleep(1.0)
        assert running.statistics().components["write"].pending == 0
        await running.finished()


async def test_each_batch_has_anchors_of_its_own() -> None:
    """What it emits belongs to the trees of its members, whatever else is executed."""
    topology = Topology("anchored")
    spout = topology.spout("values")
    written = topology.bolt("write", Beside, spout.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(spout, number, collect=written) for number in (1, 2, 3, 4)]
        assert [await tree for tree in trees] == [["[1, 2]"], ["[1, 2]"], ["[3, 4]"], ["[3, 4]"]]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_batch_that_fails_leaves_the_others_alone() -> None:
    """Its members come again, and only those."""
    bolt = Beside(wrong=[2])
    running = await run_to_end(writing(bolt, [1, 2, 3, 4]))
    assert bolt.ended == [[3, 4], [1, 2]]
    values = running.statistics().components["values"]
    assert (values.failed, values.acked) == (2, 4)


async def test_a_batch_that_fails_can_stop_the_topology() -> None:
    """As where it is executed alone (``on_error="stop"``)."""
    with pytest.raises(TopologyCrashed, match="LookupError"):
        await run_to_end(writing(Beside(wrong=[2]), on_error="stop"))


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_task_that_dies_cancels_its_batches() -> None:
    """None of them goes on beside the next instance, and their members come again."""
    made: list[Beside] = []

    def make() -> Beside:
        made.append(Beside())
        return made[-1]

    topology = Topology("dying", replay_delay=0.0)
    topology.bolt("write", make, topology.spout("values", [1, 2, 3, 4]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        running.kill("write")
        await running.finished()
    assert [sorted(chain.from_iterable(bolt.ended)) for bolt in made] == [[], [1, 2, 3, 4]]


async def test_a_batch_that_ended_with_its_task_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Two raise at once, and the task dies of the first; the exception of the second is told all the same."""
    bolt = Beside(wrong=[1, 3])
    await run_to_end(writing(bolt, [1, 2, 3, 4], on_error="restart"))
    raised = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(each) for each in raised if isinstance(each, LookupError)] == ["1", "3"]


class Cancelled(Beside):
    """Somebody cancels the first batch."""

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[str]) -> None:
        """It is this one."""
        if not self.began:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_later(0.5, task.cancel)
        await super().execute_batch(tups, out)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_batch_that_somebody_else_cancels_fails() -> None:
    """Its members come again, to the same instance."""
    bolt = Cancelled()
    running = await run_to_end(writing(bolt, [1, 2]))
    assert bolt.ended == [[1, 2]]
    counts = running.statistics().components
    assert (counts["values"].failed, counts["write"].restarts) == (2, 0)


async def test_a_block_that_is_left_cancels_what_is_under_way() -> None:
    """And waits for its end."""
    bolt = Beside()

    async def leave() -> None:
        async with writing(bolt).run():
            await asyncio.sleep(0.5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await leave()
    assert bolt.ended == []
    assert now() == 0.5


async def test_nothing_is_flushed_while_a_batch_is_executed() -> None:
    """What it settles may bring more: of three messages that may be pending, the third waits for the other two."""
    bolt = Beside()
    await run_to_end(writing(bolt, [1, 2, 3, 4]), max_spout_pending=3)
    assert [values for values, _ in bolt.began] == [[1, 2], [3, 4]]


class AtOnce(BatchBolt[int, None]):
    """Returns at once."""

    size = 1
    at_once = 3

    def __init__(self) -> None:
        self.values: list[int] = []

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Note the values."""
        self.values += [tup.value for tup in tups]


async def test_batches_that_need_not_be_awaited() -> None:
    """They may be executed at once, too."""
    bolt = AtOnce()
    running = await run_to_end(writing(bolt, [1, 2, 3, 4]))
    assert bolt.values == [1, 2, 3, 4]
    assert running.statistics().components["values"].acked == 4


@pytest.mark.parametrize("at_once", [0, True, 1.5])
async def test_a_number_that_is_none(at_once: Any) -> None:
    """The start is refused."""
    bolt = Beside()
    bolt.at_once = at_once
    with pytest.raises(InvalidTopology, match=r"bolt 'write': at_once= is how many .*, not " + str(at_once)):
        await run_to_end(writing(bolt))


@pytest.mark.parametrize("at_once", [2, 3])
async def test_with_concurrency_no_more_batches_overlap_and_none_is_forgotten(at_once: int) -> None:
    """Several calls wait for a place then, each with a full batch, and go on one after another (law B7)."""
    bolt = Beside()
    bolt.at_once = at_once
    running = await run_to_end(writing(bolt, range(20), concurrency=4))
    assert len(bolt.began) == len(bolt.ended) == 10
    times = [time for _, time in bolt.began]
    assert max(map(times.count, times)) == at_once
    assert running.statistics().components["values"].acked == 20


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_batches_that_wait_for_a_place_come_again_when_their_task_dies() -> None:
    """As all that it has."""
    bolt = Beside()
    async with writing(bolt, range(20), concurrency=4).run() as running:
        await asyncio.sleep(0.5)
        running.kill("write")
        await running.finished()
        assert running.statistics().components["values"].acked == 20
    assert sorted(chain.from_iterable(bolt.ended)) == list(range(20))


async def test_with_concurrency_batches_are_executed_in_their_order() -> None:
    """No call takes the place that another one has waited for, however long the load lasts."""
    bolt = Beside()
    bolt.size = 1
    await run_to_end(writing(bolt, range(40), concurrency=4))
    assert [values for values, _ in bolt.began] == [[number] for number in range(40)]


@pytest.mark.parametrize("lowered", [0, 1])
async def test_a_number_that_is_lowered_while_calls_wait_leaves_none_of_them_behind(lowered: int) -> None:
    """They go on one after another then."""
    bolt = Beside()
    async with writing(bolt, range(20), concurrency=4).run() as running:
        await asyncio.sleep(0.5)
        bolt.at_once = lowered
        await running.finished()
        assert running.statistics().components["values"].acked == 20
        assert running.statistics().components["values"].failed == 0
