"""Files that a run does not take, each in a sentence that names the path and the way out."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormlet.core.state.commits import Append, Commit, Rows, Store, Stored
from stormlet.errors import StateUnusable
from stormlet.state import stores
from stormlet.state.refusals import LARGEST
from stormlet.state.sqlite.file import StateFile
from stormlet.state.sqlite.layout import PAGE
from stormlet.state.sqlite.reading import StateReader
from stormlet.topology import Topology
from tests.state.programs import TOTAL, Program

LEAF = 0x0D
"""The first byte of a page with rows of a table."""


def refusal(path: Path, topology: str | None = "words") -> str:
    """The sentence, without the path that it must begin with or name."""
    with pytest.raises(StateUnusable) as refused:
        StateFile(path, topology)
    assert str(path) in str(refused.value)
    return str(refused.value).removeprefix(f"{path} ")


def load(path: Path) -> Stored:
    with closing(StateFile(path, "words")) as file:
        return file.load()


def sqlite_file(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file of some epochs, closed."""
    path = tmp_path / "words.state"
    with closing(StateFile(path, "words")) as file:
        Program(file, 3).run(25)
    return path


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is left as it is."""
    path = tmp_path / "words.state"
    path.write_text("notes of mine\n" * 100)
    assert refusal(path).startswith(
        "is no state file, or its beginning is damaged; give another path, or put"
    )
    assert path.read_text() == "notes of mine\n" * 100


def test_a_database_of_another_program(tmp_path: Path) -> None:
    """It is left as it is, in its own journal mode."""
    path = sqlite_file(tmp_path / "words.state", "CREATE TABLE mine (x)")
    before = path.read_bytes()
    assert refusal(path) == "is the sqlite file of another program; give the path of a new file"
    assert path.read_bytes() == before


def test_a_newer_version(tmp_path: Path) -> None:
    """Its layout is unknown here."""
    path = tmp_path / "words.state"
    StateFile(path, "words").close()
    sqlite_file(path, "PRAGMA user_version=2")
    assert refusal(path) == (
        "was written by a newer version of stormlet (layout 2; this one reads up to 1); install that version, or give "
        "the path of a new file"
    )


def test_the_file_of_another_topology(tmp_path: Path) -> None:
    """Both are named; whoever names no topology may look."""
    path = tmp_path / "words.state"
    StateFile(path, "orders").close()
    assert refusal(path) == "has the state of the topology 'orders'; give 'words' a file of its own"
    StateFile(path).close()


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    """It may have been made to hold a name, or by a run that was killed at once."""
    path = tmp_path / "words.state"
    path.touch()
    StateFile(path, "words").close()
    StateFile(path, "words").close()


def test_an_empty_file_says_so_to_whoever_looks(tmp_path: Path) -> None:
    """It is of no other program, and of no epoch."""
    path = tmp_path / "words.state"
    path.touch()
    with pytest.raises(
        StateUnusable, match="is empty: no run has begun with it, or one was killed in that moment; "
    ):
        StateReader(path)
    assert path.read_bytes() == b""


def test_an_empty_file_beside_a_log_was_emptied(written: Path) -> None:
    """A run has a log only when its file is made; sqlite would remove it, with all that is in it."""
    written.write_bytes(b"")
    log = written.with_name("words.state-wal")
    log.write_bytes(bytes(32))
    assert refusal(written).startswith(
        "is damaged (it is empty, and the -wal file beside it is not); put a saved"
    )
    with pytest.raises(StateUnusable, match="it is empty, and the -wal file beside it is not"):
        StateReader(written)
    assert log.exists()


def test_a_missing_file_of_no_topology(tmp_path: Path) -> None:
    """Commands that only look make no file."""
    path = tmp_path / "words.state"
    assert refusal(path, None) == f"there is no file {path}; a run with state= makes it"
    with pytest.raises(StateUnusable, match="there is no file"):
        StateReader(path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory(tmp_path: Path) -> None:
    """A file in it would do."""
    assert refusal(tmp_path) == f"is a directory; give the path of a file, such as {tmp_path}/topology.state"


@pytest.mark.timeout(60)  # to open a pipe would wait for somebody at its other end
def test_what_keeps_nothing(tmp_path: Path) -> None:
    """Nor is a lock left beside it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(pipe) == "is a pipe or a device, which keeps nothing; give the path of a file"
    assert refusal(Path(os.devnull)) == "is a pipe or a device, which keeps nothing; give the path of a file"
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    """It is not made unasked: the path may be mistyped."""
    path = tmp_path / "missing" / "words.state"
    assert refusal(path) == f"cannot be kept, as there is no directory {path.parent}; make that first"


