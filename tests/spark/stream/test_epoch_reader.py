"""A stream whose batches are epochs, written exactly once or counted; fakes stand for Spark and for the sink's
files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    InvalidTopology,
    KeyedBolt,
    Reject,
    StartFailed,
    Stream,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.retries import RestartPolicy
from stormlet.core.state.commits import Commit
from stormlet.errors import NotExactlyOnce, SparkFailed, StateUnusable
from stormlet.runtime.spout.positions import CutPosition
from stormlet.spark.stream.reader import OnFailure
from stormlet.spark.stream.spout import StreamSpout
from stormlet.state.memory import MemoryStore
from tests.helpers import run_to_end
from tests.spark.epoch_kit import Sink, Store
from tests.spark.stream_kit import FakeSpark, batches_of

pytestmark = pytest.mark.simulated_time

LETTERS: dict[str, Any] = {"dead_letters": lambda letter: None}


class Source:
    """Says of itself what its spouts are, as that of ``stream`` does."""

    cuts_epochs = True
    resumes = True
    resumable = True

    def __init__(self, spark: FakeSpark, on_failure: OnFailure, policy: RestartPolicy | None) -> None:
        self._batches = batches_of(spark, policy)
        self._on_failure = on_failure

    def __call__(self) -> StreamSpout:
        return StreamSpout(self._batches, self._on_failure)


def written(
    spark: FakeSpark,
    store: Store,
    logic: Any,
    on_failure: OnFailure = "dead_letter",
    policy: RestartPolicy | None = None,
    **configuration: object,
) -> Topology:
    """Rows of a stream, one bolt of two tasks, and a sink."""
    topology = Topology("streamed", **configuration)
    rows: Stream[Any] = topology.spout("rows", Source(spark, on_failure, policy))  # type: ignore[call-overload]
    made = topology.bolt("logic", logic, rows.shuffle(), parallelism=2)
    topology.bolt("write", Sink(store), made.shuffle())
    return topology


def double(row: int) -> int:
    return 2 * row


class Fails:
    """Doubles, and fails a row so many times."""

    def __init__(self, row: int, times: int, error: type[Exception] = ValueError) -> None:
        self.row = row
        self.times = times
        self.error = error

    def __call__(self, row: int) -> int:
        if row == self.row and self.times:
            self.times -= 1
            raise self.error("not now")
        return 2 * row


@pytest.fixture
def store() -> Store:
    """Files, none yet."""
    return Store()


async def test_a_batch_is_written_before_it_is_done(store: Store) -> None:
    """Its number is that of the epoch, an empty one included; and Spark hears of it afterwards."""
    spark = FakeSpark(range(10), [], range(10, 15))
    spark.journal = store.events
    await run_to_end(written(spark, store, double), **LETTERS)
    assert {place: sorted(rows) for place, rows in store.written.items()} == {
        ("query-1234", 0): [2 * row for row in range(10)],
        ("query-1234", 1): [],
        ("query-1234", 2): [2 * row for row in range(10, 15)],
    }
    batches = [(f"batch {number}", ("written", number), f"done {number}") for number in range(3)]
    assert store.events == ["start", *(event for batch in batches for event in batch), "stop"]


async def test_a_failed_attempt_leaves_nothing_behind(store: Store) -> None:
    """The whole batch is emitted again, and written once."""
    spark = FakeSpark(range(10), range(10, 15))
    await run_to_end(written(spark, store, Fails(7, times=3)), **LETTERS)
    assert store.rows == [2 * row for row in range(15)]
    assert [event for event in store.events if event == ("written", 0)] == [("written", 0)]


async def test_what_is_given_up_is_a_dead_letter(store: Store) -> None:
    """The others of its batch are written without it."""
    letters: list[DeadLetter] = []
    spark = FakeSpark(range(10), range(10, 15))
    await run_to_end(written(spark, store, Fails(7, times=1, error=Reject)), dead_letters=letters.append)
    assert store.rows == [2 * row for row in range(15) if row != 7]
    assert [letter.value for letter in letters] == [7]


async def test_what_is_given_up_may_fail_its_batch(store: Store) -> None:
    """Nothing of it is written; it comes again by a restart of the query, and then is written as a whole."""
    spark = FakeSpark(range(10), range(10, 15))
    spark.journal = store.events
    running = await run_to_end(written(spark, store, Fails(7, times=1, error=Reject), "fail_batch"))
    assert store.rows == [2 * row for row in range(15)]
    assert running.statistics().components["rows"].dead_letters == 0
    assert store.events[:7] == ["start", "batch 0", "failed 0", "start", "batch 0", ("written", 0), "done 0"]


async def test_the_last_row_may_fail_its_batch(store: Store) -> None:
    """A batch that fails when everything is emitted already, and the spout is paused, comes again as any other."""
    spark = FakeSpark(range(10))
    seen: list[int] = []

    async def slowly(row: int) -> int:
        await asyncio.sleep(0.1)
        seen.append(row)
        return fails(row)

    fails = Fails(9, times=1, error=Reject)
    await run_to_end(written(spark, store, slowly, "fail_batch"))
    assert store.rows == [2 * row for row in range(10)]
    assert len(seen) == 20


async def test_a_batch_that_cannot_be_read_is_not_written_in_part(store: Store) -> None:
    """What was read of it is dropped, and comes again."""
    spark = FakeSpark(range(10))
    spark.unreadable = [SparkFailed("an executor is out of memory")]
    await run_to_end(written(spark, store, double), **LETTERS)
    assert store.rows == [2 * row for row in range(10)]
    assert [event for event in store.events if event[0] == "written"] == [("written", 0)]


async def test_a_write_that_fails_for_good_crashes(store: Store) -> None:
    """The batch is not done, and its query has ended."""
    store.failing = 100
    spark = FakeSpark(range(10))
    with pytest.raises(TopologyCrashed) as caught:
        await run_to_end(written(spark, store, double), **LETTERS)
    assert str(caught.value.__cause__) == "the disk is full"
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]


async def test_a_settled_batch_is_written_when_the_topology_drains(store: Store) -> None:
    """It is whole, so it need not come again; the one after it does."""
    spark = FakeSpark(range(10), range(10, 15))

    async def slowly(row: int) -> int:
        await asyncio.sleep(0.1)
        return 2 * row

    async with written(spark, store, slowly).run(**LETTERS):
        await asyncio.sleep(0.2)
    assert store.rows == [2 * row for row in range(10)]
    assert spark.journal == ["start", "batch 0", "done 0", "batch 1", "failed 1", "stop"]


async def test_a_batch_whose_end_is_not_known_yet(store: Store) -> None:
    """If all rows were read when the topology drains, Spark is given a moment to say that there are no more."""
    spark = FakeSpark(range(10))
    spark.late = 50
    async with written(spark, store, double).run(**LETTERS):
        await asyncio.sleep(0.01)
    assert store.rows == [2 * row for row in range(10)]
    assert spark.journal == ["start", "batch 0", "done 0", "stop"]


async def test_a_batch_in_part_is_not_written_when_the_topology_drains(store: Store) -> None:
    """Nothing of it is there until it has come again."""
    spark = FakeSpark(range(100))

    async def slowly(row: int) -> int:
        await asyncio.sleep(0.1)
        return 2 * row

    async with written(spark, store, slowly, max_spout_pending=10).run(**LETTERS):
        await asyncio.sleep(1.0)
    assert store.written == {}
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]


async def test_a_commit_whose_end_nobody_hears(store: Store) -> None:
    """A spout that is interrupted just when its batch is done ends that commit before it waits for another batch."""
    spark = FakeSpark(range(10), range(10, 15))
    async with written(spark, store, double).run(**LETTERS) as running:
        spark.on_done = running.deactivate
        await asyncio.sleep(1.0)
        spark.on_done = lambda: None
        running.activate()
        await running.finished()
    assert store.rows == [2 * row for row in range(15)]


async def test_dead_letters_need_a_place(store: Store) -> None:
    """Without a target they would die with the process, while Spark would not give their rows again."""
    with pytest.raises(StartFailed) as caught:
        await run_to_end(written(FakeSpark(), store, double))
    assert "run with dead_letters=" in str(caught.value.__cause__)


@pytest.mark.parametrize("seed", range(20))
async def test_runs_that_are_left_at_random(store: Store, seed: int) -> None:
    """Whenever a run is left, and whatever fails meanwhile, the next ones bring each row exactly once."""
    random = Random(seed)
    spark = FakeSpark(*(range(first, first + 10) for first in range(0, 100, 10)))

    async def unsteady(row: int) -> int:
        await asyncio.sleep(random.uniform(0.0, 0.05))
        if random.random() < 0.02:
            raise ValueError("not now")
        return 2 * row

    policy = RestartPolicy(most=1000)
    while spark.committed < 9:
        topology = written(spark, store, unsteady, random.choice(["dead_letter", "fail_batch"]), policy)
        try:
            async with asyncio.timeout(random.uniform(0.0, 3.0)), topology.run(**LETTERS) as running:
                if random.random() < 0.5:
                    await asyncio.sleep(random.uniform(0.0, 2.0))
                else:
                    await running.finished()
        except TimeoutError:
            pass
    assert store.rows == [2 * row for row in range(100)]


class Totals(Bolt[int, int]):
    """Holds its inputs, and emits their sum when it is flushed."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.held.append(tup)

    def flush(self, out: Collector[int]) -> None:
        held, self.held = self.held, []
        if held:
            out.emit(sum(tup.value for tup in held), anchors=held)
            for tup in held:
                out.ack(tup)


