"""Trident's cases (TR: the list has them as T, which are the traps here) and the examples of its documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from stormlet import (
    InvalidTopology,
    Opaque,
    Running,
    Stream,
    Topology,
    Transactional,
    opaque,
    transactional,
)
from stormlet.core.state.stored_values import value_before
from stormlet.state.memory import MemoryStore
from tests.conformance.epochs import (
    Committed,
    Count,
    EpochCount,
    EpochSum,
    KeyedSum,
    Note,
    NotePairs,
    committed,
    kept,
    whole_run,
    word_of,
)
from tests.conformance.test_storm_state import Cells

pytestmark = pytest.mark.simulated_time


def plus(*numbers: int) -> Callable[[int | None], int]:
    """All changes of one epoch at once."""
    return lambda before: (before or 0) + sum(numbers)


def test_TR1_an_opaque_value() -> None:
    """The epoch that has changed it last begins from the value before; a later one from what is there."""
    stored = Opaque(8, "v1", "v0")
    assert [value_before(stored, epoch) for epoch in (100, 9, 8)] == ["v1", "v1", "v0"]
    with pytest.raises(ValueError, match="epoch 7 comes after epoch 8"):
        value_before(stored, 7)
    assert opaque(stored, 8, lambda _: "v2") == Opaque(8, "v2", "v0")
    assert opaque(stored, 9, lambda _: "v2") == Opaque(9, "v2", "v1")


def test_TR2_an_opaque_map() -> None:
    """An epoch that comes again may bring something else."""
    first = opaque(None, 1, plus(1, 2))
    assert first.value == 3
    again = opaque(first, 1, plus(2))
    assert (value_before(first, 1), again.value) == (None, 2)
    second = opaque(again, 2, plus(3, 1))
    assert (value_before(again, 2), second.value) == (2, 6)


def test_TR3_a_transactional_map() -> None:
    """An epoch that comes again changes nothing."""
    first = transactional(None, 1, plus(1, 2))
    assert first.value == 3
    assert transactional(first, 1, plus(1, 2)) == first
    assert transactional(first, 2, plus(3, 1)).value == 7


def test_TR3_the_example_of_the_documentation() -> None:
    """Of man, dog and apple, batch 3 has man twice and dog, and was stopped after it had written dog."""
    stored = {"man": Transactional(1, 3), "dog": Transactional(3, 4), "apple": Transactional(2, 10)}
    for word, count in {"man": 2, "dog": 1}.items():
        stored[word] = transactional(stored[word], 3, plus(count))
    assert stored == {
        "man": Transactional(3, 5),
        "dog": Transactional(3, 4),
        "apple": Transactional(2, 10),
    }


def test_TR1_the_example_of_the_documentation() -> None:
    """A value of 4, before 1, by batch 2; and a count of 2."""
    stored = Opaque(2, 4, 1)
    assert opaque(stored, 3, plus(2)) == Opaque(3, 6, 4)
    assert opaque(stored, 2, plus(2)) == Opaque(2, 3, 1)


def test_TR4_a_deletion_that_comes_again() -> None:
    """Before it is repeated, the key is there."""
    cells = Cells()
    cells.put(a=1, b=2)
    cells.state.seal()
    cells.put(a=None)
    assert cells.values() == (None, 2, None)
    cells.state.roll_back()
    assert cells.values() == (1, 2, None)
    cells.put(a=None)
    cells.state.seal()
    assert cells.values() == (None, 2, None)


async def batch(running: Running, sentences: Stream[str], *given: str) -> None:
    """One batch: durable when it returns."""
    for tree in [await running.emit(sentences, each) for each in given]:
        await tree


def split(sentence: str) -> Iterator[str]:
    """Its words."""
    yield from sentence.split()


@pytest.mark.simulated_time
async def test_TR6_a_word_count_that_is_asked_between_batches() -> None:
    """It says what is durable: each batch that has come to its end, and no other one (law X3)."""
    store = MemoryStore("line")
    topology = Topology("word count")
    sentences = topology.spout("sentences")
    words = topology.bolt("split", split, sentences.shuffle())
    topology.bolt("count", Count, words.fields(), parallelism=2)
    async with topology.run(state=store) as running:
        await batch(running, sentences, "hello the man said", "the")
        assert kept(store) == {"hello": 1, "the": 2, "man": 1, "said": 1}
        await batch(running, sentences, "the man on the moon", "where are you")
        counts = kept(store)
        assert (counts["the"], counts["man"]) == (4, 2)
        assert sum(counts[word] for word in ("man", "where", "you", "the")) == 8
        await batch(running, sentences)
        await batch(running, sentences, "the the")
        assert kept(store)["the"] == 6
        await batch(running, sentences, "the foo")
        assert (kept(store)["the"], kept(store)["foo"]) == (7, 1)


async def counts_of(*sentences: str) -> list[int]:
    """How many words each of the batches has, one sentence a batch: counted in two tasks, summed up in one."""
    topology = Topology("counts", epoch_messages=1)
    words = topology.bolt("split", split, topology.spout("sentences", sentences).shuffle(), parallelism=2)
    partial = topology.bolt("count", EpochCount, words.local_or_shuffle(), parallelism=2)
    counts = committed(topology, topology.bolt("sum", EpochSum, partial.global_()))
    await whole_run(topology)
    assert [epoch for epoch, _ in counts] == list(range(1, len(sentences) + 1))
    return [count for _, count in counts]


@pytest.mark.simulated_time
async def test_TR7_a_count_of_each_batch() -> None:
    """In two tasks; the same each time, and 0 for a batch without words."""
    assert await counts_of(*["the"] * 100) == [1] * 100
    assert await counts_of("", "1 2 3 4 5 6 7 8") == [0, 8]
    assert await counts_of("the man", "aaa") == [2, 1]


@pytest.mark.simulated_time
async def test_TR7_merged_streams() -> None:
    """Words, and the length of the sentence, in one batch."""
    topology = Topology("merged", epoch_messages=1)
    source = topology.spout("sentences", ["the man", "hello"])
    words = topology.bolt("split", split, source.shuffle(), parallelism=2)
    lengths = topology.bolt("length", len, source.shuffle())
    rows: Committed = []
    topology.bolt("note", partial(Note, rows), words.shuffle(), lengths.shuffle())
    await whole_run(topology)
    found = {number: {row for epoch, row in rows if epoch == number} for number in (1, 2)}
    assert found == {1: {7, "the", "man"}, 2: {5, "hello"}}


@pytest.mark.simulated_time
async def test_TR7_two_groups_of_one_stream() -> None:
    """Each of them counts by itself."""
    topology = Topology("groups", epoch_messages=1)
    words = topology.bolt("split", split, topology.spout("sentences", ["the"]).shuffle())
    pairs = topology.bolt("pairs", lambda word: (word, 1), words.shuffle())
    rows: Committed = []
    groups = [topology.bolt(f"group {each}", KeyedSum, pairs.fields(word_of)) for each in (1, 2)]
    topology.bolt("note", partial(NotePairs, rows, {}), *(each.shuffle() for each in groups))
    await whole_run(topology)
    assert rows == [(1, ("the", 1))] * 2


@pytest.mark.parametrize("bolt", [Count, EpochCount, len])
def test_TR8_an_unknown_field(bolt: object) -> None:
    """Whatever the bolt that is grouped by it."""
    topology = Topology("unknown")
    source = topology.spout("words", ["a"], outputs=["word"])
    with pytest.raises(InvalidTopology, match="unknown"):
        topology.bolt("bolt", bolt, source.fields("unknown"))  # type: ignore[arg-type]
