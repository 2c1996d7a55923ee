"""A sink that is a committer of the state: what Spark writes is what the state says, whatever fails and dies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    DeadLetter,
    InvalidTopology,
    KeyedBolt,
    NotExactlyOnce,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.schema import Schema
from stormlet.core.state.commits import Commit, Rows
from stormlet.errors import SparkFailed
from stormlet.model.components import BatchBolt
from stormlet.model.state.committers import CommitterFactory, RowSpec
from stormlet.spark import DataFrameSink
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.sink.committed import CommittedSink, owner_of, packed, unpacked
from stormlet.spark.sink.writer import EpochWriter, SourceKey
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from tests.helpers import run_to_end

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]


class Place(EpochWriter):
    """Writes epochs into a dict, by source and number; what is negative does not fit."""

    def __init__(self) -> None:
        self.epochs: dict[tuple[str, int], list[int]] = {}
        self.writes: list[int] = []
        self.failing = 0
        self.others: list[tuple[str, str, int]] = []
        self.old: list[str] = []
        self.written_empty: list[str] = []

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Nothing to open."""

    def convert(self, values: Sequence[Any]) -> Batch:
        misfits = {place: "negative" for place, value in enumerate(values) if value < 0}
        return Batch(pa.table({"number": [value for value in values if value >= 0]}), misfits)

    destination = "a dict"

    def old_epochs(self) -> Iterator[str]:
        return iter(self.old)

    def write_nothing(self, source: SourceKey) -> None:
        self.written_empty.append(str(source))

    def epochs_by_line(self, owner: str) -> Iterator[tuple[str, str, int]]:
        assert owner == "sums-write"
        return iter(self.others)

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
        if self.failing:
            self.failing -= 1
            raise SparkFailed("the disk is full")
        self.writes.append(epoch)
        rows = [number for table in tables for number in table.column("number").to_pylist()]
        self.epochs[str(source), epoch] = rows

    def interrupt(self) -> None:
        """There is nothing to interrupt."""

    @property
    def rows(self) -> list[int]:
        return sorted(row for rows in self.epochs.values() for row in rows)


class Sink(CommitterFactory):
    """Makes sinks that write to a place."""

    def __init__(self, place: Place, size: int = 10) -> None:
        self.place = place
        self.size = size

    @property
    def rows_kept(self) -> RowSpec:
        return RowSpec(bytes)

    def __call__(self) -> BatchBolt[Any, None]:
        return CommittedSink(self.place, self.size, 1.0)