async def test_rows_of_a_failed_batch_are_not_joined_with_those_of_the_next_attempt(store: Store) -> None:
    """What a bolt holds of a batch that is given back is flushed first."""
    raised: list[int] = []

    async def logic(row: int) -> AsyncIterator[int]:
        if row == 5:
            yield row
            if not raised:
                raised.append(row)
                await asyncio.sleep(1.0)
                raise ValueError("not now")

    topology = Topology("joined", max_attempts=1, max_spout_pending=5)
    source: Any = Source(FakeSpark(range(200)), "fail_batch", RestartPolicy())
    made = topology.bolt("logic", logic, topology.spout("rows", source).shuffle(), outputs=int)
    totals = topology.bolt("totals", Totals, made.shuffle(), outputs=int)
    topology.bolt("write", Sink(store), totals.shuffle())
    await run_to_end(topology, **LETTERS)
    assert (raised, store.rows) == ([5], [5])


async def test_a_batch_that_brings_less_when_it_comes_again_leaves_nothing_of_before(store: Store) -> None:
    """It is killed before Spark has noted it, and then all of its rows are given up: what was written is replaced."""
    spark = FakeSpark(range(3))
    await run_to_end(written(spark, store, double), **LETTERS)
    assert store.rows == [0, 2, 4]
    spark.committed = -1

    def reject(row: int) -> int:
        raise Reject("no")

    await run_to_end(written(spark, store, reject), **LETTERS)
    assert store.written == {("query-1234", 0): []}


