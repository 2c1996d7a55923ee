"""What an exactly-once sink keeps of what it gets: tuples by hand, as none of these comes from a sound topology."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from stormlet import Collector, Configuration, NotExactlyOnce, TaskContext, Tuple
from stormlet.core.schema import schema_of
from stormlet.core.tuples import Lineage, Source
from stormlet.spark.epochs import Epochs
from stormlet.spark.frames import Origin
from stormlet.spark.sink.bolts import EpochSink, Stale
from tests.spark.epoch_kit import KEY, Store, StoreWriter

pytestmark = pytest.mark.simulated_time

SOURCE = Source("numbers", "default", 2, schema_of(None))


class Settled(Collector[None]):
    """Notes what is failed."""

    def __init__(self) -> None:
        self.failed: list[tuple[object, str, bool]] = []

    def fail(
        self,
        tup: Tuple[object],
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> None:
        self.failed.append((tup.value, reason, permanent))


class Bench:
    """A sink that is prepared, and what belongs to it."""

    def __init__(self) -> None:
        self.store = Store()
        self.writer = StoreWriter(self.store, "out")
        self.sink = EpochSink(self.writer, 10, 1.0)
        self.context = TaskContext("test", "write", 3, 0, 1, Configuration())
        self.epochs = self.context.shared.one(Epochs)
        self.out = Settled()

    async def execute(self, *tups: Tuple[Any]) -> None:
        await self.sink.execute_batch(tups, cast("Collector[None]", self.out))

    async def written(self) -> list[Any]:
        await self.epochs.write(KEY, self.epochs.seal())
        return self.store.rows()


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    """Within the first attempt at epoch 4."""
    made = Bench()
    await made.sink.prepare(made.context)
    made.epochs.begin(4)
    yield made
    await made.sink.cleanup()


def tup(value: int, attempt: int = 1, origin: object = Origin(0, 7, 4), root: int = 5) -> Tuple[int]:
    return Tuple(value, SOURCE, Lineage(attempt, origin), root, 9)


async def test_rows_of_the_attempt_are_kept(bench: Bench) -> None:
    """Those that do not fit are failed for good."""
    await bench.execute(tup(1), tup(-2), tup(3))
    assert bench.out.failed == [(-2, "negative", True)]
    assert await bench.written() == [1, 3]


async def test_rows_of_older_attempts_are_failed(bench: Bench) -> None:
    """So that what they are joined with is replayed, and nothing is lost."""
    await bench.execute(tup(1))
    bench.epochs.begin(4)
    await bench.execute(tup(2, attempt=1), tup(3, attempt=2), tup(4, attempt=2, origin=Origin(0, 7, 3)))
    assert [(value, permanent) for value, _, permanent in bench.out.failed] == [(2, False), (4, False)]
    assert await bench.written() == [3]


async def test_an_attempt_that_ends_meanwhile(bench: Bench) -> None:
    """Rows whose conversion was under way when the next attempt began are not kept under that one."""
    execution = asyncio.ensure_future(bench.execute(tup(1)))
    await asyncio.sleep(0)
    bench.epochs.begin(4)
    with pytest.raises(Stale, match="does not count any more"):
        await execution
    assert await bench.written() == []


async def test_rows_are_kept_while_an_epoch_is_written(bench: Bench) -> None:
    """Their conversion does not wait for the write, which blocks a thread of its own."""
    await bench.execute(tup(1))
    bench.writer.gate.clear()
    writing = asyncio.ensure_future(bench.written())
    await asyncio.sleep(0)
    bench.epochs.begin(5)
    await bench.execute(tup(2, origin=Origin(0, 8, 5)))
    assert not writing.done()
    bench.writer.gate.set()
    assert await writing == [1]
    assert await bench.written() == [1, 2]


@pytest.mark.parametrize(
    "wrong", [tup(1, root=0), tup(1, origin=None), tup(1, origin=Origin(0, 7)), tup(1, origin="x")]
)
async def test_rows_of_no_epoch_are_refused(bench: Bench, wrong: Tuple[int]) -> None:
    """Untracked, or without an epoch: nobody would emit them again, or never without a double."""
    with pytest.raises(NotExactlyOnce, match="comes from no row of the source"):
        await bench.execute(tup(1), wrong)
    with pytest.raises(NotExactlyOnce, match="epoch 4 is not written"):
        await bench.written()
    assert bench.store.rows() == []


async def test_rows_before_the_first_epoch_are_refused() -> None:
    """Such as dead letters, whose epochs were done in another run."""
    bench = Bench()
    await bench.sink.prepare(bench.context)
    with pytest.raises(NotExactlyOnce, match="dead letters that are replayed"):
        await bench.execute(tup(1))
    await bench.sink.cleanup()
