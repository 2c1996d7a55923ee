"""The spout of a stream whose batches are written exactly once; fakes stand for Spark and for the sink's files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    Reject,
    StartFailed,
    Stream,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.core.retries import RestartPolicy
from stormlet.errors import SparkFailed
from stormlet.spark.epochs import SourceKey
from stormlet.spark.stream.epoch_reader import EpochStreamReader
from stormlet.spark.stream.reader import OnFailure
from tests.helpers import run_to_end
from tests.spark.epoch_kit import Sink, Store
from tests.spark.stream_kit import FakeSpark, batches_of

pytestmark = pytest.mark.simulated_time

LETTERS: dict[str, Any] = {"dead_letters": lambda letter: None}


class Source:
    """Says of itself what its spouts are, as that of ``stream`` does."""

    gives_epochs = True
    resumes = True

    def __init__(self, spark: FakeSpark, on_failure: OnFailure, policy: RestartPolicy | None) -> None:
        self._batches = batches_of(spark, policy)
        self._on_failure = on_failure

    def __call__(self) -> EpochStreamReader:
        return EpochStreamReader(self._batches, self._on_failure)


def written(
    spark: FakeSpark,
    store: Store,
    logic: Any,
    on_failure: OnFailure = "dead_letter",
    policy: RestartPolicy | None = None,
    **configuration: object,
) -> Topology:
    """Rows of a stream, one bolt, and a sink of two tasks."""
    topology = Topology("streamed", **configuration)
    rows: Stream[Any] = topology.spout("rows", Source(spark, on_failure, policy))  # type: ignore[call-overload]
    made = topology.bolt("logic", logic, rows.shuffle(), parallelism=2)
    topology.bolt("write", Sink(store), made.shuffle(), parallelism=2)
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
    """Files that expect the epochs of the fake query."""
    store = Store()
    store.key = SourceKey("query-1234")
    return store


async def test_a_batch_is_written_before_it_is_done(store: Store) -> None:
    """Its number is that of the epoch, an empty one included; and Spark hears of it afterwards."""
    spark = FakeSpark(range(10), [], range(10, 15))
    spark.journal = store.events
    await run_to_end(written(spark, store, double), **LETTERS)
    assert store.written["out", 1] == []
    assert {epoch: sorted(rows) for (_, epoch), rows in store.written.items()} == {
        0: [2 * row for row in range(10)],
        1: [],
        2: [2 * row for row in range(10, 15)],
    }
    batches = [(f"batch {number}", ("written", number), f"done {number}") for number in range(3)]
    assert store.events == ["start", *(event for batch in batches for event in batch), "stop"]


async def test_a_failed_attempt_leaves_nothing_behind(store: Store) -> None:
    """The whole batch is emitted again, and written once."""
    spark = FakeSpark(range(10), range(10, 15))
    await run_to_end(written(spark, store, Fails(7, times=3)), **LETTERS)
    assert store.rows() == [2 * row for row in range(15)]
    assert [event for event in store.events if event == ("written", 0)] == [("written", 0)]


async def test_what_is_given_up_is_a_dead_letter(store: Store) -> None:
    """The others of its batch are written without it."""
    letters: list[DeadLetter] = []
    spark = FakeSpark(range(10), range(10, 15))
    await run_to_end(written(spark, store, Fails(7, times=1, error=Reject)), dead_letters=letters.append)
    assert store.rows() == [2 * row for row in range(15) if row != 7]
    assert [letter.value for letter in letters] == [7]


async def test_what_is_given_up_may_fail_its_batch(store: Store) -> None:
    """Nothing of it is written; it comes again by a restart of the query, and then is written as a whole."""
    spark = FakeSpark(range(10), range(10, 15))
    spark.journal = store.events
    running = await run_to_end(written(spark, store, Fails(7, times=1, error=Reject), "fail_batch"))
    assert store.rows() == [2 * row for row in range(15)]
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
    assert store.rows() == [2 * row for row in range(10)]
    assert len(seen) == 20


async def test_a_batch_that_cannot_be_read_is_not_written_in_part(store: Store) -> None:
    """What was read of it is dropped, and comes again."""
    spark = FakeSpark(range(10))
    spark.unreadable = [SparkFailed("an executor is out of memory")]
    await run_to_end(written(spark, store, double), **LETTERS)
    assert store.rows() == [2 * row for row in range(10)]
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
    assert store.rows() == [2 * row for row in range(10)]
    assert spark.journal == ["start", "batch 0", "done 0", "batch 1", "failed 1", "stop"]


async def test_a_batch_whose_end_is_not_known_yet(store: Store) -> None:
    """If all rows were read when the topology drains, Spark is given a moment to say that there are no more."""
    spark = FakeSpark(range(10))
    spark.late = 50
    async with written(spark, store, double).run(**LETTERS):
        await asyncio.sleep(0.01)
    assert store.rows() == [2 * row for row in range(10)]
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
    assert store.rows() == [2 * row for row in range(15)]


async def test_a_start_that_the_sink_refuses_stops_the_query(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query had to start first, to tell its id."""

    async def refuse(self: object, source: SourceKey) -> None:
        raise SparkFailed(f"not {source}")

    monkeypatch.setattr("stormlet.spark.epochs.Epochs.check", refuse)
    spark = FakeSpark(range(10), endless=True)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(written(spark, store, double), **LETTERS)
    assert str(caught.value.__cause__) == "not query-1234"
    assert spark.journal[-1] == "stop"


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
    assert store.rows() == [2 * row for row in range(100)]


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
    assert (raised, store.rows()) == ([5], [5])
