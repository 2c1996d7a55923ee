"""Looks at a file while a run writes it, and copies of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from stormlet.core.state.commits import Commit
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from stormlet.state.sqlite.reading import StateReader
from tests.state.programs import Program, differences


def test_a_reader_beside_a_run(file: StateFile, tmp_path: Path) -> None:
    """It needs no lock, and sees each epoch once that is durable, and the past."""
    program = Program(file, 1)
    program.run(3)
    with closing(StateReader(tmp_path / "words.state")) as reader:
        assert reader.load() == file.load()
        program.run(2)
        assert reader.load() == file.load()
        assert reader.at(5) == file.at(5)


def test_a_reader_changes_nothing(file: StateFile, tmp_path: Path) -> None:
    """Sqlite itself refuses."""
    with closing(StateReader(tmp_path / "words.state")) as reader:
        with pytest.raises(StateUnusable, match="readonly database"):
            reader._database.put("meta", "line", "x")  # pyright: ignore[reportPrivateUsage]
        assert reader.load() == file.load()


def test_a_reader_after_a_kill(tmp_path: Path, file: StateFile, reopened: Callable[[], StateFile]) -> None:
    """It sees what is still in the write-ahead log."""
    Program(file, 1).run(3)
    for name in ("words.state", "words.state-wal"):
        (tmp_path / f"killed-{name}").write_bytes((tmp_path / name).read_bytes())
    with closing(StateReader(tmp_path / "killed-words.state")) as reader:
        assert reader.load() == file.load()


def test_a_copy_loads_as_the_same(file: StateFile, tmp_path: Path) -> None:
    """With its line, its shapes and its past; a reader writes copies, too."""
    Program(file, 1).run(3)
    file.backup(str(tmp_path / "copy"))
    with closing(StateReader(tmp_path / "copy")) as reader:
        reader.backup(str(tmp_path / "second"))
    with closing(StateFile(tmp_path / "second", "words")) as copy:
        assert copy.load() == file.load()
        assert copy.at(3) == file.at(3)
        Program(copy, 1).run(3)
    assert file.load().epoch == 3


def test_a_copy_while_a_run_goes_on(file: StateFile, tmp_path: Path) -> None:
    """It is made by another thread, holds up no commit, and is of one epoch."""
    program = Program(file, 1)
    program.run(5)
    for number in range(4):
        copying = Thread(target=file.backup, args=[str(tmp_path / f"copy{number}")])
        copying.start()
        program.run(5)
        copying.join()
        with closing(StateReader(tmp_path / f"copy{number}")) as reader:
            assert list(differences(reader.load(), 1)) == []


def test_nothing_else_is_left(file: StateFile, tmp_path: Path) -> None:
    """A copy is one file."""
    file.backup(str(tmp_path / "copy"))
    file.close()
    assert {each.name for each in tmp_path.iterdir()} == {"copy", "words.state", "words.state.lock"}


def test_a_copy_overwrites_nothing(file: StateFile, tmp_path: Path) -> None:
    """Another path is asked for."""
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(StateUnusable, match="copy is there already; a copy needs a new path"):
        file.backup(str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == "mine"


def test_what_a_killed_process_has_left_of_a_copy(file: StateFile, tmp_path: Path) -> None:
    """It is written anew."""
    (tmp_path / "copy.partial").write_text("half")
    file.backup(str(tmp_path / "copy"))
    with closing(StateReader(tmp_path / "copy")) as reader:
        assert reader.load() == file.load()


def test_a_copy_where_there_is_no_directory(file: StateFile, tmp_path: Path) -> None:
    """It is named, and the run goes on."""
    path = tmp_path / "missing" / "copy"
    with pytest.raises(
        StateUnusable, match=f"{path} cannot be written, as there is no directory .*missing; make that first"
    ):
        file.backup(str(path))
    file.commit(Commit(1, 1.0, {}))


def test_a_copy_of_memory() -> None:
    """There is no file to copy."""
    with pytest.raises(
        StateUnusable, match="in memory cannot be saved to copy; run the topology with state="
    ):
        MemoryStore().backup("copy")
