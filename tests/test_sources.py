"""Other sources for the spouts of a topology: for one run, or from now on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import stormlet
from stormlet import InvalidEmit, InvalidTopology, Spout, Stream, TaskContext, Topology, TopologyCrashed
from tests.cast import Counting
from tests.helpers import run_to_end


def numbers() -> Iterator[int]:
    """What the topology has without replacement."""
    yield from (1, 2, 3)


class Sums:
    """A topology that keeps what comes out of its spout."""

    def __init__(self, source: object = numbers, **options: object) -> None:
        self.seen: list[int] = []
        self.topology = Topology("sums")
        self.numbers: Stream[int] = self.topology.spout("numbers", source, **options)  # type: ignore[call-overload]
        self.topology.bolt("see", self.seen.append, self.numbers.shuffle())


@pytest.mark.simulated_time
@pytest.mark.parametrize("by_stream", [True, False])
async def test_a_run_takes_other_sources_and_leaves_the_topology_as_it_is(by_stream: bool) -> None:
    """The sources of one run are named by stream or by id, and the next run has those of the topology again."""
    sums = Sums()
    spout = sums.numbers if by_stream else "numbers"
    await run_to_end(sums.topology, sources={spout: [10, 20]})
    await run_to_end(sums.topology)
    assert sums.seen == [10, 20, 1, 2, 3]


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [range(3), (n for n in range(3)), Counting, lambda: Counting()])
async def test_every_kind_of_source_may_stand_in(source: object) -> None:
    """An iterable, an iterator, a spout class or its factory stands in for a generator function."""
    sums = Sums()
    await run_to_end(sums.topology, sources={"numbers": source})
    assert sums.seen == [0, 1, 2]


@pytest.mark.simulated_time
async def test_a_spout_may_be_fed_by_hand_instead() -> None:
    """With None for its source, running.emit alone feeds the spout."""
    sums = Sums()
    async with sums.topology.run(sources={"numbers": None}) as running:
        await (await running.emit(sums.numbers, 5))
    assert sums.seen == [5]


@pytest.mark.simulated_time
async def test_set_source_holds_for_later_runs_and_keeps_the_wiring() -> None:
    """A fed spout gets its source later; the bolts that were wired to it meanwhile stay wired."""
    sums = Sums(None)
    sums.topology.set_source(sums.numbers, [4, 5])
    await run_to_end(sums.topology)
    await run_to_end(sums.topology)
    assert sums.seen == [4, 5, 4, 5]


@pytest.mark.simulated_time
async def test_declared_outputs_hold_for_another_source() -> None:
    """What a stand-in emits must fit the streams that the spout declares."""
    topology = Topology("pairs")
    topology.spout("pairs", iter([]), outputs=["left", "right"])
    with pytest.raises(TopologyCrashed) as crash:
        await run_to_end(topology, sources={"pairs": [(1, 2), (3,)]})
    assert isinstance(crash.value.__cause__, InvalidEmit)


def share(context: TaskContext) -> Iterator[int]:
    """Each task yields its own number."""
    yield context.task_index


@pytest.mark.simulated_time
async def test_a_source_that_cannot_be_shared_gets_one_task() -> None:
    """A list for a spout of three tasks is emitted once, while a generator that can share keeps the three."""
    sums = Sums(share, parallelism=3)
    await run_to_end(sums.topology, sources={"numbers": [8, 9]})
    assert sums.seen == [8, 9]
    running = await run_to_end(sums.topology, sources={"numbers": share})
    assert sorted(sums.seen[2:]) == [0, 1, 2]
    assert len(running.statistics().components["numbers"].tasks or ()) == 3


@pytest.mark.simulated_time
async def test_an_iterator_is_used_up_by_one_run_as_any_other() -> None:
    """A one-shot iterator that stood in once is refused the second time (law S8)."""
    sums, once = Sums(), iter([1])
    await run_to_end(sums.topology, sources={"numbers": once})
    with pytest.raises(InvalidTopology, match="was used by an earlier run"):
        await run_to_end(sums.topology, sources={"numbers": once})


@pytest.mark.simulated_time
async def test_the_iterator_that_was_replaced_is_not_used_up() -> None:
    """Only what a run reads is spent: the topology's own iterator is still there afterwards."""
    sums = Sums(iter([1, 2]))
    await run_to_end(sums.topology, sources={"numbers": [9]})
    await run_to_end(sums.topology)
    assert sums.seen == [9, 1, 2]


@pytest.mark.parametrize("name", ["see", "nubmers", 7])
def test_who_is_no_spout_is_named_with_those_that_are(name: object) -> None:
    """A misspelt id, a bolt and another object are refused, and the message lists the spouts."""
    with pytest.raises(InvalidTopology, match=f"{name!r} is neither .* spouts: 'numbers'"):
        Sums().topology.run(sources={name: []})  # type: ignore[dict-item]


def test_a_stream_of_another_topology_is_refused() -> None:
    """The same id in another topology is another spout."""
    one, other = Sums(), Sums()
    with pytest.raises(InvalidTopology, match="neither the id nor a stream"):
        one.topology.set_source(other.numbers, [1])


@pytest.mark.parametrize("source", ["text", 3, Counting()])
def test_what_is_no_source_is_refused_at_once(source: object) -> None:
    """The same objects are refused as by Topology.spout, with the same words."""
    sums = Sums()
    with pytest.raises(InvalidTopology, match="spout 'numbers'"):
        sums.topology.run(sources={"numbers": source})
    with pytest.raises(InvalidTopology, match="spout 'numbers'"):
        sums.topology.set_source(sums.numbers, source)  # type: ignore[arg-type]


class Incomplete(Spout[int]):
    """Forgets next_tuple."""


def test_the_code_of_another_source_is_checked_too() -> None:
    """A spout class without next_tuple is refused before anything runs."""
    with pytest.raises(InvalidTopology, match="Incomplete defines no next_tuple"):
        Sums().topology.run(sources={"numbers": Incomplete})


def test_run_without_a_loop_takes_other_sources() -> None:
    """stormlet.run hands sources on."""
    sums = Sums()
    stormlet.run(sums.topology, sources={sums.numbers: [6]})
    assert sums.seen == [6]
