"""A topology on the chain of stages does what it does in process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pytest

from examples.flights import delays
from examples.join import topology as join
from examples.word_count import word_count
from stormlet import BasicBolt, BatchBolt, Collector, Stream, TaskContext, To, Topology, Tuple
from stormlet.core.outcomes import FailureKind
from stormlet.errors import MistakenFactory, Reject, StartFailed, TopologyCrashed
from stormlet.testing import Completed, complete
from tests.cast import (
    AckLater,
    Batches,
    Count,
    Forget,
    Forward,
    ForwardUnanchored,
    HoldUntilFinished,
    Slow,
    ignore,
    same,
    twice,
)
from tests.cast import Join as JoinEvery
from tests.spark.engine.twin import Twin, twin

NUMBERS = range(30)


def equal(run: Twin, done: Completed) -> None:
    """The two runs have emitted the same, and every message has the same outcome."""
    assert run.differences == []
    assert run.multiset() == Counter((e.component, e.stream, repr(e.value)) for e in done.emissions)
    assert sorted(map(repr, run.acked)) == sorted(map(repr, done.acked))
    assert sorted(map(repr, run.failed)) == sorted(map(repr, done.failed))


def checked(topology: Topology) -> Twin:
    """Run it both ways, and compare."""
    run = twin(topology)
    equal(run, complete(topology, allow_leaks=True))
    return run


def numbers() -> tuple[Topology, Stream[int]]:
    """A topology with a spout of numbers."""
    topology = Topology("numbers")
    return topology, topology.spout("numbers", NUMBERS)


def test_word_count_counts_the_same_words() -> None:
    """Two exchanges: words by key, and totals to one task."""
    checked(word_count())


def test_join_pairs_the_same_orders() -> None:
    """Two spouts, an output of two trees, and what is left over in finish."""
    run = checked(join)
    assert len(run.emitted("join")) == 3


def test_a_diamond_settles_each_message_once() -> None:
    """Two branches that meet again, one of them longer."""
    topology, source = numbers()
    left = topology.bolt("left", twice, source.fields(lambda n: n % 3), parallelism=3)
    right = topology.bolt("right", same, source.shuffle())
    topology.bolt("meet", same, left.fields(), right.fields(), parallelism=2)
    assert len(checked(topology).emitted("meet")) == 90


def test_every_grouping_reaches_as_many_tasks() -> None:
    """One copy for each task with all, one in all with any other."""
    topology, source = numbers()

    class Third:
        def prepare(self, targets: Sequence[int]) -> None:
            self.targets = targets

        def choose(self, value: object) -> Sequence[int]:
            return self.targets[2:]

    groupings = (source.all(), source.global_(), source.partial_key(lambda n: n % 4), source.custom(Third()))
    for name, grouping in zip(("all", "global", "partial", "custom"), groupings, strict=True):
        topology.bolt(name, same, grouping, parallelism=3)
    run = checked(topology)
    assert [len(run.emitted(each)) for each in ("all", "global", "partial", "custom")] == [90, 30, 30, 30]
    assert run.tasks["custom", "default", "7"] == {2}


def test_named_streams_go_their_own_ways() -> None:
    """Also where one leaves the stage and the other stays in it."""

    def parted(number: int) -> To[int]:
        return To(number, stream="even" if number % 2 == 0 else "odd")

    topology, source = numbers()
    split: Stream[Any] = topology.bolt("split", parted, source.shuffle(), outputs={"even": int, "odd": int})
    topology.bolt("stays", same, split.named("even").shuffle())
    topology.bolt("leaves", same, split.named("odd").fields(), split.named("even").fields(), parallelism=2)
    assert len(checked(topology).emitted("leaves")) == 30


def test_a_spout_may_emit_on_named_streams() -> None:
    """By To, as in process."""
    topology = Topology("named")
    values = [To(1, stream="a"), To(2, stream="b"), To(3, stream="a")]
    source: Stream[Any] = topology.spout("source", values, outputs={"a": int, "b": int})
    topology.bolt("a", same, source.named("a").fields())
    topology.bolt("b", same, source.named("b").shuffle())
    assert checked(topology).emitted("a") == [1, 3]


def test_unanchored_outputs_belong_to_no_message() -> None:
    """They arrive, and their failure is nobody's."""
    topology, source = numbers()
    loose = topology.bolt("loose", ForwardUnanchored, source.shuffle())
    topology.bolt("refuse", _reject, loose.fields())
    run = checked(topology)
    assert run.failed == []
    assert run.given_up == []


def _reject(value: object) -> None:
    raise Reject("no")


class Sums(BatchBolt[int, int]):
    """Emits the sum of each batch."""

    size = 4

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        out.emit(sum(tup.value for tup in tups), anchors=tups)


class Keyed(Sums):
    """The same by remainder."""

    def key(self, value: int) -> int:
        return value % 2


