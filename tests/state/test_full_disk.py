"""Disks that are full, and disks that fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from stormlet.core.state.commits import Append, Commit
from stormlet.errors import StateUnusable
from stormlet.state.sqlite.file import StateFile
from tests.state.connections import connection_of
from tests.state.programs import TOTAL, Program, differences

FULL = r"words\.state cannot be written, as its disk is full; free some space and start again: no committed epoch is"


@contextmanager
def room_for(file: StateFile, pages: int) -> Generator[None]:
    """Let the file grow by so many pages."""
    connection = connection_of(file)
    (used,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {used + pages}")
    try:
        yield
    finally:
        connection.execute("PRAGMA max_page_count = 100000000")


def test_a_full_disk_keeps_all_epochs_before(file: StateFile, reopened: Callable[[], StateFile]) -> None:
    """Whichever part of an epoch has no room, the next run finds the last whole one, and goes on from it."""
    program = Program(file, 1)
    with room_for(file, 20), pytest.raises(StateUnusable, match=FULL):
        program.run(1000)
    assert list(differences(file.load(), 1)) == []
    file.close()
    again = reopened()
    assert again.load().epoch == program.epoch > 3
    Program(again, 1).run(5)
    assert list(differences(again.load(), 1)) == []


def test_an_epoch_that_had_no_room_begins_no_round(file: StateFile) -> None:
    """The same run may commit it again, when there is some."""
    file.commit(Commit(1, 1.0, {}, [Append(TOTAL, b"a"), Append(TOTAL, b"b", begins_round=True)]))
    second = Commit(2, 2.0, {}, [Append(TOTAL, b"c", begins_round=True), Append(TOTAL, bytes(10**6))])
    with room_for(file, 20), pytest.raises(StateUnusable, match=FULL):
        file.commit(second)
    assert file.at(1).states == {TOTAL: (b"a", b"b")}
    file.commit(second)
    assert file.at(2).states == {TOTAL: (b"b", b"c", bytes(10**6))}


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_a_file_that_may_not_grow(file: StateFile, reopened: Callable[[], StateFile], tmp_path: Path) -> None:
    """What the system refuses is told with sqlite's own name for it, and no epoch is lost."""
    program = Program(file, 1)
    program.run(5)
    with largest_file(len((tmp_path / "words.state-wal").read_bytes()) + 100_000):
        with pytest.raises(
            StateUnusable, match=r"words\.state cannot be read or written \(SQLITE_IOERR_WRITE: .*\)"
        ):
            file.commit(Commit(6, 6.0, {}, [Append(TOTAL, Random(1).randbytes(300_000))]))
        assert file.load().epoch == 5
    file.close()
    assert list(differences(reopened().load(), 1)) == []


@contextmanager
def largest_file(size: int) -> Generator[None]:
    """Have the system refuse to make a file larger."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