class Sum(KeyedBolt[int, int, int]):
    """Running sums of even and odd numbers."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += tup.value
        out.emit(self.total)


class Flaky(BasicBolt[int, int]):
    """Fails some calls, as a service does."""

    def __init__(self, seed: int, share: float) -> None:
        self.random = Random(seed)
        self.share = share

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if self.random.random() < self.share:
            raise OSError("flaky")
        out.emit(tup.value)


def sums(numbers: Sequence[int]) -> list[int]:
    """What the topology writes, by a loop."""
    totals, found = [0, 0], list[int]()
    for number in numbers:
        totals[number % 2] += number
        found.append(totals[number % 2])
    return sorted(found)


def topology(
    numbers: Sequence[int],
    place: Place,
    state: MemoryStore | str,
    seed: int = 0,
    share: float = 0.0,
    **options: Any,
) -> Topology:
    made = Topology("sums", state=state, epoch_messages=25, replay_delay=0.01, **options)
    summed = made.bolt("sum", Sum, made.spout("numbers", numbers).fields(lambda number: number % 2))
    passed = made.bolt("pass", lambda: Flaky(seed, share), summed.shuffle(), outputs=int)
    made.bolt("write", Sink(place), passed.shuffle())
    return made


async def test_each_epoch_is_written_as_a_whole() -> None:
    """In order, from state and from a list, into one directory of the line for each."""
    place, state = Place(), MemoryStore("line")
    await run_to_end(topology(range(60), place, state))
    assert list(place.epochs) == [("sums-write-line", 1), ("sums-write-line", 2), ("sums-write-line", 3)]
    assert place.rows == sums(range(60))


@pytest.mark.parametrize("seed", range(8))
async def test_failures_before_the_sink_bring_nothing_twice(seed: int) -> None:
    """They come after state was touched, so that epochs are cut and repeated."""
    place = Place()
    await run_to_end(topology(range(200), place, MemoryStore(), seed, 0.05, max_attempts=20))
    assert place.rows == sums(range(200))


@pytest.mark.parametrize("seed", range(8))
async def test_failures_beside_the_sink_bring_nothing_twice(seed: int) -> None:
    """The sink may have the row already, or hold it in a batch, when another branch of its message fails."""
    made, place = (
        Topology("sums", state=MemoryStore(), epoch_messages=25, replay_delay=0.01, max_attempts=20),
        Place(),
    )
    numbers = made.spout("numbers", range(200))
    made.bolt("write", Sink(place, 4), numbers.shuffle())
    made.bolt("beside", lambda: Flaky(seed, 0.05), numbers.shuffle(), outputs=int)
    await run_to_end(made)
    assert place.rows == list(range(200))


async def test_rows_that_do_not_fit_are_dead_letters() -> None:
    """The others of their batch are written."""
    letters: list[DeadLetter] = []
    made, place = Topology("sums", state=MemoryStore()), Place()
    made.bolt("write", Sink(place), made.spout("numbers", [1, -2, 3]).shuffle())
    await run_to_end(made, dead_letters=letters.append)
    assert [letter.value for letter in letters] == [-2]
    assert place.rows == [1, 3]


async def test_an_epoch_of_misfits_alone_has_no_directory() -> None:
    """Nothing was written of it before, so that nothing must be replaced."""
    made, place = Topology("sums", state=MemoryStore()), Place()
    made.bolt("write", Sink(place), made.spout("numbers", [-2]).shuffle())
    await run_to_end(made, dead_letters=lambda _: None)
    assert place.epochs == {}


async def test_a_run_that_ends_without_rows_leaves_the_columns() -> None:
    """One that has written some does not."""
    for numbers, written in (([], ["sums-write-none"]), ([2], []), ([-2], ["sums-write-none"])):
        place = Place()
        made = Topology("sums", state=MemoryStore())
        made.bolt("write", Sink(place), made.spout("numbers", numbers).shuffle())
        await run_to_end(made, dead_letters=lambda _: None)
        assert place.written_empty == written


async def test_rows_that_an_earlier_version_has_written_are_refused() -> None:
    """Nobody knows which of them would come again."""
    place = Place()
    place.old = ["out/source=frame-0123456789abcdef-300"]
    with pytest.raises(TopologyCrashed, match="has rows that an earlier version of stormlet has written"):
        await run_to_end(topology(range(60), place, MemoryStore()))
    assert place.rows == []


async def test_a_write_that_fails_is_tried_again() -> None:
    """With the same rows; nothing is executed for it again."""
    place = Place()
    place.failing = 3
    await run_to_end(topology(range(30), place, MemoryStore()))
    assert place.writes == [1, 2]
    assert place.rows == sums(range(30))


async def test_a_write_that_keeps_failing_is_left_for_the_next_run() -> None:
    """The topology crashes with Spark's error; the next run begins with the epoch, and goes on."""
    place, state = Place(), MemoryStore()
    place.failing = 10_000
    with pytest.raises(TopologyCrashed) as crashed:
        await run_to_end(topology(range(60), place, state))
    assert isinstance(crashed.value.__cause__, SparkFailed)
    assert place.rows == []
    place.failing = 0
    await run_to_end(topology(range(60), place, state))
    assert place.rows == sums(range(60))


async def test_a_kill_beside_any_write() -> None:
    """Before an epoch is written, or before anybody has noted that it is: the next run brings the rest, once."""
    left: list[tuple[MemoryStore, dict[tuple[str, int], list[int]]]] = []
    state = MemoryStore()

    class Watched(Place):
        def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
            left.append((deepcopy(state), dict(self.epochs)))
            super().write_epoch(source, epoch, tables)
            left.append((deepcopy(state), dict(self.epochs)))

    await run_to_end(topology(range(130), Watched(), state, 3, 0.05, max_attempts=20))
    assert len(left) >= 12
    for kept, epochs in left:
        place = Place()
        place.epochs = epochs
        await run_to_end(topology(range(130), place, kept))
        assert place.rows == sums(range(130))