class Weighty(Sums):
    """A batch is complete by its weight."""

    size = 100

    def weight(self, value: int) -> int:
        return 10 if value % 3 else 40


@pytest.mark.parametrize("bolt", [Sums, Keyed, Weighty])
def test_batches_are_executed_whole(bolt: type[Sums]) -> None:
    """By size, key and weight; the last ones when no more comes."""
    topology, source = numbers()
    topology.bolt("sums", bolt, source.global_())
    run = twin(topology, spouts=1)
    equal(run, complete(topology))
    assert sum(run.emitted("sums")) == sum(NUMBERS)


def test_held_inputs_are_settled_by_flush() -> None:
    """Their outputs leave with them."""

    class Pairs(JoinEvery):
        def flush(self, out: Collector[Any]) -> None:
            for each in self.held:
                out.emit([each.value], anchors=each)
                out.ack(each)
            self.held = []

    topology, source = numbers()
    pairs = topology.bolt("pairs", partial(Pairs, 4), source.global_())
    topology.bolt("end", ignore, pairs.fields(str))
    run = twin(topology)
    assert run.differences == []
    assert len(run.acked) == 30
    assert sorted(chain.from_iterable(run.emitted("pairs"))) == [*NUMBERS]


def test_held_inputs_are_settled_by_finish() -> None:
    """A Bolt may hold all that it gets."""
    topology, source = numbers()
    topology.bolt("hold", HoldUntilFinished, source.fields(), parallelism=2)
    checked(topology)


def test_an_input_that_a_timer_settles_is_waited_for() -> None:
    """Nothing moves meanwhile, and the bolt has finished."""
    topology, source = numbers()
    topology.bolt("later", partial(AckLater, 5.0), source.fields())
    checked(topology)


def test_an_input_that_is_never_settled_is_given_up_by_name() -> None:
    """After its message timeout, as in process; a replay would be held again."""
    topology, source = numbers()
    kept = topology.bolt("keep", Forward, source.shuffle())
    topology.bolt("forget", Forget, kept.fields())
    run = twin(topology)
    assert run.differences == []
    assert sorted(run.failed) == [*NUMBERS]
    failure = run.given_up[0].history[-1]
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.holders == ("forget",)
    assert "held" in failure.reason


def test_a_rejected_message_is_given_up_at_once() -> None:
    """Also behind an exchange, and the others are acked."""

    def choosy(number: int) -> None:
        if number % 5 == 0:
            raise Reject("five")

    topology, source = numbers()
    numbered: Stream[Any] = topology.bolt("same", same, source.shuffle())
    topology.bolt("choosy", choosy, numbered.fields())
    run = checked(topology)
    assert {each.attempts for each in run.outcomes if not each.acked} == {1}


