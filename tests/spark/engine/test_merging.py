"""Groups: what was merged names its messages by them, and nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormlet import BasicBolt, Collector, Reject, Topology, Tuple
from stormlet.spark.engine.partition import merging
from stormlet.spark.engine.partition.account import differences
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.planning.numbering import Place
from tests.spark.engine.test_combiners import Some, Total
from tests.spark.engine.twin import Outcome, Twin, twin

NEVER = 1 << 62
"""Values for each key up to which there are no groups."""


class Once(Total):
    """Fails at its first input."""

    def execute(self, tup: Tuple[Some], out: Collector[Some]) -> None:
        """Fail, or add some."""
        if tup.attempt == 1:
            raise ValueError("once")
        super().execute(tup, out)


class Odd(Total):
    """Rejects odd totals."""

    def execute(self, tup: Tuple[Some], out: Collector[Some]) -> None:
        """Add some."""
        if int(tup.value.word) % 2:
            raise Reject("odd")
        super().execute(tup, out)


class Again(BasicBolt[Some, Some]):
    """Counts, and emits at once, so that what it emits belongs to the messages of its inputs."""

    merge = staticmethod(Total.merge)

    def execute(self, tup: Tuple[Some], out: Collector[Some]) -> None:
        """By the last digit."""
        out.emit(Some(tup.value.word[-1], tup.value.count))


def counting(make: Callable[[int], Any], total: Any = Total, count: int = 600) -> Topology:
    """Makes words of numbers, and adds them up."""
    topology = Topology("words", replay_delay=0, max_attempts=2)
    some = topology.bolt("some", make, topology.spout("n", range(count)).shuffle(), outputs=Some)
    topology.bolt("total", total, some.fields("word"), parallelism=2)
    return topology


def with_few(few: int, topology: Topology, **options: Any) -> Twin:
    """Run it with groups from so many values for each key on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEW", few)
        return twin(topology, **options)


def ten(n: int) -> Some:
    """Ten words."""
    return Some(f"{n % 10}")


def members(run: Twin) -> Sequence[Row]:
    return [row for rows in run.rows.values() for row in rows if row.kind == Kind.MEMBERS]


def roots_sent(run: Twin) -> int:
    return sum(
        len(row.roots) // 8
        for rows in run.rows.values()
        for row in rows
        if row.target and row.kind == Kind.CHUNK
    )


def test_a_total_names_its_first_message_and_a_group() -> None:
    """However many messages it belongs to."""
    assert roots_sent(with_few(4, counting(ten), spouts=1)) == 2 * 10
    assert roots_sent(with_few(NEVER, counting(ten), spouts=1)) == 600


def test_a_value_of_few_messages_names_them_itself() -> None:
    """A group would cost more."""
    run = twin(counting(lambda n: Some(f"{n // 3}"), Odd), spouts=1)
    assert members(run) == []
    assert sorted(run.failed) == [n for n in range(600) if n // 3 % 2]


def test_messages_that_follow_one_another_cost_a_byte_each() -> None:
    """Where each input of a function gives one output."""
    (row,) = members(twin(counting(ten, count=100_000), spouts=1))
    assert row.size == 100_000
    assert len(row.payload) < 120_000


def test_all_messages_of_a_total_are_given_up_with_it() -> None:
    """Those that failed before it was made are told by themselves."""

    def some(n: int) -> Some:
        if n % 7 == 0:
            raise Reject("seven")
        return ten(n)

    run = twin(counting(some, Odd))
    assert sorted(run.failed) == [n for n in range(600) if n % 2 or n % 7 == 0]
    assert sorted(run.acked) == [n for n in range(600) if n % 2 == 0 and n % 7]


def test_all_messages_of_a_total_have_its_attempts() -> None:
    """As each would have had them by itself."""
    run = twin(counting(ten, Once))
    assert {each.attempts for each in run.outcomes} == {2}
    assert len(run.outcomes) == len(run.acked) == 600


def test_groups_of_groups_are_opened() -> None:
    """Where what was merged is merged once more."""
    topology = Topology("twice", max_attempts=1)
    hundred = topology.bolt(
        "some", lambda n: Some(f"{n % 100:02}"), topology.spout("n", range(6000)).shuffle(), outputs=Some
    )
    digits = topology.bolt("again", Again, hundred.fields("word"), parallelism=1)
    topology.bolt("total", Odd, digits.fields("word"), parallelism=2)
    run = twin(topology, spouts=2)
    assert {row.stage for row in members(run)} == {3}
    assert len(members(run)) == 3
    assert sorted(run.failed) == [n for n in range(6000) if n % 2]
    assert run.differences == []


def test_more_keys_than_a_byte_has_room_for() -> None:
    """Nor two bytes."""

    def many(n: int) -> Iterator[Some]:
        return (Some(f"{each % 70_000}") for each in range(n * 1000, n * 1000 + 1000))

    run = twin(counting(many, Odd, count=350), spouts=1)
    assert [row.size for row in members(run)] == [350_000]
    assert len(run.failed) == 350


def test_members_that_are_altered_show_in_the_ledger() -> None:
    """Else another message would be given up."""

    def alter(place: Place, rows: Sequence[Row], again: Any) -> Sequence[Row]:
        return [
            msgspec.structs.replace(row, payload=row.payload + b".") if row.kind == Kind.MEMBERS else row
            for row in rows
        ]

    assert twin(counting(ten)).differences == []
    run = twin(counting(ten), fault=alter)
    (said,) = differences(run.lines, run.cluster.partitions)
    assert said == "chunks that were read differ from those that were written"


@settings(max_examples=40, deadline=None)
@given(
    outputs=st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=60),
    spouts=st.integers(1, 3),
    rejected=st.integers(0, 30),
    raising=st.integers(2, 9),
)
def test_random_groups_say_what_messages_say(
    outputs: list[list[int]], spouts: int, rejected: int, raising: int
) -> None:
    """Of calls with no output, with one and with several, some of which raise."""

    def make(n: int) -> Any:
        if n % raising == 0:
            raise Reject("no")
        words = [Some(f"{each}") for each in outputs[n % len(outputs)]]
        return words[0] if len(words) == 1 else iter(words)

    class Rejecting(Total):
        def execute(self, tup: Tuple[Some], out: Collector[Some]) -> None:
            if tup.value.word == f"{rejected}":
                raise Reject("this one")
            super().execute(tup, out)

    def run(few: int) -> tuple[list[Outcome], list[Any]]:
        done = with_few(few, counting(make, Rejecting, count=300), spouts=spouts)
        assert done.differences == []
        outcomes = [replace(each, spout="") for each in done.outcomes]
        return sorted(outcomes, key=lambda each: each.value), sorted(done.emitted("total"))

    assert run(0) == run(NEVER)
