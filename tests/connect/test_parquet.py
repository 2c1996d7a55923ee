"""Rows of Parquet files as messages: types, positions, and files that are damaged."""

from __future__ import annotations

import asyncio
import math
import sys
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from stormlet import StartFailed, Topology, TopologyCrashed
from stormlet.connect import files
from stormlet.errors import ConnectorError, EndOfStream
from tests.cast import Note
from tests.connect.file_reader import reading


class Order(msgspec.Struct):
    """A row."""

    what: str
    cents: int


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that is read."""
    (tmp_path / "orders").mkdir()
    return tmp_path / "orders"


def source(folder: Path, **options: Any) -> files.Lines[Any]:
    """The rows of its files."""
    options = {"as_": Order, "poll": 0.01, **options}
    return files.Lines(folder, bookmark=folder.parent / "mark", format="parquet", **options)


def write(path: Path, first: int, count: int, *, group: int = 1000) -> None:
    """Write a file of so many rows, by groups of rows."""
    numbers = range(first, first + count)
    table = pa.table({"what": [f"order {number}" for number in numbers], "cents": list(numbers)})
    parquet.write_table(table, path, row_group_size=group)


def cents(source: files.Lines[Any], reader: Any) -> list[int]:
    """The cents of what was received."""
    return [source.decode(each).cents for each in reader.got]


@pytest.mark.asyncio
async def test_rows_of_parquet_files_are_records(folder: Path) -> None:
    """File after file by their names; what has another ending is not read, and then it is over."""
    write(folder / "b.parquet", 3, 2)
    write(folder / "a.parquet", 0, 3)
    (folder / "_SUCCESS").write_text("")
    orders = source(folder)
    async with reading(orders) as reader:
        await reader.lines(5)
        assert orders.decode(reader.got[0]) == Order("order 0", 0)
        assert cents(orders, reader) == [0, 1, 2, 3, 4]
        assert reader.got[1].name.endswith("@2")
        with pytest.raises(EndOfStream):
            await reader.session.receive(10, 1)


@pytest.mark.parametrize("done", [1, 4, 7, 5000, 5001])
@pytest.mark.asyncio
async def test_a_run_goes_on_behind_the_last_row_that_is_done(folder: Path, done: int) -> None:
    """In the middle of a group of rows, at its end, and behind batches."""
    write(folder / "a.parquet", 0, 9000, group=4000 if done >= 5000 else 4)
    async with reading(source(folder)) as reader:
        await reader.lines(done + 3)
        await reader.settle(*range(done), done + 1)
    async with reading(orders := source(folder)) as reader:
        await reader.lines(9000 - done)
        assert cents(orders, reader) == list(range(done, 9000))
        await reader.settle()
    async with reading(source(folder)) as reader:
        with pytest.raises(EndOfStream):
            await reader.session.receive(10, 1)


@pytest.mark.asyncio
async def test_a_file_that_was_written_again_begins_anew(folder: Path) -> None:
    """Though its inode and its first bytes are the same."""
    write(folder / "a.parquet", 0, 3000)
    async with reading(source(folder)) as reader:
        await reader.lines(3000)
        await reader.settle()
    before = (folder / "a.parquet").read_bytes()
    write(folder / "new", 0, 3001)
    (folder / "a.parquet").write_bytes((folder / "new").read_bytes())
    assert (folder / "a.parquet").read_bytes()[:1000] == before[:1000]
    async with reading(source(folder)) as reader:
        assert len(await reader.lines(3001)) == 3001


@pytest.mark.asyncio
async def test_each_type_of_parquet_is_one_of_json(folder: Path) -> None:
    """No value gets lost on the way: neither NaN, nor a time with nanoseconds, nor a map."""
    when = datetime(2026, 11, 25, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "price": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "at": pa.array([int(when.timestamp() * 10**6) * 1000 + 7], pa.timestamp("ns", "UTC")),
        "took": pa.array([1_000_000_007], pa.duration("ns")),
        "rates": pa.array([[math.nan, math.inf, 1.5]], pa.list_(pa.float32())),
        "nan": pa.array([-math.inf]),
        "tags": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        "raw": pa.array([b"\xff\x00"]),
        "none": pa.nulls(1),
    }
    parquet.write_table(pa.table(columns), folder / "a.parquet")

    class Row(msgspec.Struct):
        price: Decimal
        at: datetime
        took: float | str
        rates: list[float]
        nan: float
        tags: dict[str, int]
        raw: bytes
        none: str | None

    async with reading(rows := source(folder, as_=Row)) as reader:
        (body,) = await reader.lines(1)
        row = rows.decode(reader.got[0])
    assert (row.price, row.at, row.tags, row.raw, row.none) == (
        Decimal("1.50"),
        when,
        {"a": 1},
        b"\xff\x00",
        None,
    )
    assert math.isnan(row.rates[0])
    assert (row.rates[1:], row.nan) == ([math.inf, 1.5], -math.inf)
    assert '"rates":["NaN","Infinity",1.5]' in body
    assert row.took == "PT1S"


def damaged(folder: Path, how: str) -> None:
    """Write a file and damage it."""
    write(folder / "b.parquet", 0, 3000)
    whole = (folder / "b.parquet").read_bytes()
    middle = len(whole) // 4
    (folder / "b.parquet").write_bytes(
        {
            "half": whole[: len(whole) // 2],
            "empty": b"",
            "text": b"no Parquet",
            "page": whole[:middle] + b"\x99" * 64 + whole[middle + 64 :],
        }[how]
    )


@pytest.mark.parametrize("how", ["half", "empty", "text", "page"])
@pytest.mark.asyncio
async def test_a_damaged_file_is_named(folder: Path, how: str) -> None:
    """Nothing of it is passed over, and the error says what to do."""
    write(folder / "a.parquet", 0, 2)
    damaged(folder, how)
    async with reading(source(folder)) as reader:
        await reader.lines(2)
        with pytest.raises(
            ConnectorError, match=r"b\.parquet cannot be read as Parquet: .*: mend it, or take"
        ):
            await reader.session.receive(4000, 1)


@pytest.mark.asyncio
async def test_a_damaged_file_ends_the_run(folder: Path) -> None:
    """With its name, and what stands before it is done."""
    write(folder / "a.parquet", 0, 2)
    damaged(folder, "half")
    topology, seen = Topology("reading", max_restarts=0), list[Order]()
    topology.bolt("note", partial(Note, seen), topology.spout("orders", source(folder)).shuffle())
    with pytest.raises(Exception, match=r"b\.parquet cannot be read as Parquet") as caught:
        async with asyncio.timeout(60), topology.run() as running:
            await running.finished()
    assert isinstance(caught.value, TopologyCrashed)
    assert seen == [Order("order 0", 0), Order("order 1", 1)]
    async with reading(source(folder)) as reader:
        with pytest.raises(ConnectorError):  # not the rows before it
            await reader.session.receive(1, 1)


@pytest.mark.asyncio
async def test_a_row_that_is_no_record_is_a_dead_letter(folder: Path) -> None:
    """With its JSON; the others are done."""
    table = pa.table({"what": ["a", None, "c"], "cents": [1, 2, 3]})
    parquet.write_table(table, folder / "a.parquet")
    topology = Topology("reading")
    letters: list[Any] = []
    topology.bolt("note", Note, topology.spout("orders", source(folder)).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await running.finished()
    assert [each.value for each in letters] == [b'{"what":null,"cents":2}']


@pytest.mark.asyncio
async def test_without_pyarrow_the_start_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what brings it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    topology = Topology("reading")
    topology.bolt("note", Note, topology.spout("orders", source(folder)).shuffle())
    with pytest.raises(StartFailed, match=r"pip install 'stormlet\[parquet\]'"):
        async with topology.run():
            pass
