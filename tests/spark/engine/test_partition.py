"""What becomes of single inputs and outputs in a partition: attempts, trees, streams, chunks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet import BasicBolt, Bolt, Collector, Failure, Stream, To, Topology, Tuple
from stormlet.errors import Reject, TopologyCrashed
from stormlet.spark.engine.partition import lanes, partition
from stormlet.spark.engine.partition.deliveries import Deliveries
from stormlet.spark.engine.partition.inputs import Batch
from stormlet.spark.engine.partition.rows import Row, packed, xor_of
from stormlet.testing import complete
from tests.cast import ForwardUnanchored, HoldUntilFinished, Note, ignore, same
from tests.spark.engine.twin import twin


def numbers(count: int = 6) -> tuple[Topology, Stream[int]]:
    """A topology with a spout of numbers."""
    topology = Topology("numbers")
    return topology, topology.spout("numbers", range(count))


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_packed_numbers_are_xored_as_they_are_one_by_one(words: list[int]) -> None:
    """Of any number of them."""
    assert xor_of(packed(words)) == reduce(int.__xor__, words, 0)


class PairsOff(Bolt[int, str]):
    """Emits a value for each two inputs, anchored to both; acks the first and fails the second for good."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[str]) -> None:
        self.held.append(tup)
        if len(self.held) == 2:
            first, second = self.held
            out.emit(f"{first.value} {second.value}", anchors=self.held)
            out.ack(first)
            out.fail(second, "odd", permanent=True)
            self.held = []


def test_an_output_of_several_trees_leaves_with_those_that_were_acked() -> None:
    """To drop it would lose it for them."""
    topology, source = numbers()
    topology.bolt("end", same, topology.bolt("pairs", PairsOff, source.fields(lambda _: 0)).fields())
    run = twin(topology, spouts=1)
    assert run.differences == []
    assert sorted(run.emitted("end")) == ["0 1", "2 3", "4 5"]
    assert (sorted(run.acked), sorted(run.failed)) == ([0, 2, 4], [1, 3, 5])


def test_a_message_is_given_up_if_one_of_its_tuples_is() -> None:
    """In another stage than the one that has acked the rest."""

    def refuse_odd(number: int) -> None:
        if number % 2:
            raise Reject("odd")

    topology, source = numbers()
    even: Stream[Any] = topology.bolt("same", same, source.fields())
    topology.bolt("odd", refuse_odd, even.fields())
    topology.bolt("all", ignore, source.fields())
    assert twin(topology).failed == [1, 3, 5]


class Once(BasicBolt[int, int]):
    """Fails the first attempt at threes."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)
        if tup.value % 3 == 0 and tup.attempt == 1:
            raise ValueError("once")


class Attempts(BasicBolt[Any, tuple[Any, int]]):
    """Emits values with their attempts."""

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        out.emit((tup.value, tup.attempt))


@pytest.mark.parametrize("grouping", ["shuffle", "fields"])
def test_an_output_has_the_attempt_of_its_input(grouping: str) -> None:
    """In the same stage, and behind the exchange; those of the attempt that failed do not leave."""
    topology, source = numbers()
    once: Stream[Any] = topology.bolt("once", Once, source.shuffle())
    topology.bolt("attempts", Attempts, getattr(once, grouping)())
    seen = twin(topology).emitted("attempts")
    assert sorted(set(seen)) == sorted(
        {(n, 1 + (n % 3 == 0)) for n in range(6)} | ({(0, 1), (3, 1)} & set(seen))
    )
    assert len(seen) == (8 if grouping == "shuffle" else 6)


def test_attempts_stay_with_their_values() -> None:
    """From stage to stage, whatever they leave together with."""
    topology, source = numbers(3000)
    once: Stream[Any] = topology.bolt("once", Once, source.shuffle())
    passed: Stream[Any] = topology.bolt("passed", same, once.fields(lambda _: 0))
    topology.bolt("attempts", Attempts, passed.fields(lambda number: number % 2), parallelism=2)
    seen = twin(topology).emitted("attempts")
    assert sorted(seen) == [(number, 1 + (number % 3 == 0)) for number in range(3000)]


def test_a_message_that_was_joined_has_the_attempts_of_its_own() -> None:
    """Not those of the one that it was joined with."""

    class Both(Bolt[int, int]):
        def __init__(self) -> None:
            self.held: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.held.append(tup)

        def finish(self, out: Collector[int]) -> None:
            out.emit(0, anchors=self.held)
            for each in self.held:
                out.ack(each)
            self.held = []

    topology, source = numbers()
    once: Stream[Any] = topology.bolt("once", Once, source.shuffle())
    both: Stream[Any] = topology.bolt("both", Both, once.global_(), parallelism=2)
    topology.bolt("end", HoldUntilFinished, both.fields())
    run = twin(topology)
    assert {each.value: each.attempts for each in run.outcomes} == {0: 2, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}


def test_what_belongs_to_no_message_has_no_roots() -> None:
    """As in process; and it is not tried again."""
    seen = list[tuple[int, int]]()

    class Looks(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            seen.append((len(tup.roots), tup.attempt))
            out.fail(tup)

    topology, source = numbers()
    topology.bolt("looks", Looks, topology.bolt("loose", ForwardUnanchored, source.shuffle()).fields())
    run = twin(topology)
    assert run.differences == []
    assert seen == [(0, 1)] * 6
    assert run.failed == []


class Streams(BasicBolt[int, int]):
    """Emits each number on two streams."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value, stream="a")
        out.emit(tup.value, stream="b")


class NamesStreams(BasicBolt[int, str]):
    """Emits where each number comes from."""

    def execute(self, tup: Tuple[int], out: Collector[str]) -> None:
        out.emit(f"{tup.component}.{tup.stream}.{tup.value}")


