"""Rules of the law on Spark itself: one of each kind of those that ``tests/law`` holds on Spark's chain of stages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from stormlet import BasicBolt, BatchBolt, Collector, DeadLetter, Reject, Statistics, Topology, Tuple
from stormlet.spark import run_on_spark
from stormlet.testing import complete
from tests.cast import Join, same
from tests.spark.engine.random_topologies import Seen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS: Final = range(12)


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    seen: Sequence[tuple[str, str, Any]]
    """What came to the task of :class:`Seen`: component, stream and value."""
    dead_letters: Sequence[DeadLetter]
    statistics: Statistics

    def of(self, component: str) -> list[Any]:
        """The values of a component, sorted."""
        return sorted(value for id, _, value in self.seen if id == component)


Run: TypeAlias = Callable[[Topology], Ran]


@pytest.fixture(params=["in process", "on Spark"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a topology in process, or on Spark."""
    if request.param == "in process":
        return in_process
    spark: SparkSession = request.getfixturevalue("spark")

    def on_spark(topology: Topology) -> Ran:
        with Seen.noted() as seen:
            result = run_on_spark(topology, spark, seed=1)
        return Ran(seen, result.dead_letters, result.statistics)

    return on_spark


def in_process(topology: Topology) -> Ran:
    """Run it on simulated time."""
    with Seen.noted() as seen:
        done = complete(topology, seed=1)
    return Ran(seen, done.dead_letters, done.statistics)


@pytest.mark.parametrize(
    ("grouping", "copies"),
    [("shuffle", 1), ("fields", 1), ("partial_key", 1), ("global_", 1), ("none", 1), ("all", 3)],
)
def test_each_grouping_gives_every_value_to_its_tasks(run: Run, grouping: str, copies: int) -> None:
    """To all of three with ``all``, else to one."""
    topology: Any = Topology("groupings")
    numbers = topology.spout("numbers", NUMBERS)
    here = topology.bolt("here", same, getattr(numbers, grouping)(), parallelism=3)
    topology.bolt("seen", Seen, here.global_())
    ran = run(topology)
    assert ran.of("here") == sorted([*NUMBERS] * copies)
    assert ran.statistics.components["numbers"].acked == len(NUMBERS)


def refuse_with_three(pair: list[int]) -> list[int]:
    """Refuse a pair that has a three."""
    if 3 in pair:
        raise Reject("three")
    return pair


def test_what_happens_to_a_joined_output_happens_to_all_its_messages(run: Run) -> None:
    """Of two pairs one is refused, behind another exchange (law L7)."""
    topology: Any = Topology("joins")
    pairs = topology.bolt("join", Join, topology.spout("numbers", [1, 2, 3, 4]).fields(half), parallelism=2)
    kept = topology.bolt("keep", refuse_with_three, pairs.fields(), parallelism=2)
    topology.bolt("seen", Seen, kept.global_())
    ran = run(topology)
    assert (sorted(each.value for each in ran.dead_letters), ran.of("keep")) == ([3, 4], [[1, 2]])


def half(number: int) -> bool:
    """Equal for two numbers of the four."""
    return number < 3


def refuse_odd(number: int) -> int:
    """Refuse an odd number."""
    if number % 2:
        raise Reject(f"{number} is odd")
    return number


@pytest.mark.parametrize("grouping", ["shuffle", "fields"])
def test_what_is_rejected_is_a_dead_letter_at_once(run: Run, grouping: str) -> None:
    """With its component and reason (law S6, L14)."""
    topology: Any = Topology("rejects")
    even = topology.bolt("even", refuse_odd, getattr(topology.spout("numbers", NUMBERS), grouping)())
    topology.bolt("seen", Seen, even.global_())
    ran = run(topology)
    letters = [
        (each.value, each.attempts, each.failure.component, each.failure.reason) for each in ran.dead_letters
    ]
    assert sorted(letters) == [(n, 1, "even", f"{n} is odd") for n in NUMBERS if n % 2]
    assert ran.of("even") == [*NUMBERS[::2]]