async def test_two_sinks_need_two_places(store: Store) -> None:
    """They would replace each other's batches."""
    topology = Topology("streamed")
    source: Any = Source(FakeSpark(range(3)), "dead_letter", None)
    rows = topology.spout("rows", source, outputs=int)
    for name in ("write", "more"):
        topology.bolt(name, Sink(store), rows.shuffle())
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology, **LETTERS)
    assert "bolts 'write' and 'more' both write exactly once to out" in str(caught.value.__cause__)


# With state.


class Count(KeyedBolt[int, int, int]):
    """Counts even and odd numbers."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += 1
        out.emit(tup.value)


def counted(
    spark: FakeSpark, store: Store, logic: Any = double, on_failure: OnFailure = "dead_letter"
) -> Topology:
    """Rows of a stream, counted, and written."""
    topology = Topology("counted", replay_delay=0.01, max_attempts=50)
    source: Any = Source(spark, on_failure, RestartPolicy(most=1000))
    counts = topology.bolt(
        "count", Count, topology.spout("rows", source, outputs=int).fields(lambda row: row % 2)
    )
    made = topology.bolt("logic", logic, counts.shuffle(), outputs=int)
    topology.bolt("write", Sink(store), made.shuffle())
    return topology


async def count_of(topology: Topology, state: MemoryStore) -> dict[int, int]:
    async with topology.run(state=state, **LETTERS) as running:
        await running.finished()
        return dict(running.state("count"))


async def test_a_stream_feeds_state(store: Store) -> None:
    """Each row counts once, and is written by an epoch of the state, whatever fails after the count."""
    spark, state = FakeSpark(range(10), [], range(10, 15)), MemoryStore("line")
    assert await count_of(counted(spark, store, Fails(7, times=3)), state) == {0: 8, 1: 7}
    assert store.rows == [2 * row for row in range(15)]
    assert [place for place, _ in store.written] == ["counted-write-line"] * 2
    assert spark.committed == 2


@pytest.mark.parametrize("noted", [-1, 0, 1, 2])
async def test_a_batch_that_is_durable_is_noted_without_being_run(store: Store, noted: int) -> None:
    """Spark gives it again, as it had not heard of it when the process died."""
    batches = range(10), [], range(10, 15)
    spark, state = FakeSpark(*batches), MemoryStore()
    await count_of(counted(spark, store), state)
    spark = FakeSpark(*batches, range(15, 20))
    spark.committed = noted
    assert await count_of(counted(spark, store), state) == {0: 10, 1: 10}
    assert spark.committed == 3


async def test_a_failed_batch_is_forgotten_by_the_state(store: Store) -> None:
    """It comes again by a restart of the query, and is counted once."""
    spark, state = FakeSpark(range(10), range(10, 15)), MemoryStore()
    reject = Fails(7, times=1, error=Reject)
    assert await count_of(counted(spark, store, reject, "fail_batch"), state) == {0: 8, 1: 7}
    assert "failed 0" in spark.journal
    assert store.rows == [2 * row for row in range(15)]


async def test_batches_that_the_state_lacks_are_missed(store: Store) -> None:
    """An older copy of the state, or a new one, would be without rows that Spark does not give again."""
    spark, state = FakeSpark(range(10), range(10, 15), range(15, 20)), MemoryStore()
    spark.committed = 0
    with pytest.raises(
        TopologyCrashed, match="the state has no batch of this query, and Spark has noted all before 1"
    ):
        await count_of(counted(spark, store), state)
    spark.committed = -1
    await count_of(counted(FakeSpark(range(10)), store), state)
    spark.committed = 1
    with pytest.raises(
        TopologyCrashed, match=r"the state has its batches up to 0.*all before 2 as done"
    ) as caught:
        await count_of(counted(spark, store), state)
    assert isinstance(caught.value.__cause__, StateUnusable)
    assert spark.committed == 1


async def test_the_state_of_another_query_fails_the_start(store: Store) -> None:
    """Its numbers mean other rows; the query is stopped."""
    state = MemoryStore()
    await count_of(counted(FakeSpark(range(10)), store), state)
    position = CutPosition("query-other", 0).encoded()
    state.commit(Commit(2, 0.0, {"rows[0] of 1": position}))
    spark = FakeSpark(range(10))
    with pytest.raises(StartFailed) as caught:
        await count_of(counted(spark, store), state)
    assert "the state has the position of another query, query-other" in str(caught.value.__cause__)
    assert spark.journal[-1] == "stop"


async def test_rows_of_a_state_are_not_written_again_without_it(store: Store) -> None:
    """The batch may be one of its epochs."""
    spark = FakeSpark(range(10))
    await count_of(counted(spark, store), MemoryStore())
    topology = Topology("counted")
    source: Any = Source(FakeSpark(range(10)), "dead_letter", None)
    topology.bolt("write", Sink(store), topology.spout("rows", source).shuffle())
    with pytest.raises(TopologyCrashed, match="has rows that were written by a state") as caught:
        await run_to_end(topology, **LETTERS)
    assert isinstance(caught.value.__cause__, NotExactlyOnce)


async def test_bolts_with_state_need_it(store: Store) -> None:
    """Without it another run would miss what was counted."""
    with pytest.raises(InvalidTopology, match="bolt 'count' keeps state"):
        counted(FakeSpark(), store).run(**LETTERS)


@pytest.mark.parametrize("seed", range(10))
async def test_kills_at_random_count_each_row_once(store: Store, seed: int) -> None:
    """From what stood on the disk at any moment, the next runs count and write each row once."""
    random = Random(seed)
    spark = FakeSpark(*(range(first, first + 10) for first in range(0, 60, 10)))
    state = MemoryStore()

    async def unsteady(row: int) -> int:
        await asyncio.sleep(random.uniform(0.0, 0.05))
        if random.random() < 0.02:
            raise ValueError("not now")
        return 2 * row

    moments: list[Any] = []
    async with counted(spark, store, unsteady).run(state=state, **LETTERS) as running:
        ended = asyncio.ensure_future(running.finished())
        while not ended.done():
            moments.append(deepcopy((spark.committed, store, state)))
            await asyncio.sleep(random.uniform(0.0, 0.05))
    for committed, files, kept in random.sample(moments, 8):
        again = FakeSpark(*spark.batches)
        again.committed = committed
        assert await count_of(counted(again, files), kept) == {0: 30, 1: 30}
        assert files.rows == [2 * row for row in range(60)]