class Flaky(BasicBolt[int, int]):
    """Fails the attempts below a number of the value's own, and emits it in the others."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)
        if tup.attempt < tup.value % 8:
            raise ValueError("not yet")


@pytest.mark.parametrize("grouping", ["shuffle", "fields"])
def test_a_failed_input_is_executed_again_with_the_next_attempt(grouping: str) -> None:
    """Until it is acked or given up; nothing of a failed attempt leaves."""
    topology, source = numbers()
    flaky = topology.bolt("flaky", Flaky, getattr(source, grouping)())
    topology.bolt("end", same, flaky.fields(), parallelism=2)
    run, done = twin(topology), complete(topology)
    assert run.differences == []
    assert {each.value: (each.acked, each.attempts) for each in run.outcomes} == {
        each.value: (each.acked, each.attempts) for each in done.outcomes
    }
    assert sorted(run.emitted("end")) == sorted(run.acked)


def test_attempts_go_on_from_stage_to_stage() -> None:
    """What was executed three times begins behind the exchange as a third attempt."""
    topology, source = numbers()
    first = topology.bolt("first", Flaky, source.shuffle())
    topology.bolt("second", Flaky, first.fields())
    run = checked_outcomes(topology)
    assert max(each.attempts for each in run.outcomes) == 5


def checked_outcomes(topology: Topology) -> Twin:
    """Run it both ways, and compare the outcomes with their attempts."""
    run, done = twin(topology), complete(topology)
    assert run.differences == []
    assert {each.value: (each.acked, each.attempts) for each in run.outcomes} == {
        each.value: (each.acked, each.attempts) for each in done.outcomes
    }
    return run


def test_async_calls_run_beside_each_other() -> None:
    """Thirty calls of a second take three, ten at a time."""
    ends: list[float] = []

    async def slow(number: int) -> int:
        await asyncio.sleep(1)
        ends.append(asyncio.get_running_loop().time())
        return number

    topology, source = numbers()
    topology.bolt("slow", slow, source.global_(), concurrency=10)
    checked(topology)
    assert max(ends) == pytest.approx(3)


def test_async_bolts_and_generators_emit_the_same() -> None:
    """Of every kind."""

    async def each(number: int) -> AsyncIterator[int]:
        yield number
        await asyncio.sleep(0.1)
        yield -number

    topology, source = numbers()
    signed: Stream[int] = topology.bolt("signed", each, source.shuffle())
    topology.bolt("slow", Slow, signed.fields(), parallelism=2)
    assert len(checked(topology).emitted("signed")) == 60


def test_a_failed_concurrent_call_is_one_failure() -> None:
    """An exception, a Reject and a cancelled call."""

    async def fails(number: int) -> None:
        await asyncio.sleep(0.01)
        if number == 1:
            raise Reject("one")
        if number == 2:
            raise ValueError("two")
        if number == 3:
            raise asyncio.CancelledError

    topology, source = numbers()
    topology.bolt("fails", fails, source.shuffle(), concurrency=4)
    run = twin(topology)
    assert run.differences == []
    attempts = {each.value: each.attempts for each in run.outcomes if not each.acked}
    assert attempts == {1: 1, 2: 5, 3: 5}


def test_code_in_threads_gives_the_same() -> None:
    """On simulated time it runs inline."""
    topology, source = numbers()
    topology.bolt("threads", same, source.fields(), executor="thread", concurrency=3)
    checked(topology)


def test_code_in_threads_runs_in_real_time() -> None:
    """In threads, beside each other."""

    def slow(number: int) -> int:
        time.sleep(0.01)
        return number

    topology, source = numbers()
    topology.bolt("threads", slow, source.fields(), executor="thread", concurrency=30)
    run = twin(topology, real_time=True)
    assert run.differences == []
    assert sorted(run.emitted("threads")) == [*NUMBERS]


class FailsOnce(BasicBolt[int, int]):
    """The instance that gets a seven dies at its first attempt."""

    made = 0

    def prepare(self, context: TaskContext) -> None:
        type(self).made += 1

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value == 7 and tup.attempt == 1:
            raise ValueError("seven")
        out.emit(tup.value)


def test_a_task_that_died_is_started_again() -> None:
    """The input is executed by the next instance."""
    FailsOnce.made = 0
    topology, source = numbers()
    topology.bolt("fails", FailsOnce, source.fields(), on_error="restart")
    run = twin(topology)
    assert run.differences == []
    assert FailsOnce.made == 2
    assert sorted(run.acked) == sorted(run.emitted("fails")) == [*NUMBERS]


def test_a_task_that_stops_names_what_raised() -> None:
    """As in process."""
    topology, source = numbers()
    topology.bolt("fails", FailsOnce, source.fields(), on_error="stop")
    assert said(topology) == complete_said(topology)


def said(topology: Topology) -> tuple[type[TopologyCrashed], str]:
    """The error of the twin."""
    with pytest.raises(TopologyCrashed) as caught:
        twin(topology, spouts=1)
    return caught.type, str(caught.value)


def complete_said(topology: Topology) -> tuple[type[TopologyCrashed], str]:
    """The error in process."""
    with pytest.raises(TopologyCrashed) as caught:
        complete(topology, allow_leaks=True)
    said = str(caught.value)
    return caught.type, said.split(", after")[0] if "next_tuple" in said else said  # no spout is restarted


class Raises(BasicBolt[Any, Any]):
    """One of its methods raises."""

    def __init__(self, method: str) -> None:
        setattr(type(self), method, _raise)

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        """Return."""


def _raise(*_: object) -> None:
    raise ZeroDivisionError("not here")


@pytest.mark.parametrize("method", ["prepare", "finish", "cleanup"])
def test_a_method_that_raises_is_named_as_in_process(method: str) -> None:
    """StartFailed or TopologyCrashed; what cleanup raises is logged."""
    bolt = type("Raises", (Raises,), {})
    topology, source = numbers()
    topology.bolt("raises", partial(bolt, method), source.fields())
    if method == "cleanup":
        assert twin(topology).differences == []
    else:
        assert said(topology) == complete_said(topology)
        assert (method == "prepare") is issubclass(said(topology)[0], StartFailed)


def test_a_constructor_that_raises_is_named_as_in_process() -> None:
    """Before anything starts."""

    class Broken(Forward):
        def __init__(self) -> None:
            raise ZeroDivisionError

    topology, source = numbers()
    topology.bolt("broken", Broken, source.fields())
    assert said(topology) == complete_said(topology)


def test_a_function_that_makes_bolts_crashes_the_run() -> None:
    """No input could make that right."""

    def make(size: Any) -> Any:
        return Batches(size)

    topology, source = numbers()
    topology.bolt("make", make, source.fields())
    assert said(topology) == complete_said(topology)
    with pytest.raises(TopologyCrashed) as caught:
        twin(topology)
    assert isinstance(caught.value.__cause__, MistakenFactory)


def _inverse(number: int) -> int:
    return 1 // (number - 9)


def _no_key(number: int) -> object:
    return object()


@pytest.mark.parametrize("where", ["spout", "bolt"])
@pytest.mark.parametrize("key", [_inverse, _no_key], ids=["raises", "unroutable"])
def test_a_key_that_cannot_be_had_is_named_as_in_process(where: str, key: Any) -> None:
    """Where a spout emits it, and where a bolt does."""
    topology, source = numbers()
    stream = source if where == "spout" else topology.bolt("same", same, source.shuffle())
    topology.bolt("end", ignore, stream.fields(key))
    try:
        done = complete(topology)
    except TopologyCrashed:
        assert said(topology) == complete_said(topology)
    else:
        equal_outcomes = sorted(twin(topology).failed) == sorted(done.failed)
        assert equal_outcomes


@pytest.mark.parametrize("where", ["spout", "bolt"])
def test_a_value_that_cannot_be_pickled_is_named(where: str) -> None:
    """With its component and the way out."""
    topology = Topology("pickled")
    source = topology.spout("source", [1, (lambda: 0) if where == "spout" else 2])
    stream = source
    if where == "bolt":
        stream = topology.bolt("make", lambda n: lambda: n, source.shuffle())
    topology.bolt("end", ignore, stream.fields(str))
    with pytest.raises(TopologyCrashed) as caught:
        twin(topology)
    assert ("source[1]" if where == "spout" else "make[0]") in str(caught.value)
    assert "pickle" in str(caught.value)
    assert "emit" in str(caught.value)


def test_an_empty_source_ends_at_once() -> None:
    """Bolts finish all the same."""
    topology = Topology("empty")

    class Ends(Count):
        def finish(self, out: Collector[int]) -> None:
            out.emit(-1)

    source: Stream[int] = topology.spout("none", [])
    topology.bolt("ends", Ends, source.fields(), parallelism=3)
    assert checked(topology).emitted("ends") == [-1, -1, -1]


def test_a_partition_without_input_finishes() -> None:
    """All keys are with the other tasks."""
    topology, source = numbers()
    topology.bolt("one", Count, source.fields(lambda _: "all"), parallelism=4)
    run = checked(topology)
    assert run.cluster.partitions == [2, 4, 1]


def test_the_order_between_two_tasks_is_kept() -> None:
    """What one task emits for another arrives in this order."""
    topology, source = numbers()
    topology.bolt("seen", same, topology.bolt("same", same, source.shuffle()).fields(lambda _: 0))
    run = twin(topology, spouts=3)
    for first in range(3):
        mine = [number for number in run.emitted("seen") if number % 3 == first]
        assert mine == sorted(mine)


def test_more_than_a_chunk_leaves_in_chunks() -> None:
    """Of a thousand values."""
    topology = Topology("many")
    topology.bolt("end", Count, topology.spout("many", range(5_000)).fields(lambda _: 0))
    run = checked(topology)
    assert max(row.size for rows in run.rows.values() for row in rows) == 1000


def test_a_bolt_gets_the_schemas_and_the_number_of_its_tasks() -> None:
    """Fused, it has as many as there are partitions."""
    seen = list[int]()

    class Looks(Forward):
        def prepare(self, context: TaskContext) -> None:
            seen.append(context.parallelism)

    topology, source = numbers()
    topology.bolt("looks", Looks, source.shuffle())
    twin(topology, spouts=3)
    assert seen == [3, 3, 3]


def words() -> Iterator[str]:
    """Yield three words."""
    yield from ("a", "b", "a")


def test_a_generator_is_a_source() -> None:
    """As in process."""
    topology = Topology("words")
    topology.bolt("count", Count, topology.spout("words", words).fields(), parallelism=2)
    assert sorted(checked(topology).emitted("count")) == [1, 1, 2]


class Partly(BatchBolt[int, int]):
    """Fails one input of each batch for good, and emits the sum of the others, anchored to them."""

    size = 4

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        out.fail(tups[0], "the first", permanent=True)
        out.emit(sum(tup.value for tup in tups[1:]), anchors=tups[1:])


def test_a_batch_may_fail_in_part() -> None:
    """The rest is acked, and its output leaves."""
    topology, source = numbers()
    sums: Stream[int] = topology.bolt("sums", Partly, source.global_(), parallelism=2)
    topology.bolt("end", same, sums.fields())
    run = twin(topology, spouts=1)
    equal(run, complete(topology))
    assert len(run.failed) == 8


def test_the_flights_add_up() -> None:
    """The example checks its tables by itself."""
    run = twin(delays(3000), spouts=3)
    assert run.differences == []
    assert len(run.acked) == 3000
