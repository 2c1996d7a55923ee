"""Storm's cases of groupings that show in a running topology: G3, G5, G6, G10 and G11, from its
ShuffleGroupingTest, GroupingIntegrationTest, MessagingTest and Task.java.

G1, G7 and G8 are in ``tests/core/test_groupings.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    DirectStream,
    InvalidEmit,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    Tuple,
)
from stormlet.core.groupings import One, Shuffle
from tests.cast import Ack, given
from tests.conformance.kit import Count, GlobalCount, collect, mocked, of_tasks, settle
from tests.engines import UNFUSED, Engine


@pytest.mark.parametrize("tasks", [7, 1000])
def test_G3_shuffle_is_even_with_many_tasks(tasks: int) -> None:
    """After 50 tuples a task each has got exactly 50: no load is needed to make it even."""
    chooser = Shuffle().chooser(range(1, tasks + 1), Random(3))
    assert isinstance(chooser, One)
    assert Counter(chooser.pick("a") for _ in range(tasks * 50)) == dict.fromkeys(range(tasks), 50)


@pytest.mark.simulated_time
async def test_G5_field_grouping(engine: Engine) -> None:
    """Bytes are keys by their content: 24 times a and b, from four spout tasks to six, are counted in one
    place each."""
    topology = Topology("G5")
    words = topology.spout(
        "1", mocked(*((bytes([letter]),) for letter in b"ab" * 24)), parallelism=4, outputs=["word"]
    )
    seen = collect(topology, topology.bolt("2", Count, words.fields("word"), parallelism=6))
    await engine.run_to_end(topology)
    assert Counter(seen) == Counter(((letter,), count) for letter in (b"a", b"b") for count in range(1, 25))


class ToTheFirst:
    """Storm's NGrouping: every tuple to the first n tasks."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._targets: Sequence[int] = ()

    def prepare(self, targets: Sequence[int]) -> None:
        self._targets = targets[: self._n]

    def choose(self, value: object) -> Sequence[int]:
        return self._targets


@pytest.mark.simulated_time
async def test_G6_custom_groupings(engine: Engine) -> None:
    """A grouping to two of four tasks makes a, a, b, b, one to three of six makes three of each."""
    topology = Topology("G6")
    words = topology.spout("1", ["a", "b"])
    twos = topology.bolt("2", str.lower, words.custom(ToTheFirst(2)), parallelism=4)
    threes = topology.bolt("3", str.lower, words.custom(ToTheFirst(3)), parallelism=6)
    seen = collect(topology, twos), collect(topology, threes)
    running = await engine.run_to_end(topology)
    assert tuple(map(Counter, seen)) == ({"a": 2, "b": 2}, {"a": 3, "b": 3})
    assert [each.executed for each in of_tasks(running, "3")] == [2, 2, 2, 0, 0, 0]


@UNFUSED
@pytest.mark.simulated_time
@pytest.mark.parametrize(("spouts", "bolts"), [(2, 6), (1, 10)])
async def test_G10_everything_arrives(engine: Engine, spouts: int, bolts: int) -> None:
    """Twenty-four tuples give twenty-four outputs, however many tasks there are on either side."""
    topology = Topology("G10")
    words = topology.spout("1", mocked(*("a", "b") * 12), parallelism=spouts)
    seen = collect(topology, topology.bolt("2", GlobalCount, words.shuffle(), parallelism=bolts))
    running = await engine.run_to_end(topology)
    assert len(seen) == 24
    assert sum(each.executed for each in of_tasks(running, "2")) == 24
    assert Counter(seen)[1] == min(bolts, 24)


class EmitsOnce(Spout[str]):
    """Emits one value and keeps what came of it: the tasks it reached, or the error."""

    def __init__(self, stream: str = "default", task: int | None = None, index: int = 0) -> None:
        self.came_of_it: list[object] = []
        self._stream = stream
        self._task = task

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if self.came_of_it:
            return
        try:
            self.came_of_it.append(out.emit("a", stream=self._stream, task=self._task, message_id=1))
        except InvalidEmit as error:
            self.came_of_it.append(str(error))


class NotesItsTask(BasicBolt[str, str]):
    """Emits the value with the id of its task."""

    def prepare(self, context: TaskContext) -> None:
        self._task = context.task

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(f"{tup.value} at {self._task}")


async def emitted(spout: EmitsOnce, outputs: object) -> tuple[list[object], list[str]]:
    """What came of the emit, and what arrived: ackers have task 1, the spout 2, direct bolt 3 to 5, other 6."""
    topology = Topology("G11")
    stream = topology.spout("1", given(spout), outputs=outputs)
    inputs = [stream.named(name) for name in stream.outputs]
    direct, shuffled = inputs[0], inputs[-1]
    receivers = topology.bolt("2", NotesItsTask, direct.direct(), parallelism=3)
    if shuffled is not direct:
        topology.bolt("3", Ack, shuffled.shuffle())
    seen = collect(topology, receivers)
    async with topology.run():
        await settle()
    return spout.came_of_it, seen


@pytest.mark.simulated_time
@pytest.mark.parametrize("task", [3, 4, 5])
async def test_G11_direct(task: int) -> None:
    """A direct emit reaches the task that it names, and says so."""
    assert await emitted(EmitsOnce(task=task), DirectStream()) == ([(task,)], [f"a at {task}"])


@pytest.mark.simulated_time
async def test_G11_regular_emit_on_a_direct_stream() -> None:
    """It is refused, with the tasks that could be named."""
    (error,), seen = await emitted(EmitsOnce(), DirectStream())
    assert (
        error
        == "'1' emits on stream 'default', which is declared direct; name the receiver with task=, one of [3, 4, 5]"
    )
    assert seen == []


@pytest.mark.simulated_time
async def test_G11_direct_emit_to_a_regular_subscriber() -> None:
    """On a stream that is not direct no task can be named."""
    (error,), seen = await emitted(EmitsOnce("b", task=6), {"default": DirectStream(), "b": None})
    assert str(error).startswith("'1' emits to task 6 on stream 'b', which is not declared direct")
    assert seen == []


@pytest.mark.simulated_time
@pytest.mark.parametrize("task", [1, 2, 6, 77])
async def test_G11_direct_emit_to_a_task_that_does_not_subscribe(task: int) -> None:
    """It is refused, with the tasks that do (Storm: emitted, and delivered nowhere)."""
    (error,), seen = await emitted(EmitsOnce(task=task), DirectStream())
    assert str(error).endswith("'default', which does not subscribe to it; those that do: [3, 4, 5]")
    assert seen == []
