"""Sources that can and cannot be shared or run again (law S8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stormlet import BatchBolt, InvalidTopology, TaskContext, Topology
from tests.cast import Counting, Forget, Ignore, ignore
from tests.engines import IN_PROCESS, UNFUSED, Engine
from tests.helpers import run_to_end


def some() -> Iterator[int]:
    """A generator function that knows nothing of its task."""
    yield 1


async def some_async() -> AsyncIterator[int]:
    """The same, asynchronous."""
    yield 1


@pytest.mark.parametrize("source", [some, some_async, [1, 2], iter([1, 2]), some_async()])
def test_S8_a_source_that_cannot_be_shared_is_refused_for_several_tasks(source: object) -> None:
    """Without the task context every task would yield the same values; the message says how to share."""
    topology = Topology("shared")
    with pytest.raises(InvalidTopology, match=r"'source'.*parallelism=2.*context"):
        topology.spout("source", source, parallelism=2)  # type: ignore[call-overload]
    topology.spout("source", source, parallelism=1)  # type: ignore[call-overload]


def share(context: TaskContext) -> Iterator[int]:
    """The share of one task."""
    yield from range(context.task_index, 10, context.parallelism)


async def share_async(context: TaskContext) -> AsyncIterator[int]:
    """The same, asynchronous."""
    for value in share(context):
        yield value


async def seen_of(engine: Engine, source: Any) -> list[int]:
    """The values that three tasks of a source give."""
    seen: list[int] = []
    topology = Topology("share")
    topology.bolt("note", seen.append, topology.spout("source", source, parallelism=3).shuffle())
    await engine.run_to_end(topology)
    return sorted(seen)


@pytest.mark.simulated_time
async def test_S8_a_generator_that_takes_the_context_shares_the_work(engine: Engine) -> None:
    """Each of three tasks yields the values that its index tells it to."""
    assert await seen_of(engine, share) == list(range(10))


@pytest.mark.simulated_time
async def test_S8_an_asynchronous_generator_shares_the_work_too() -> None:
    """In the same way."""
    assert await seen_of(IN_PROCESS, share_async) == list(range(10))


@pytest.mark.simulated_time
@pytest.mark.parametrize("make", [lambda: iter([1, 2]), some, some_async])
async def test_S8_a_one_shot_iterator_is_refused_at_a_second_run(make: Callable[[], Iterator[int]]) -> None:
    """The first run used it up; the second one says so instead of finishing with nothing."""
    topology = Topology("once")
    topology.bolt("ignore", ignore, topology.spout("source", make()).shuffle())
    await run_to_end(topology)
    with pytest.raises(InvalidTopology, match=r"'source'.*iterator"):
        await run_to_end(topology)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [[1, 2, 3], range(3)])
async def test_S8_a_source_that_can_start_again_does(engine: Engine, source: object) -> None:
    """Lists and ranges give their values in every run."""
    await start_twice(engine, source)


@pytest.mark.simulated_time
async def test_S8_a_factory_of_spouts_makes_another_one_for_every_run() -> None:
    """In the same way."""
    await start_twice(IN_PROCESS, lambda: Counting())


async def start_twice(engine: Engine, source: object) -> None:
    """Run a source of three values two times."""
    topology = Topology("again")
    topology.bolt("ignore", ignore, topology.spout("source", source).shuffle())  # type: ignore[call-overload]
    for _ in range(2):
        ended = await engine.run_to_end(topology)
        assert ended.statistics().components["ignore"].executed == 3


class Batch(BatchBolt[object, object]):
    """Does nothing."""


def test_S8_an_instance_of_a_spout_is_refused() -> None:
    """The message says that the class or a factory is wanted."""
    with pytest.raises(
        InvalidTopology, match=r"'source'.*instance of its own.*class Counting, or its arguments"
    ):
        Topology("instance").spout("source", Counting())  # type: ignore[call-overload]


@pytest.mark.parametrize("instance", [Forget(), Ignore(), Batch()])
def test_S8_an_instance_of_a_bolt_is_refused(instance: object) -> None:
    """All three kinds of bolts need an instance per task, so that none can be handed in."""
    topology = Topology("instance")
    words = topology.spout("words", ["a"])
    with pytest.raises(InvalidTopology, match=r"'bolt'.*instance of its own.*or its arguments with it"):
        topology.bolt("bolt", instance, words.shuffle())  # type: ignore[call-overload]


@UNFUSED
@pytest.mark.simulated_time
async def test_S8_a_class_and_a_factory_make_an_instance_per_task(engine: Engine) -> None:
    """Tasks of one component share no instance."""
    made: list[object] = []

    def factory() -> Ignore:
        made.append(Ignore())
        return made[-1]  # type: ignore[return-value]

    topology = Topology("factory")
    topology.bolt("bolt", factory, topology.spout("words", ["a"]).shuffle(), parallelism=3)
    await engine.run_to_end(topology)
    assert len({id(each) for each in made}) == 3
