"""A directory of RocksDB: readers beside a run, copies, and what is changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from stormlet.core.state.commits import Append, Commit, Rows, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.state.rocksdb.database import Database, end_of, new_batch
from stormlet.state.rocksdb.directory import StateDirectory
from stormlet.state.rocksdb.reading import DirectoryReader
from tests.state.programs import LAST, SEEN, SHAPES, TOTAL, Program, differences, read

COMMIT = Commit(
    1,
    1.0,
    {"lines[0]": b"1", "lines[1]": b"2", "lines 2[0]": b"3"},
    [
        Append(TOTAL, b"\x82\xa1a\x01\xa1b\x02"),
        Append(SEEN, b"\x81\xa1c\x03"),
        Append(LAST, b"\x81\xa1d\x04"),
    ],
    [Rows("ledger", 1, b"x"), Rows("mail", 1, b"y")],
    [b"letter"],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.rocksdb"


@pytest.fixture
def store(path: Path) -> Iterator[StateDirectory]:
    with closing(StateDirectory(path, "words")) as found:
        yield found


@pytest.fixture
def filled(store: StateDirectory) -> StateDirectory:
    store.declare(SHAPES)
    store.commit(COMMIT)
    return store


def states(stored: Stored) -> dict[StateId, list[bytes]]:
    return {id: list(stored.blobs(id)) for id in stored.shapes}


def test_a_reader_beside_a_run_sees_the_epoch_that_it_has_found(store: StateDirectory, path: Path) -> None:
    """All of it, whatever the run commits meanwhile; it changes nothing, and needs no lock."""
    program = Program(store, 1)
    for _ in range(5):
        program.run(20)
        with closing(DirectoryReader(path)) as found:
            before = found.load().epoch
            program.run(20)
            assert found.load().epoch == found.first_epoch() == before == program.epoch - 20
            assert list(differences(found.load(), 1)) == []
            assert found.at(before).epoch == before
            with pytest.raises(StateUnusable, match=f"which is epoch {before}"):
                found.at(before + 20)


def test_a_reader_leaves_nothing_behind(filled: StateDirectory, path: Path) -> None:
    """Neither beside the directory, nor in it, nor where RocksDB writes of its work."""
    before = sorted(each.name for each in path.iterdir())
    found = DirectoryReader(path)
    own = Path(found._own.name)  # pyright: ignore[reportPrivateUsage]
    found.close()
    assert sorted(each.name for each in path.iterdir()) == before
    assert not own.exists()


def test_a_copy_while_a_run_goes_on(store: StateDirectory, path: Path, tmp_path: Path) -> None:
    """It is made by another thread, is of one epoch, and goes on as a state of its own."""
    program = Program(store, 1)
    program.run(5)
    for number in range(3):
        copy = tmp_path / f"copy{number}.rocksdb"
        copying = Thread(target=store.backup, args=[str(copy)])
        copying.start()
        program.run(20)
        copying.join()
        with closing(StateDirectory(copy, "words")) as copied:
            assert list(differences(copied.load(), 1)) == []
            assert copied.load().line == store.load().line
            Program(copied, 1).run(3)
    with closing(DirectoryReader(path)) as found:
        found.backup(str(tmp_path / "last.rocksdb"))
    assert not list(tmp_path.glob("*.partial"))


def test_a_copy_of_what_is_found_by_a_link(filled: StateDirectory, path: Path, tmp_path: Path) -> None:
    """Only the name of the link has to say that it is a directory of RocksDB, and that of the copy."""
    filled.close()
    plain, link = path.rename(tmp_path / "plain"), tmp_path / "link.rocksdb"
    link.symlink_to(plain)
    with closing(DirectoryReader(link)) as found:
        found.backup(str(tmp_path / "copy.rocksdb"))
        with pytest.raises(StateUnusable, match=r"give a name that ends with \.rocksdb"):
            found.backup(str(tmp_path / "copy"))


def test_a_copy_needs_a_new_name_by_which_it_is_known(filled: StateDirectory, tmp_path: Path) -> None:
    """Nothing is written over."""
    (tmp_path / "mine.rocksdb").mkdir()
    with pytest.raises(StateUnusable, match=r"mine\.rocksdb is there already; a copy needs a new path"):
        filled.backup(str(tmp_path / "mine.rocksdb"))
    with pytest.raises(StateUnusable, match=r"copy would be .*; give a name that ends with \.rocksdb"):
        filled.backup(str(tmp_path / "copy"))
    with pytest.raises(StateUnusable, match="there is no directory"):
        filled.backup(str(tmp_path / "missing" / "copy.rocksdb"))


def test_a_component_is_forgotten(filled: StateDirectory) -> None:
    """Its states and their entries go, others stay; what comes later under its name begins anew."""
    filled.drop("count")
    assert states(filled.load()) == {LAST: [b"\x81\xa1d\x04"]}
    filled.declare(SHAPES)
    assert states(filled.load()) == {LAST: [b"\x81\xa1d\x04"], TOTAL: [], SEEN: []}
    filled.drop("count")
    filled.drop("latest")
    filled.declare(SHAPES)
    assert states(filled.load()) == {LAST: [], TOTAL: [], SEEN: []}
    filled.drop("lines")
    assert filled.load().positions == {"lines 2[0]": b"3"}
    filled.drop("ledger")
    assert filled.load().outbox == (Rows("mail", 1, b"y"),)


def test_a_state_is_forgotten(filled: StateDirectory) -> None:
    """The others of its component stay."""
    filled.drop_state(TOTAL)
    assert states(filled.load()) == {SEEN: [b"\x81\xa1c\x03"], LAST: [b"\x81\xa1d\x04"]}
    with pytest.raises(
        StateUnusable, match=r"has no state 'count\.total'; it has 'count\.seen', 'latest\.value'"
    ):
        filled.drop_state(TOTAL)


def test_a_component_goes_by_another_id(filled: StateDirectory, path: Path) -> None:
    """Its states, its positions and its rows, also for the next run, which goes on under that id."""
    for old, new in (("count", "totals"), ("lines", "rows"), ("mail", "post")):
        filled.rename(old, new)
    filled.commit(Commit(2, 2.0, {}, [Append(StateId("totals", "total"), b"\x81\xa1a\xc0")]))
    filled.close()
    with closing(StateDirectory(path, "words")) as again:
        stored = again.load()
        assert states(stored) == {
            StateId("totals", "total"): [b"\x81\xa1b\x02"],
            StateId("totals", "seen"): [b"\x81\xa1c\x03"],
            LAST: [b"\x81\xa1d\x04"],
        }
    assert stored.positions == {"rows[0]": b"1", "rows[1]": b"2", "lines 2[0]": b"3"}
    assert stored.outbox == (Rows("ledger", 1, b"x"), Rows("post", 1, b"y"))


def test_ids_that_are_not_there_or_taken(filled: StateDirectory) -> None:
    """Those that there are are named."""
    known = "has nothing of 'conut'; it has what belongs to: 'count', 'latest', 'ledger', 'lines', 'lines 2', 'mail'"
    with pytest.raises(StateUnusable, match=known):
        filled.drop("conut")
    with pytest.raises(StateUnusable, match=known):
        filled.rename("conut", "count")
    with pytest.raises(StateUnusable, match="has something of 'latest' already"):
        filled.rename("count", "latest")


def test_a_rewind_to_the_last_epoch_begins_another_line(filled: StateDirectory, path: Path) -> None:
    """As a copy that has taken the place of what was lost needs it (law X10)."""
    line = filled.load().line
    assert filled.rewind(1).lost == 0
    filled.close()
    with closing(StateDirectory(path, "words")) as again:
        stored = again.load()
    assert stored.line != line
    assert (stored.ancestors, stored.epoch) == (((line, 1),), 1)


def test_what_was_delivered_stays_delivered(filled: StateDirectory, path: Path) -> None:
    """Also what an earlier life has left."""
    filled.close()
    with closing(StateDirectory(path, "words")) as again:
        again.note_delivered([("ledger", 1)], 1)
        again.commit(Commit(2, 2.0, {}, outbox=[Rows("ledger", 2, b"z")]))
    with closing(StateDirectory(path, "words")) as again:
        assert (again.load().outbox, again.load().letters) == (
            (Rows("mail", 1, b"y"), Rows("ledger", 2, b"z")),
            (),
        )


def test_many_lives(path: Path) -> None:
    """Each takes up what is durable."""
    for epochs in (7, 1, 0, 40, 12):
        with closing(StateDirectory(path, "words")) as store:
            Program(store, 9).run(epochs)
            assert list(differences(store.load(), 9)) == []
    assert read(store_of(path)).epoch == 60


def store_of(path: Path) -> Stored:
    with closing(StateDirectory(path, "words")) as store:
        return store.load().in_memory()


def test_scans_end_where_the_prefix_does(tmp_path: Path) -> None:
    """Also behind bytes that have no greater ones, and where the end is a key itself."""
    database, batch = Database(tmp_path / "x.rocksdb"), new_batch()
    keys = [b"a", b"b\x00", b"b\x01", b"b\xff", b"b\xff\xff", b"c", b"c\x00"]
    for key in keys:
        batch.put(key, key.upper())
    database.write(batch)
    assert [key for key, _ in database.scan(b"b")] == keys[1:5]
    assert [key for key, _ in database.scan(b"b", b"b\x01")] == keys[2:5]
    assert [key for key, _ in database.scan()] == keys
    assert [database.last(each) for each in (b"b", b"b\xff", b"bb")] == [(b"b\xff\xff", b"B\xff\xff")] * 2 + [
        None
    ]
    assert end_of(b"b\xff\xff") == b"c"
    assert database.get(b"b") is None
    database.close()
