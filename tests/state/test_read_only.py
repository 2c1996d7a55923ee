"""Files that may only be read: looked into without being written, and without files beside them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from stormlet.errors import StateUnusable
from stormlet.state.sqlite import reading
from stormlet.state.sqlite.database import Database
from stormlet.state.sqlite.file import StateFile
from stormlet.state.sqlite.reading import StateReader
from tests.state.programs import Program
from tests.state.test_full_disk import largest_file

EPOCHS = 5


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file of some epochs, closed, in a directory of its own."""
    (tmp_path / "kept").mkdir()
    path = tmp_path / "kept" / "words.state"
    with closing(StateFile(path, "words")) as file:
        Program(file, 3).run(EPOCHS)
    return path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a killed run has left: the file as it was made, and all epochs in the log beside it."""
    (tmp_path / "live").mkdir()
    path = tmp_path / "live" / "words.state"
    with closing(StateFile(path, "words")) as file:
        Program(file, 3).run(EPOCHS)
        shutil.copytree(path.parent, tmp_path / "killed")
    return tmp_path / "killed" / "words.state"


def marked(path: Path) -> Path:
    """Have all files of a directory be marked as such that may only be read, which holds for root, too."""
    for each in path.parent.iterdir():
        each.chmod(0o444)
    return path


def contents(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    return {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in folder.iterdir()}


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    before = contents(path.parent)
    yield
    assert contents(path.parent) == before


def epoch_of(path: Path) -> int:
    with closing(StateReader(path)) as reader:
        return reader.load().epoch


def refusal(path: Path) -> str:
    with pytest.raises(StateUnusable) as refused:
        StateReader(path)
    return str(refused.value)


def test_a_file_that_is_marked_is_read(written: Path, tmp_path: Path) -> None:
    """All of it, and it can be copied; nothing is written."""
    with untouched(marked(written)), closing(StateReader(written)) as reader:
        assert reader.load().epoch == EPOCHS
        assert reader.at(EPOCHS).epoch == EPOCHS
        assert reader.topology() == "words"
        reader.backup(str(tmp_path / "copy.state"))
    assert epoch_of(tmp_path / "copy.state") == EPOCHS


@pytest.mark.parametrize("place", ["words.state", "."], ids=["file", "directory"])
def test_a_file_that_another_user_has_is_read(
    written: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither it nor its directory need be writable."""
    denied = written.parent / place
    monkeypatch.setattr("os.access", lambda path, mode: path != denied or mode != os.W_OK)
    with untouched(written):
        assert epoch_of(written) == EPOCHS


def test_what_a_killed_run_has_left_is_read_and_stays(killed: Path) -> None:
    """Its log, too: the last epoch is there and nowhere else."""
    with untouched(marked(killed)):
        assert epoch_of(killed) == EPOCHS


def test_a_run_that_goes_on_is_read(written: Path) -> None:
    """Whole epochs, as they come."""
    with closing(StateFile(written, "words")) as file:
        program = Program(file, 3)
        marked(written)
        for epoch in range(EPOCHS + 1, EPOCHS + 4):
            program.run(1)
            assert epoch_of(written) == epoch


def test_a_log_without_its_index_is_refused(killed: Path) -> None:
    """Sqlite would have to make the index; to read the file alone would be wrong."""
    killed.with_name("words.state-shm").unlink()
    with untouched(marked(killed)):
        assert refusal(killed) == (
            f"{killed} cannot be read without writing to it, as a killed run has left a -wal without its -shm; ask a "
            f"user who may write it and its directory, or copy it with the files beside it (-wal, -shm, -journal) to a "
            f"directory of your own"
        )


def test_an_empty_log_without_its_index_is_none(written: Path) -> None:
    """A reader that was killed has left it."""
    written.with_name("words.state-wal").touch()
    with untouched(marked(written)):
        assert epoch_of(written) == EPOCHS


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_a_file_on_a_full_disk_is_read(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside what sqlite has left there, when it had no room."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=0))
    for left in {}, {"-wal": b"", "-shm": b"abc"}:
        for ending, content in left.items():
            written.with_name(f"{written.name}{ending}").write_bytes(content)
        with largest_file(0), untouched(written):
            assert epoch_of(written) == EPOCHS


def test_what_a_killed_run_has_left_on_a_full_disk_is_read(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last epoch is in its log, which has its index."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=0))
    assert epoch_of(killed) == EPOCHS


def test_a_start_that_was_cut_short_is_refused(written: Path) -> None:
    """Its journal has to be rolled back first."""
    written.with_name("words.state-journal").write_bytes(b"\xd9\xd5\x05\xf9" + bytes(508))
    with untouched(marked(written)):
        assert "as a killed run has left a -journal; " in refusal(written)


def test_a_run_that_begins_meanwhile_is_noticed(written: Path) -> None:
    """There are no locks, so what was read may be of two epochs."""
    with closing(StateReader(marked(written))) as reader:
        assert reader.load().epoch == EPOCHS
        for each in written.parent.iterdir():
            each.chmod(0o644)
        with closing(StateFile(written, "words")) as file:
            Program(file, 3).run(1)
            with pytest.raises(
                StateUnusable, match=r"was written while it was read, as a run .*; look again$"
            ):
                reader.load()


def test_damage_that_is_the_beginning_of_a_run_is_none(written: Path) -> None:
    """Whoever sees half of what a run has written must not be told to remove the file."""
    with closing(StateReader(marked(written))) as reader:
        written.chmod(0o644)
        with closing(sqlite3.connect(written)) as other, other:
            other.execute("UPDATE log SET epoch = epoch + 1")
        with pytest.raises(StateUnusable, match="was written while it was read"):
            reader.load()


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_a_file_that_may_not_be_read(killed: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and the right that is missing."""
    denied = Path(f"{killed}{ending}")
    monkeypatch.setattr("os.access", lambda path, mode: path != denied and mode != os.W_OK)
    assert refusal(killed) == f"{denied} may not be read; give this user the right to read it"


@pytest.mark.parametrize(("begins", "tries"), [(True, 3), (False, 1)])
def test_a_run_that_begins_while_the_file_is_opened(
    written: Path, monkeypatch: pytest.MonkeyPatch, *, begins: bool, tries: int
) -> None:
    """What sqlite says of files that have come or gone meanwhile is no reason; without that it is."""
    real, tried = reading.check_marks, list[Database]()

    def check_marks(database: Database) -> None:
        tried.append(database)
        if begins:
            os.utime(written, (0, len(tried)))
        if len(tried) < 3:
            raise StateUnusable("unable to open database file")
        real(database)

    monkeypatch.setattr(reading, "check_marks", check_marks)
    if begins:
        assert epoch_of(written) == EPOCHS
    else:
        assert refusal(written) == "unable to open database file"
    assert len(tried) == tries