async def test_another_line_with_the_same_epochs_is_refused() -> None:
    """The state file was removed, and the rows were not: they would be there twice."""
    place = Place()
    place.others = [("out/source=sums-write-old", "old", 7)]
    with pytest.raises(TopologyCrashed) as crashed:
        await run_to_end(topology(range(60), place, MemoryStore()))
    assert isinstance(crashed.value.__cause__, NotExactlyOnce)
    assert str(crashed.value.__cause__) == (
        "write: out/source=sums-write-old has rows that would be there twice: epoch 1 is of another line, as the state "
        "began anew: the sink has rows up to epoch 7; remove them, and the note of that; or write elsewhere"
    )
    assert "restarts" not in str(crashed.value)  # none would cure it
    assert place.rows == []


async def test_rows_of_epochs_that_were_left_behind_are_refused(tmp_path: Path) -> None:
    """As the state was rewound to an epoch before; once they are removed, the next run goes on."""
    state = tmp_path / "sums.state"
    place = await _rewound(state, to=2)
    with pytest.raises(TopologyCrashed, match="was rewound to epoch 2: the sink has rows up to epoch 3"):
        await run_to_end(topology(range(90), place, str(state)))
    ((_, line, _),) = place.others
    place.others = [("out/source=sums-write-old", line, 2)]
    del place.epochs[f"sums-write-{line}", 3]
    await run_to_end(topology(range(90), place, str(state)))
    assert place.rows == sums(range(90))


async def test_an_epoch_that_another_line_has_written_is_passed_over(tmp_path: Path) -> None:
    """The run was killed before it had noted that, and then the state was rewound to that very epoch."""
    state = tmp_path / "sums.state"
    place = await _rewound(state, to=3, killed=True)
    await run_to_end(topology(range(90), place, str(state)))
    assert place.rows == sums(range(90))


async def _rewound(state: Path, to: int, *, killed: bool = False) -> Place:
    """Have a state file rewound, and return the place that it has written to."""
    place = Place()
    await run_to_end(topology(range(60), place, str(state)))
    with closing(StateFile(state)) as file:
        line = file.load().line
        if killed:
            blob = msgspec.msgpack.encode(
                [packed(pa.table({"number": place.epochs[f"sums-write-{line}", 3]}))]
            )
            file.commit(Commit(4, 0.0, {}, outbox=[Rows("write", 3, blob)]))
        file.rewind(4 if killed else to)
    place.others = [("out/source=sums-write-old", line, 3)]
    return place


async def test_a_batch_without_an_end_is_flushed_by_the_epoch() -> None:
    """A batch larger than the epoch does not hold it up."""
    made, place = Topology("sums", state=MemoryStore(), epoch_messages=3), Place()
    made.bolt("write", Sink(place, 1000), made.spout("numbers", range(9)).shuffle())
    await run_to_end(made)
    assert [len(rows) for rows in place.epochs.values()] == [3, 3, 3]


async def test_tables_come_back_from_their_bytes() -> None:
    """With their schema, also without rows."""
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert unpacked(packed(table)).equals(table)
    assert unpacked(packed(table.slice(0, 0))).schema == table.schema


@pytest.mark.parametrize(
    ("topology", "component", "owner"),
    [("a", "b", "a-b"), ("orders of 2026", "write/x", "orders_of_2026-write_x"), ("7", "b", "t7-b")],
)
async def test_a_sink_is_named_in_directories(topology: str, component: str, owner: str) -> None:
    """In letters that any file system takes, and as what Spark reads as text."""
    assert owner_of(topology, component) == owner


async def test_several_tasks_are_refused_with_state(tmp_path: Path) -> None:
    """Epochs come one after another."""
    made = Topology("sums", state=MemoryStore())
    write = DataFrameSink(tmp_path / "out", exactly_once=True, schema="number bigint")
    made.bolt("write", write, made.spout("numbers", [1]).shuffle(), parallelism=2)
    with pytest.raises(InvalidTopology, match=r"bolt 'write' is a committer.*cannot have parallelism=2"):
        made.run()


async def test_without_state_the_source_must_give_epochs(tmp_path: Path) -> None:
    """The advice names the ways out."""
    made = Topology("sums")
    write = DataFrameSink(tmp_path / "out", exactly_once=True, schema="number bigint")
    made.bolt("write", write, made.spout("numbers", [1]).shuffle())
    with pytest.raises(
        InvalidTopology, match="epochs of spout 'numbers' would be others in the next run; set"
    ):
        made.run()
    made.run(state=tmp_path / "s").close()