class Flaky(BasicBolt[int, tuple[int, int]]):
    """Emits each number with its attempt; some need up to three, and eleven needs more than there are."""

    def execute(self, tup: Tuple[int], out: Collector[tuple[int, int]]) -> None:
        """Fail at the first attempts."""
        if tup.attempt <= (9 if tup.value == 11 else tup.value % 3):
            raise ValueError(f"not yet: {tup.value}")
        out.emit((tup.value, tup.attempt))


@pytest.mark.parametrize("grouping", ["shuffle", "fields"])
def test_what_fails_is_tried_again_until_it_is_given_up(run: Run, grouping: str) -> None:
    """With the next attempt each time, and five in all (law S6)."""
    topology: Any = Topology("replays", replay_delay=0.01)
    flaky = topology.bolt("flaky", Flaky, getattr(topology.spout("numbers", NUMBERS), grouping)())
    topology.bolt("seen", Seen, flaky.global_())
    ran = run(topology)
    (letter,) = ran.dead_letters
    assert (letter.value, letter.attempts, len(letter.history)) == (11, 5, 5)
    assert repr(letter.failure.exception) == "ValueError('not yet: 11')"
    assert ran.of("flaky") == [(n, n % 3 + 1) for n in NUMBERS if n != 11]


class Sums(BatchBolt[int, list[int]]):
    """Emits the values of each batch; refuses the first one of a batch of odd numbers."""

    size = 4

    def key(self, value: int) -> int:
        """Odd or even."""
        return value % 2

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[list[int]]) -> None:
        """Emit a list."""
        if tups[0].value % 2:
            out.fail(tups[0], "odd", permanent=True)
            tups = tups[1:]
        out.emit([tup.value for tup in tups], anchors=tups)


@pytest.mark.parametrize("grouping", ["global_", "fields"])
def test_batches_are_whole_and_the_last_one_is_flushed(run: Run, grouping: str) -> None:
    """One input may fail alone (law B8, B4)."""
    topology: Any = Topology("batches")
    numbers = topology.bolt("pass", same, topology.spout("numbers", NUMBERS).fields())
    sums = topology.bolt("sums", Sums, getattr(numbers, grouping)())
    topology.bolt("end", same, sums.fields(), parallelism=2)
    topology.bolt("seen", Seen, sums.global_())
    ran = run(topology)
    assert ran.of("sums") == [[0, 2, 4, 6], [3, 5, 7], [8, 10], [11]]
    assert sorted(each.value for each in ran.dead_letters) == [1, 9]


class Slow(BasicBolt[int, int]):
    """Notes how many of its calls run beside each other, and emits it with the number."""

    def __init__(self) -> None:
        self.running = 0

    async def execute(self, tup: Tuple[int], out: Collector[tuple[int, int]]) -> None:  # type: ignore[override]
        """Take a moment; three is refused."""
        self.running += 1
        beside = self.running
        await asyncio.sleep(0.05)
        self.running -= 1
        if tup.value == 3:
            raise Reject("three")
        out.emit((tup.value, beside))


@pytest.mark.parametrize("grouping", ["global_", "fields"])
def test_async_calls_run_beside_each_other(run: Run, grouping: str) -> None:
    """Four at a time, and one that fails fails alone (law B3)."""
    topology: Any = Topology("async")
    numbers = topology.bolt("pass", same, topology.spout("numbers", NUMBERS).fields())
    slow = topology.bolt("slow", Slow, getattr(numbers, grouping)(), concurrency=4)
    topology.bolt("end", same, slow.fields(), parallelism=2)
    topology.bolt("seen", Seen, slow.global_())
    ran = run(topology)
    assert [number for number, _ in ran.of("slow")] == [n for n in NUMBERS if n != 3]
    assert max(beside for _, beside in ran.of("slow")) == 4
    assert Counter(each.value for each in ran.dead_letters) == {3: 1}
