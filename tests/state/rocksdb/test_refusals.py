"""Directories that a run does not take, each in a sentence that names the path and the way out."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest

from stormlet.core.state.commits import Append, Commit, Table, TableRows
from stormlet.errors import StateUnusable
from stormlet.state.rocksdb.database import Database, new_batch
from stormlet.state.rocksdb.directory import StateDirectory
from stormlet.state.rocksdb.epoch_note import NAME
from stormlet.state.rocksdb.layout import HEAD
from stormlet.state.rocksdb.reading import DirectoryReader
from stormlet.state.stores import opened, owned, reader
from tests.state.programs import TOTAL, Account, Program, differences, read


def refusal(path: Path, topology: str | None = "words") -> str:
    """The sentence, without the path that it must begin with or name."""
    with pytest.raises(StateUnusable) as refused:
        StateDirectory(path, topology)
    assert str(path) in str(refused.value)
    return str(refused.value).removeprefix(f"{path} ")


def load(path: Path) -> Account:
    with closing(StateDirectory(path, "words")) as store:
        return read(store.load())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.rocksdb"


@pytest.fixture
def written(path: Path) -> Path:
    """A directory of some epochs in two lives, closed."""
    for _ in range(2):
        with closing(StateDirectory(path, "words")) as store:
            Program(store, 3).run(25)
    return path


@pytest.fixture
def killed(written: Path, tmp_path: Path) -> Path:
    """One that was left as it was, so that the last epochs are in the log alone."""
    copy = tmp_path / "killed.rocksdb"
    with closing(StateDirectory(written, "words")) as store:
        Program(store, 3).run(25)
        shutil.copytree(written, copy)
    return copy


def put(path: Path, key: bytes, value: bytes) -> None:
    database, batch = Database(path), new_batch()
    batch.put(key, value)
    database.write(batch)
    database.close()


def test_a_directory_of_another_program(path: Path) -> None:
    """It is left as it is."""
    put(path, b"mine", b"1")
    assert refusal(path) == "is the RocksDB of another program; give the path of a new directory"
    put(path, HEAD, b"\x93")
    assert refusal(path) == "is the RocksDB of another program; give the path of a new directory"


def test_a_directory_of_something_else(path: Path) -> None:
    """Nothing is written into it."""
    path.mkdir()
    (path / "notes").write_text("of mine")
    assert refusal(path).startswith("is no directory of RocksDB; give another path, or put a saved copy")
    assert [each.name for each in path.iterdir()] == ["notes"]


def test_a_newer_version(path: Path) -> None:
    """Its layout is unknown here."""
    StateDirectory(path, "words").close()
    put(path, HEAD, msgspec.msgpack.encode({"application": "stormlet", "version": 2, "fields": []}))
    assert refusal(path) == (
        "was written by a newer version of stormlet (layout 2; this one reads up to 1); install that version, or give "
        "the path of a new directory"
    )
    with pytest.raises(StateUnusable, match="newer version"):
        DirectoryReader(path)


def test_the_directory_of_another_topology(path: Path) -> None:
    """Both are named; whoever names no topology may look."""
    StateDirectory(path, "orders").close()
    assert refusal(path) == "has the state of the topology 'orders'; give 'words' a directory of its own"
    StateDirectory(path).close()
    with closing(DirectoryReader(path)) as found, pytest.raises(StateUnusable, match="has the state of the"):
        found.check_topology("words")


def test_a_file(path: Path) -> None:
    """It is left as it is."""
    path.write_text("notes of mine")
    assert refusal(path).startswith(
        "is a file, and RocksDB has a directory; give the path of a new one, or of"
    )
    assert path.read_text() == "notes of mine"


def test_a_place_that_is_missing(path: Path, tmp_path: Path) -> None:
    """Commands that only look make no directory, and no path is made unasked."""
    for look in (StateDirectory, DirectoryReader):
        with pytest.raises(
            StateUnusable, match=r"there is no state in .*words\.rocksdb; a run with state= makes"
        ):
            look(path)
    assert list(tmp_path.iterdir()) == []
    missing = tmp_path / "missing" / "words.rocksdb"
    assert refusal(missing) == f"cannot be kept, as there is no directory {missing.parent}; make that first"


def test_one_that_a_killed_run_has_left_unfinished_is_a_new_one(path: Path) -> None:
    """It was killed while RocksDB made its files."""
    StateDirectory(path, "words").close()
    for each in path.iterdir():
        if each.suffix in (".sst", ".log", ".dbtmp") or each.name in ("CURRENT", NAME):
            each.unlink()
    StateDirectory(path, "words").close()
    assert load(path).epoch == 0


def test_a_directory_that_may_only_be_read(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused at the start, not at the first commit."""
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    assert refusal(written) == "may not be written; give this user the right to write in it"


