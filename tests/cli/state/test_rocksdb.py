"""The commands on a directory of RocksDB; ``tests/state/rocksdb/test_everywhere.py`` has all that is as for a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.core.state.commits import Shape, StateId
from stormlet.state.rocksdb.database import Database
from tests.cli.state.kept import FILE, FLOW, flow, keep
from tests.cli.state.test_changing import counts
from tests.cli.state.test_programs import MERGING, PLACES, entry, lines

PLACE = Path("counts.rocksdb")


def test_state_goes_from_a_file_into_rocksdb_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    """As entries: positions of sources stay where they are."""
    flow()
    keep({"a": 1, "b": 2})
    for source, target in ((FILE, PLACE), (PLACE, Path("again.state"))):
        assert main(["state", "export", str(source), "--output", "entries.jsonl"]) == 0
        assert main(["state", "import", "flow.py", str(target), "entries.jsonl"]) == 0
        assert counts(target) == {"a": 1, "b": 2}
    capsys.readouterr()
    assert main(["state", "diff", str(FILE), str(PLACE)]) == 0
    assert capsys.readouterr().out.startswith("no differences from epoch 1 of counts.state to epoch 1 of ")


def test_items_are_put_beside_those_that_a_list_has_in_rocksdb() -> None:
    """Of which nothing is in memory."""
    flow(MERGING)
    keep({("b", 0): 1, ("c", 0): 1}, path=PLACE, state=PLACES, shape=Shape("list", "str", "list[int]"))
    lines(entry(["b", 1], 7, "count.places"))
    assert main(["state", "import", "flow.py", str(PLACE), "entries.jsonl"]) == 0
    assert counts(PLACE, PLACES) == {("b", 0): 1, ("b", 1): 7, ("c", 0): 1}


def test_a_run_goes_on_in_it_and_anew(capsys: pytest.CaptureFixture[str]) -> None:
    """What is moved aside keeps the end of its name, by which it is known."""
    flow(FLOW.replace("counts.state", "counts.rocksdb"))
    assert main(["run", "flow.py"]) == 0
    assert main(["run", "flow.py", "--fresh"]) == 0
    (aside,) = Path().glob("counts.2*.rocksdb")
    assert counts(PLACE) == counts(aside) == {"a": 2, "b": 2, "c": 1}
    assert f"counts.rocksdb is kept as {aside.absolute()}" in capsys.readouterr().err


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_directory_whose_first_run_was_killed_as_it_made_it_is_new(is_opened: bool) -> None:
    """It is empty, or has a database of nothing."""
    flow(FLOW.replace("counts.state", "counts.rocksdb"))
    if is_opened:
        Database(PLACE.absolute()).close()
    else:
        PLACE.mkdir()
    assert main(["run", "flow.py", "--fresh"]) == 0
    assert counts(PLACE) == {"a": 2, "b": 2, "c": 1}
    assert not [*Path().glob("counts.2*.rocksdb")]


def test_list_says_which_epoch_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The last one; entries are counted, and all files make its size."""
    keep({"a": 1}, {"b": 2}, path=PLACE)
    assert main(["state", "list", str(PLACE)]) == 0
    shown = capsys.readouterr().out
    assert "epochs from 2 can be read" in shown
    assert "count.total  value  str       int               2" in shown


def test_get_finds_a_key_by_its_bytes_and_by_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a tuple are its items', those of a date are found among all."""
    keys = {"a": "str", 1: "int", ("x", 1): "tuple[str, int]"}
    for number, (key, kind) in enumerate(keys.items()):
        state = StateId("count", f"s{number}")
        keep(
            {key: 7, "b" if number == 0 else 2: 8}, path=PLACE, state=state, shape=Shape("value", kind, "int")
        )
    for number, key in enumerate(["a", "1", '["x", 1]']):
        assert main(["state", "get", str(PLACE), f"count.s{number}", key]) == 0
        assert capsys.readouterr().out == "7\n"
    assert main(["state", "get", str(PLACE), "count.s0", "nowhere"]) == 1


def test_a_place_that_is_not_there_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A file is none, either."""
    assert main(["state", "list", str(PLACE)]) == 2
    assert "there is no file counts.rocksdb" in capsys.readouterr().err
    PLACE.write_text("mine")
    assert main(["state", "list", str(PLACE)]) == 2
    assert "counts.rocksdb is no directory; give the path of a state file" in capsys.readouterr().err


def test_a_copy_keeps_the_end_of_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    """It is found by that."""
    keep({"a": 1}, path=PLACE)
    assert main(["state", "save", str(PLACE), "copy.state"]) == 2
    assert "give a name that ends with .rocksdb" in capsys.readouterr().err
    assert main(["state", "save", str(PLACE), "copy.rocksdb"]) == 0
    assert capsys.readouterr().out == "copy.rocksdb has epoch 1 of counts.rocksdb\n"
    assert counts(Path("copy.rocksdb")) == {"a": 1}
