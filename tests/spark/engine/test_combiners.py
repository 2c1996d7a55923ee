"""Bolts with a ``merge``: inputs with equal keys become one before they are sent to another stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from stormlet import BasicBolt, Collector, InvalidTopology, Reject, Topology, TopologyCrashed, Tuple
from stormlet.spark.engine.planning.refusals import check_batch
from stormlet.testing import complete
from tests.spark.engine.twin import Twin, twin

TEXT = ["the sun was shining on the sea", "shining with all his might", "the sea"] * 1000
WORDS = 14 * 1000


class Some(msgspec.Struct, frozen=True, order=True):
    """A number of equal words."""

    word: str
    count: int = 1


class Total(BasicBolt[Some, Some]):
    """Adds up."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    @staticmethod
    def merge(one: Some, other: Some) -> Some:
        """Both together."""
        return Some(one.word, one.count + other.count)

    def execute(self, tup: Tuple[Some], out: Collector[Some]) -> None:
        """Add some."""
        if tup.value.word == "might":
            raise Reject("perhaps")
        self.counts[tup.value.word] += tup.value.count

    def finish(self, out: Collector[Some]) -> None:
        """The totals."""
        for word, count in self.counts.items():
            out.emit(Some(word, count))


class Each(Total):
    """Gets each input by itself."""

    merge: Any = None


def words(line: str) -> Iterator[Some]:
    """Each counts once."""
    return map(Some, line.split())


def counting(logic: Any, *, field: Any = "word") -> Topology:
    topology = Topology("words", replay_delay=0)
    split = topology.bolt("split", words, topology.spout("lines", TEXT).shuffle(), outputs=Some)
    topology.bolt("total", logic, split.fields(field), parallelism=2)
    return topology


def sent(run: Twin) -> int:
    """Tuples that went from one stage to another."""
    return sum(line.emitted for line in run.lines)


def test_fewer_tuples_make_the_same_totals() -> None:
    """One for each word and producer task, where each word had one before."""
    merged, each = twin(counting(Total)), twin(counting(Each))
    assert sorted(merged.emitted("total")) == sorted(each.emitted("total"))
    assert sent(each) == WORDS
    assert sent(merged) < 40
    assert merged.differences == []


def test_a_merged_input_that_is_given_up_belongs_to_all_its_messages() -> None:
    """As each of them would have been given up by itself."""
    run = twin(counting(Total))
    there = complete(counting(Total))
    assert sorted(each.value for each in run.outcomes if not each.acked) == sorted(
        letter.value for letter in there.dead_letters
    )


def test_a_partial_and_a_factory_are_looked_into() -> None:
    """The class that makes the bolt says it."""

    def made() -> Total:
        return Total()

    for logic in (partial(Total), made):
        assert sent(twin(counting(logic))) < 40


def test_keys_that_python_cannot_look_up_go_by_themselves() -> None:
    """A list is a key, and no key of a dict."""
    run = twin(counting(Total, field=lambda some: [some.word]))
    assert sent(run) == WORDS


def test_a_merge_that_raises_is_named() -> None:
    """There is no tuple to fail for it, so the run crashes."""

    class Wrong(Total):
        @staticmethod
        def merge(one: Some, other: Some) -> Some:
            raise ArithmeticError("cannot add")

    with pytest.raises(TopologyCrashed, match="merge of total raised ArithmeticError"):
        twin(counting(Wrong))


def test_a_merge_that_does_not_take_two_inputs_is_refused() -> None:
    """It says how to write it."""
    with pytest.raises(
        InvalidTopology, match="bolt 'total' has a merge that does not take two inputs; write @static"
    ):
        check_batch(counting(Method).describe())


class Method(Total):
    """Has a method where a static method should be."""

    merge: Any = lambda self, one, other: one