def test_two_runs_in_one_process(path: Path) -> None:
    """The second is refused until the first lets go."""
    with closing(StateDirectory(path, "words")):
        assert refusal(path) == (
            "is in use by another run of this process; wait for its end, or give this run another directory"
        )
    StateDirectory(path, "words").close()


def test_another_program_that_has_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB has a lock of its own, also where there are no others."""
    monkeypatch.setattr("stormlet.files.FileClaim.take", lambda claim: None)
    with closing(StateDirectory(path, "words")):
        assert refusal(path) == "is locked by another program; end that program, and start again"


HOLD = """
import sys, time
from stormlet.state.rocksdb.directory import StateDirectory
store = StateDirectory(sys.argv[1], "words")
print("held", flush=True)
time.sleep(60)
"""


def test_a_run_of_another_process(path: Path) -> None:
    """It is named until it dies."""
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            assert refusal(path).startswith(f"is in use by process {process.pid}; wait for its end")
        finally:
            process.send_signal(signal.SIGKILL)
    StateDirectory(path, "words").close()


def test_a_store_that_is_closed(path: Path) -> None:
    """It says so, and may be closed again."""
    store = StateDirectory(path, "words")
    store.close()
    store.close()
    with pytest.raises(StateUnusable, match="is closed, as the run that had it is over"):
        store.load()


@pytest.mark.parametrize("seed", range(4))
def test_files_that_the_disk_has_changed(killed: Path, tmp_path: Path, seed: int) -> None:
    """Whichever byte it is: either it says nothing, or the directory is refused, never read as something else."""
    expected, random, refused = read_copy(killed, tmp_path), Random(seed), 0
    for number in range(40):
        copy = tmp_path / f"{number}.rocksdb"
        shutil.copytree(killed, copy)
        data = [
            each for each in sorted(copy.iterdir()) if each.suffix in (".sst", ".log") or "MAN" in each.name
        ]
        damaged = random.choice([each for each in data if each.stat().st_size])
        content = bytearray(damaged.read_bytes())
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        damaged.write_bytes(content)
        try:
            assert load(copy) == expected
        except StateUnusable as error:
            refused += "is damaged" in str(error)
        shutil.rmtree(copy)
    assert refused > 10


def read_copy(path: Path, folder: Path) -> Account:
    shutil.copytree(path, folder / "whole.rocksdb")
    return load(folder / "whole.rocksdb")


@pytest.mark.parametrize("ending", [".sst", ".log", "CURRENT"])
def test_files_that_are_missing(killed: Path, ending: str) -> None:
    """With the log the last epochs are missing, which RocksDB itself takes for nothing."""
    largest = max(
        (each for each in killed.iterdir() if each.name.endswith(ending)),
        key=lambda each: each.stat().st_size,
    )
    largest.unlink()
    assert refusal(killed).startswith("is damaged (")


@pytest.mark.parametrize("size", [None, 100])
def test_what_only_reads_says_too_that_files_are_damaged(path: Path, size: int | None) -> None:
    """RocksDB shows a reader what came before them, which here is nothing."""
    with closing(StateDirectory(path, "words")) as store:
        Program(store, 3).run(5)
    StateDirectory(path, "words").close()  # makes a file of the log
    (file,) = path.glob("*.sst")
    file.unlink() if size is None else os.truncate(file, size)
    with pytest.raises(
        StateUnusable, match=r"words\.rocksdb is damaged \(it has epoch 5 no more\); put a saved"
    ):
        DirectoryReader(path)


def test_a_log_that_is_cut_off(killed: Path) -> None:
    """Epochs that were told are missing; the note says which one was the last."""
    (log,) = [each for each in killed.iterdir() if each.suffix == ".log" and each.stat().st_size]
    os.truncate(log, log.stat().st_size // 2)
    assert refusal(killed).startswith("is damaged (it has epoch 75 no more, and ends with epoch ")
    with pytest.raises(StateUnusable, match="has epoch 75 no more"):
        DirectoryReader(killed)


def test_the_end_of_a_write_that_nobody_was_told_of(killed: Path) -> None:
    """It is dropped, and a run goes on after the epoch before."""
    (log,) = [each for each in killed.iterdir() if each.suffix == ".log" and each.stat().st_size]
    os.truncate(log, log.stat().st_size - 3)
    (killed / NAME).write_bytes(b"%020d\n" % 74)
    with closing(StateDirectory(killed, "words")) as store:
        assert list(differences(store.load(), 3)) == []
        Program(store, 3).run(5)
        assert store.load().epoch == 79


def test_a_past_epoch_and_a_history_are_refused(written: Path) -> None:
    """The last epoch alone is kept, and copies are the way out."""
    with closing(StateDirectory(written, "words")) as store:
        for look in (store.at, store.rewind):
            with pytest.raises(
                StateUnusable, match=r"does not have epoch 49: .* which is epoch 50; copies made by"
            ):
                look(49)
        with pytest.raises(StateUnusable, match="has no epoch of that time"):
            store.epoch_at(49.5)
        assert store.epoch_at(50.0) == store.at(50).epoch == 50
        with pytest.raises(StateUnusable, match="cannot keep a history"):
            store.commit(Commit(51, 51.0, {}, history=1.0))
    with pytest.raises(
        StateUnusable, match=r"words\.rocksdb cannot keep a history, as RocksDB has the last epoch"
    ):
        opened(written, "words", history=60.0)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "cannot be written, as its disk is full; free some space"),
        (errno.EIO, "cannot be read or written ([Errno 5] Input/output error); see that its disk works"),
    ],
)
def test_a_note_of_the_epoch_that_cannot_be_written(
    written: Path, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    """The epoch is durable, and the next run goes on from it."""

    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with closing(StateDirectory(written, "words")) as store, monkeypatch.context() as patch:
        patch.setattr("stormlet.state.rocksdb.epoch_note.os.write", fail)
        with pytest.raises(StateUnusable, match=re.escape(f"{written} {sentence}")):
            Program(store, 3).run(1)
    load(written)


def test_a_note_of_the_epoch_that_cannot_be_made(written: Path) -> None:
    """The directory is let go of."""
    (written / NAME).unlink()
    (written / NAME).mkdir()
    assert refusal(written).startswith("cannot be read or written ([Errno 21] Is a directory: ")
    (written / NAME).rmdir()
    load(written)


def test_tables_of_users_are_refused(written: Path) -> None:
    """They are sqlite's."""
    rows = TableRows(Table("mine", [("value", "TEXT")]), [("a",)])
    with closing(StateDirectory(written, "words")) as store:
        with pytest.raises(StateUnusable, match=r"cannot have the table 'mine', .* path= of its own"):
            store.commit(Commit(51, 51.0, {}, tables=[rows]))
        store.commit(Commit(51, 51.0, {}, [Append(TOTAL, b"\x81\xa1a\x01")]))


@pytest.mark.parametrize("look", [owned, reader])
def test_without_the_package_it_is_named(path: Path, monkeypatch: pytest.MonkeyPatch, look: object) -> None:
    """With the command that installs it."""
    for name in [each for each in sys.modules if each.startswith("stormlet.state.rocksdb")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(
        StateUnusable, match=r"words\.rocksdb needs rocksdict: pip install 'stormlet\[rocksdb\]'"
    ):
        look(path)  # type: ignore[operator]