def test_a_file_that_may_only_be_read(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused at the start, not at the first commit."""
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    assert refusal(written) == "may not be written; give this user the right to write it and its directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("locked", [".", "words.state"])
def test_no_permission(written: Path, locked: str) -> None:
    """Neither to the directory nor to the file."""
    written.with_name("words.state.lock").unlink()
    (written.parent / locked).chmod(0o500)
    try:
        assert "give this user the right to write" in refusal(written)
    finally:
        (written.parent / locked).chmod(0o700)


@pytest.mark.skipif(sys.platform != "linux", reason="a place where nobody may write")
def test_no_permission_even_for_root() -> None:
    """The directory is named."""
    path = Path("/sys/kernel/words.state")
    assert refusal(path) == (
        "cannot be kept: [Errno 13] Permission denied: '/sys/kernel/words.state.lock'; give this user the right to "
        "write in /sys/kernel, or another path"
    )


def test_two_runs_in_one_process(tmp_path: Path, file: StateFile) -> None:
    """The second is refused, by whichever name it knows the file, until the first lets go."""
    path, link = tmp_path / "words.state", tmp_path / "link"
    link.symlink_to(path)
    assert refusal(path) == (
        "is in use by another run of this process; wait for its end, or give this run another file"
    )
    with pytest.raises(StateUnusable, match="is in use by another run of this process"):
        StateFile(link, "words")
    file.close()
    StateFile(link, "words").close()


def test_a_second_name(written: Path) -> None:
    """A run by one name would not know of a run by the other, nor of what is in the log of one that was killed."""
    other = written.with_name("other.state")
    other.hardlink_to(written)
    for path in (written, other):
        assert refusal(path).startswith("has 2 names (hard links), of which each would have a lock and a log")
    with closing(StateReader(written)) as reader:
        assert reader.load().epoch
    other.unlink()
    load(written)


def test_a_file_that_is_mounted_by_itself(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside it here is not beside it where it is from, and may be gone with a container."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none / ext4 rw 0 0\nnone {written} ext4 rw 0 0\n")
    monkeypatch.setattr("stormlet.state.places.MOUNTS", mounts)
    assert refusal(written) == (
        "is mounted by itself, without the lock and the log that stand beside it; mount its directory"
    )
    mounts.write_text(f"none / ext4 rw 0 0\nnone {written.parent} ext4 rw 0 0\n")
    load(written)


@pytest.mark.asyncio
@pytest.mark.parametrize("all_tasks", [False, True])
async def test_a_run_that_is_cancelled_while_its_state_is_read_lets_go_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_tasks: bool
) -> None:
    """When it has ended, as the thread that reads it cannot be stopped; also where all tasks are cancelled, as at the
    end of a loop."""
    topology = Topology("words")
    topology.bolt("count", print, topology.spout("words").shuffle())
    opened, reads, may_end = stores.opened, threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> Store:
        store = opened(*arguments, **options)
        reads.set()
        assert may_end.wait(60)
        return store

    async def enter() -> None:
        async with topology.run(state=tmp_path / "words.state"):
            pass

    monkeypatch.setattr(stores, "opened", slow)
    entering = asyncio.ensure_future(enter())
    await asyncio.to_thread(reads.wait, 60)
    for _ in range(2):
        cancelled = asyncio.all_tasks() - {asyncio.current_task()} if all_tasks else [entering]
        for task in cancelled:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not entering.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    StateFile(tmp_path / "words.state", "words").close()


HOLD = """
import sys, time
from stormlet.state.sqlite.file import StateFile
file = StateFile(sys.argv[1], "words")
print("held", flush=True)
time.sleep(60)
"""


def test_a_run_of_another_process(tmp_path: Path) -> None:
    """It is named until it dies."""
    path = tmp_path / "words.state"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            assert refusal(path).startswith(f"is in use by process {process.pid}; wait for its end")
        finally:
            process.send_signal(signal.SIGKILL)
    StateFile(path, "words").close()


FORK = """
import os, sys, time
from stormlet.state.sqlite.file import StateFile
file, (begins, begun) = StateFile(sys.argv[1], "words"), os.pipe()
child = os.fork()
if not child:
    os.write(begun, b"1")
    os.dup2(begun, 1)
    time.sleep(60)
if len(sys.argv) > 2:
    file.close()
    file = StateFile(sys.argv[1], "words")
os.read(begins, 1)
print(child, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("again", [(), ("again",)], ids=["killed", "closed"])
def test_a_process_that_a_run_has_forked_holds_no_file(tmp_path: Path, again: tuple[str, ...]) -> None:
    """A pool of processes, as a bolt may have one, may live longer than the run, and after a kill than its process."""
    path = tmp_path / "words.state"
    command = [sys.executable, "-c", FORK, path, *again]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline() or 0)
        assert child
        process.send_signal(signal.SIGKILL)
    try:
        StateFile(path, "words").close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could tell two runs apart there."""

    def refuse(handle: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    path = tmp_path / "words.state"
    assert refusal(path) == (
        f"{path}.lock cannot be locked: [Errno 37] No locks available; keep {path} on a disk of this machine"
    )


@pytest.mark.parametrize("call", ["fcntl.flock", "os.write", "os.open"])
def test_a_disk_without_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Another disk is not what is missing."""

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "words.state"
    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        assert refusal(path) == (
            "cannot be written, as its disk is full; free some space and start again: no committed epoch is lost"
        )


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two runs is found out by the number of its epoch."""
    monkeypatch.setattr("stormlet.files.FileClaim.take", lambda claim: None)
    with (
        closing(StateFile(tmp_path / "w", "words")) as one,
        closing(StateFile(tmp_path / "w", "words")) as two,
    ):
        first, second = Program(one, 1), Program(two, 1)
        first.commit()
        with pytest.raises(
            StateUnusable, match="w ends with epoch 1, so epoch 1 cannot be added: something else"
        ):
            second.commit()
        first.commit()


def test_a_program_that_holds_sqlites_own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, but not for ever."""
    monkeypatch.setattr("stormlet.state.sqlite.database.PATIENCE", 0.01)
    with (
        closing(StateFile(tmp_path / "words.state", "words")) as file,
        closing(sqlite3.connect(tmp_path / "words.state", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StateUnusable, match=r"words\.state is locked by another program that writes to it; end"
        ):
            file.commit(Commit(1, 1.0, {}))
        other.execute("ROLLBACK")
        file.commit(Commit(1, 1.0, {}))


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ({"appends": [Append(TOTAL, bytes(LARGEST + 1))]}, "the state count.total has"),
        ({"outbox": [Rows("ledger", 1, bytes(LARGEST + 1))]}, "the committer 'ledger' has"),
        ({"positions": {"lines[0]": bytes(LARGEST + 1)}}, "the source lines[0] has"),
        ({"letters": [bytes(LARGEST + 1)]}, "a dead letter has"),
    ],
)
def test_blobs_that_are_too_large(file: StateFile, what: dict[str, object], named: str) -> None:
    """They are refused before anything is written, and who has them is named."""
    given = {"epoch": 1, "closed_at": 1.0, "positions": {}, **what}
    sentence = f"{re.escape(named)} {LARGEST + 1} bytes to keep of epoch 1, of which .* takes at most .*; make epochs"
    with pytest.raises(StateUnusable, match=sentence):
        file.commit(Commit(**given))  # type: ignore[arg-type]
    assert file.load().epoch == 0


def test_a_store_that_is_closed(file: StateFile) -> None:
    """It says so, and may be closed again."""
    file.close()
    file.close()
    with pytest.raises(StateUnusable, match="closed"):
        file.load()


def test_a_file_that_the_disk_has_changed(written: Path) -> None:
    """Whichever byte it is: either it says nothing, or the file is refused, never read as something else."""
    whole, expected, random, refused = written.read_bytes(), load(written), Random(1), 0
    for _ in range(200):
        place = random.randrange(len(whole))
        changed = bytes([whole[place] ^ (1 << random.randrange(8))])
        written.write_bytes(whole[:place] + changed + whole[place + 1 :])
        try:
            assert load(written) == expected
        except StateUnusable:
            refused += 1
    assert refused > 50


def test_a_name_of_a_column_that_the_disk_has_changed(written: Path) -> None:
    """What is no text any more is damage there, too, where Python's sqlite decodes it by itself."""
    sqlite_file(written, "PRAGMA journal_mode=DELETE")
    whole = written.read_bytes()
    space = whole.index(b" seal", whole.index(b"CREATE TABLE shapes"))
    written.write_bytes(whole[:space] + b"\xa0" + whole[space + 1 :])
    with pytest.raises(StateUnusable, match=r"words\.state is damaged \(.*\); put a saved copy"):
        load(written)


def test_a_row_that_the_disk_has_lost(tmp_path: Path) -> None:
    """A page that has one row less than were written to it is missed, though each row has its seal."""
    path, tried = tmp_path / "words.state", 0
    with closing(StateFile(path, "words")) as file:
        for epoch in range(1, 10):  # drops nothing, as pages that are free say nothing
            file.commit(Commit(epoch, 1.0, {f"lines[{epoch}]": b"1"}, [Append(TOTAL, bytes(1000))]))
    whole = path.read_bytes()
    for page in range(PAGE, len(whole), PAGE):
        rows = int.from_bytes(whole[page + 3 : page + 5])
        if whole[page] == LEAF and rows:
            path.write_bytes(whole[: page + 3] + (rows - 1).to_bytes(2) + whole[page + 5 :])
            with pytest.raises(StateUnusable, match=r"words\.state is damaged \(.*\); put a saved copy"):
                load(path)
            tried += 1
    assert tried > 2


@pytest.mark.parametrize("pages", [1, 3, 10])
def test_a_file_that_is_cut_off(written: Path, pages: int) -> None:
    """It is damaged, and the way out is named."""
    os.truncate(written, pages * PAGE)
    with pytest.raises(
        StateUnusable, match=r"words\.state is damaged \(.*\); put a saved copy in its place, without"
    ):
        load(written)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM meta", "DELETE FROM epochs", "UPDATE log SET epoch = 1 WHERE epoch = 24"]
)
def test_rows_that_somebody_has_changed(written: Path, statement: str) -> None:
    """They are told like those that the disk has changed."""
    sqlite_file(written, "PRAGMA journal_mode=DELETE")
    with closing(sqlite3.connect(written)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(StateUnusable, match=r"words\.state is damaged \(.*\); put"):
        load(written)


def test_what_was_refused_is_let_go(written: Path, reopened: Callable[[], StateFile]) -> None:
    """A run that comes later finds no lock of one that did not begin."""
    refusal(written, "orders")
    assert reopened().load().epoch == 25
