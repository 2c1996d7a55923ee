"""A state file in whose place an older copy was put, and the sinks that know more (law X10)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stormlet import SqliteTable, Topology, TopologyCrashed
from stormlet.state.sqlite.file import StateFile

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])


async def run(folder: Path, numbers: list[int]) -> None:
    """Write numbers to two tables, two to an epoch."""
    topology = Topology("writing", state=folder / "some.state", epoch_messages=2, max_restarts=0)
    source = topology.spout("numbers", numbers)
    topology.bolt("own", SqliteTable("rows", int), source.shuffle())
    topology.bolt("other", SqliteTable("rows", int, path=folder / "other.db"), source.shuffle())
    async with topology.run() as running:
        await running.finished()


def rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM rows")]


async def gone_back(folder: Path) -> None:
    """Two epochs, and then a file of the first one in the place of both."""
    await run(folder, [0, 1])
    shutil.copy(folder / "some.state", folder / "copy.state")
    await run(folder, [0, 1, 2, 3])
    shutil.copy(folder / "copy.state", folder / "some.state")


async def test_an_older_copy_goes_on_where_it_was(tmp_path: Path) -> None:
    """Its rows and the position of its source belong together."""
    await gone_back(tmp_path)
    await run(tmp_path, [0, 1, 20, 30])
    assert rows(tmp_path / "some.state") == [0, 1, 20, 30]


async def test_a_sink_passes_over_the_numbers_that_it_has_had(tmp_path: Path) -> None:
    """In the same line of epochs, where the number alone says what an epoch brings."""
    await gone_back(tmp_path)
    await run(tmp_path, [0, 1, 20, 30, 4, 5])
    assert rows(tmp_path / "other.db") == [0, 1, 2, 3, 4, 5]


async def test_a_sink_that_has_rows_of_another_line_says_so(tmp_path: Path) -> None:
    """After that, nothing is passed over without a word."""
    await gone_back(tmp_path)
    with closing(StateFile(tmp_path / "some.state", "writing")) as file:
        file.rewind(1)
    with pytest.raises(TopologyCrashed, match="epoch 2 is of another line") as crash:
        await run(tmp_path, [0, 1, 20, 30])
    assert "remove those after epoch 1, and note that it has had epoch 1" in str(crash.value)
    assert rows(tmp_path / "other.db") == [0, 1, 2, 3]