def test_streams_of_one_task_keep_their_names_and_their_order() -> None:
    """Also when they have the same consumer."""
    topology, source = numbers(3)
    streams: Stream[Any] = topology.bolt("streams", Streams, source.shuffle(), outputs={"a": int, "b": int})
    names = streams.named("a", int).fields(lambda _: 0), streams.named("b", int).fields(lambda _: 0)
    topology.bolt("names", NamesStreams, *names)
    expected = [f"streams.{stream}.{number}" for number in range(3) for stream in "ab"]
    assert twin(topology, spouts=1).emitted("names") == expected


def test_bolts_in_the_driver_get_what_is_for_them() -> None:
    """However their chunks are mixed."""
    seen: dict[str, list[Any]] = {"one": [], "two": []}
    topology, source = numbers(2500)
    for name, notes in seen.items():
        topology.bolt(name, partial(Note, notes), source.global_())
    run = twin(topology, spouts=2)
    assert run.cluster.partitions == [2, 1]
    assert run.differences == []
    assert sorted(seen["one"]) == sorted(seen["two"]) == [*range(2500)]


def test_chunks_of_large_values_are_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value leaves, in its order; one value cannot be parted."""
    monkeypatch.setattr(lanes, "LARGEST", 5_000)
    topology = Topology("large")
    values = [f"{number}" * 1000 for number in range(1, 20)]
    source: Stream[str] = topology.spout("source", values)
    topology.bolt("end", same, source.fields(lambda _: 0))
    run = twin(topology, spouts=1)
    assert run.differences == []
    assert run.emitted("end") == values
    sizes = [row.size for rows in run.rows.values() for row in rows]
    assert len(sizes) > 5
    assert all(len(row.payload) <= 5_000 or row.size == 1 for rows in run.rows.values() for row in rows)


def test_large_values_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them would fill the memory of whoever sends them, and of whoever gets them."""
    monkeypatch.setattr(lanes, "HEAVY", 20_000)
    monkeypatch.setattr(partition, "HEAVY", 20_000)
    together = list[int]()
    batch_of = Deliveries.batch_of

    def noted(self: Deliveries, rows: Sequence[Row]) -> Batch:
        together.append(sum(row.size for row in rows))
        return batch_of(self, rows)

    monkeypatch.setattr(Deliveries, "batch_of", noted)
    topology = Topology("large")
    source: Stream[str] = topology.spout("source", [f"{number:0200}" for number in range(3000)])
    topology.bolt("end", same, source.fields(_last_digit), parallelism=5)
    run = twin(topology, spouts=1)
    assert run.differences == []
    assert len(run.emitted("end")) == 3000
    sizes = [row.size for rows in run.rows.values() for row in rows]
    assert set(sizes) == {200, 400}
    assert sorted(together) == sorted(sizes)


def _last_digit(text: str) -> int:
    return int(text[-1]) % 5


class Unmade:
    """Can be pickled, and not be made again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("not a number",)


def test_a_value_that_cannot_be_made_again_is_named() -> None:
    """With its component, the one that takes it, and the way out."""
    topology = Topology("unmade")
    source: Stream[Any] = topology.spout("source", [Unmade()])
    topology.bolt("end", ignore, source.fields(str))
    with pytest.raises(
        TopologyCrashed, match=r"of end\[0\] raised ValueError.*a value of 'source' cannot be made"
    ):
        twin(topology, spouts=1)


def test_an_emit_on_an_unknown_stream_is_named_as_in_process() -> None:
    """By a spout."""
    topology = Topology("unknown")
    source: Stream[Any] = topology.spout("source", [To(1, stream="nowhere")])
    topology.bolt("end", ignore, source.fields())
    for run in (twin, complete):
        with pytest.raises(TopologyCrashed, match=r"next_tuple of source\[0\] raised InvalidEmit.*'nowhere'"):
            run(topology)


def test_what_a_task_has_emitted_and_sent_is_counted() -> None:
    """As in process."""
    topology, source = numbers()
    both: Stream[Any] = topology.bolt("both", same, source.fields())
    topology.bolt("all", ignore, both.all(), parallelism=3)
    topology.bolt("near", ignore, both.shuffle())
    done = complete(topology).statistics.components["both"]
    plain = twin(topology)
    counts = [each for report in plain.reports for each in report.statistics.values()]
    assert plain.cluster.partitions == [2, 1, 3, 1]
    sums = [(each.emitted, each.transferred) for each in counts if each.emitted]
    assert sums == [(done.emitted, done.transferred)]


def test_a_failure_keeps_its_history() -> None:
    """Of each attempt, in the partition in which it failed."""

    def fails(number: int) -> None:
        raise ValueError(number)

    topology, source = numbers(1)
    topology.bolt("fails", fails, source.fields())
    (given_up,) = twin(topology).given_up
    assert given_up.attempts == len(given_up.history) == 5
    failure: Failure = given_up.history[-1]
    assert failure.component == "fails"


def test_no_output_overtakes_another() -> None:
    """Though the first is anchored to an input that is held to the end."""

    class HoldsFirst(Bolt[int, int]):
        first: Tuple[int] | None = None

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value, anchors=tup)
            if self.first is None:
                self.first = tup
            else:
                out.ack(tup)

        def finish(self, out: Collector[int]) -> None:
            if self.first is not None:
                out.ack(self.first)
                self.first = None

    topology, source = numbers(3000)
    held: Stream[Any] = topology.bolt("holds", HoldsFirst, source.shuffle())
    topology.bolt("end", same, held.fields(lambda _: 0))
    run = twin(topology, spouts=1)
    assert run.differences == []
    assert run.emitted("end") == [*range(3000)]
