"""An attempt that Spark makes again makes the same rows, and keys go to the same tasks as in process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from stormlet import BatchBolt, Collector, Stream, Topology, Tuple
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.planning.numbering import Place
from stormlet.testing import complete
from tests.cast import same
from tests.spark.engine.random_topologies import CALM, WILD, Plan, plans
from tests.spark.engine.twin import twin

FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(plans([*CALM, *WILD]))
def test_two_runs_with_one_seed_make_the_same_rows(plan: Plan) -> None:
    """Byte by byte, retries included."""
    first, second = (twin(plan.topology(), spouts=plan.spouts, seed=plan.seed) for _ in range(2))
    assert first.rows == second.rows
    assert first.lines == second.lines


@FEW
@given(plans([*CALM, *WILD]))
def test_a_second_attempt_at_a_partition_makes_the_same_rows(plan: Plan) -> None:
    """So that Spark may mix the two."""

    def repeated(place: Place, rows: Sequence[Row], again: Callable[[], Sequence[Row]]) -> Sequence[Row]:
        assert again() == rows
        return rows

    twin(plan.topology(), spouts=plan.spouts, seed=plan.seed, fault=repeated)


@pytest.mark.parametrize("fails", [False, True])
def test_calls_beside_each_other_make_the_same_rows(fails: bool) -> None:
    """Whichever of them ends first; also where some fail."""
    random = Random(0)
    failed = set[int]()

    async def slow(number: int) -> int:
        await asyncio.sleep(random.random())
        if fails and number % 5 == 0 and number not in failed:
            failed.add(number)
            raise ValueError(number)
        return number

    def repeated(place: Place, rows: Sequence[Row], again: Callable[[], Sequence[Row]]) -> Sequence[Row]:
        failed.clear()
        assert again() == rows
        return rows

    topology = Topology("calls")
    source: Stream[int] = topology.spout("source", range(60))
    topology.bolt("end", same, topology.bolt("slow", slow, source.shuffle(), concurrency=8).fields())
    assert twin(topology, fault=repeated, spouts=1).differences == []


def test_batches_beside_each_other_make_the_same_rows() -> None:
    """Each output is anchored to a whole batch."""
    random = Random(0)

    class Sums(BatchBolt[int, int]):
        size = 5

        async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
            await asyncio.sleep(random.random())
            out.emit(sum(tup.value for tup in tups), anchors=tups)

    def repeated(place: Place, rows: Sequence[Row], again: Callable[[], Sequence[Row]]) -> Sequence[Row]:
        assert again() == rows
        return rows

    topology = Topology("batches")
    source: Stream[int] = topology.spout("source", range(60))
    topology.bolt("end", same, topology.bolt("sums", Sums, source.shuffle(), concurrency=40).fields())
    assert twin(topology, fault=repeated, spouts=1).differences == []


class Sizes(BatchBolt[int, int]):
    """Emits the sizes of its batches."""

    within = 0.01

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        """Emit the size."""
        out.emit(len(tups))


async def pause(number: int) -> int:
    """The same, later."""
    await asyncio.sleep(1)
    return number


def test_a_batch_is_not_due_by_the_clock() -> None:
    """However long its inputs take to come: another attempt may take longer."""
    topology: Any = Topology("slow")
    slow = topology.bolt("slow", pause, topology.spout("numbers", range(10)).shuffle())
    topology.bolt("sizes", Sizes, slow.shuffle())
    assert twin(topology, spouts=1).emitted("sizes") == [10]


def test_another_seed_makes_other_words() -> None:
    """So that chunks of two runs cannot be taken for each other."""
    topology = Topology("words")
    source: Stream[int] = topology.spout("source", range(10))
    topology.bolt("end", same, source.fields())
    assert twin(topology, seed=1).rows != twin(topology, seed=2).rows


class Colour(Enum):
    """A key."""

    RED = 1
    BLUE = 2


class Flight(msgspec.Struct, frozen=True):
    """A key that is a record."""

    carrier: str
    number: int


KEYS: list[Any] = [
    None, True, False, 0, 7, -(2**70), 1.5, float("inf"), "", "word", "wörd", b"bytes", Decimal("1.10"),
    date(2013, 1, 1), datetime(2013, 1, 1, tzinfo=UTC), time(12, 30), UUID(int=7), Colour.RED, Colour.BLUE,
    Flight("UA", 1), ("a", 1), (("a",), 2), ["list", 3],
]  # fmt: skip


def _second(value: Any) -> Any:
    return value[1]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_goes_to_the_task_with_the_same_index(key: Any) -> None:
    """As in process, whatever its type."""
    topology = Topology("keys")
    source: Stream[Any] = topology.spout("source", [("keyed", key)])
    topology.bolt("end", same, source.fields(_second), parallelism=7)
    done = complete(topology)
    task = next(each.task for each in done.emissions if each.component == "end")
    first = min(done.statistics.components["end"].tasks or ())
    assert twin(topology).tasks["end", "default", repr(("keyed", key))] == {task - first}
