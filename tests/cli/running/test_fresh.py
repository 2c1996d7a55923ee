"""``run --fresh``: a run that begins anew although there is a state file."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.cli.running.fresh import put_aside
from stormlet.state.stores import owned
from tests.cli.state.kept import FILE, FLOW, flow, keep
from tests.cli.state.test_changing import counts

RUN = ["run", "flow.py", "--fresh"]


def asides() -> list[Path]:
    return sorted(Path().glob("counts.state.2*"))


def test_the_old_file_is_kept_under_a_name_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    """The run begins anew, and says so."""
    flow()
    keep({"a": 100})
    assert main(RUN) == 0
    (aside,) = asides()
    assert (counts(), counts(aside)) == ({"a": 2, "b": 2, "c": 1}, {"a": 100})
    assert f"counts.state is kept as {aside.absolute()}; this run begins anew" in capsys.readouterr().err


def test_two_of_one_second_do_not_meet() -> None:
    """Nothing is ever written over."""
    for number in range(3):
        keep({"a": number})
        put_aside(FILE, "count", datetime(2026, 11, 23, 18, 30))
    names = [f"counts.state.2026-11-23T18-30-00{each}" for each in ("", "-2", "-3")]
    assert [path.name for path in asides()] == names
    assert [counts(path)["a"] for path in asides()] == [0, 1, 2]


def test_where_there_is_no_file_yet_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word."""
    flow()
    assert main(RUN) == 0
    assert (counts(), asides()) == ({"a": 2, "b": 2, "c": 1}, [])
    assert "begins anew" not in capsys.readouterr().err


def test_without_a_state_file_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As there is nothing that it could mean."""
    flow(FLOW.replace(', state="counts.state"', ""))
    assert main(RUN) == 2
    assert "--fresh moves a state file aside, and topology 'count' has none" in capsys.readouterr().err
    assert main([*RUN, "--state", str(FILE)]) == 0


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("other", "has the state of the topology 'other'; give 'count' a file of its own"),
        ("count", "is in use by another run of this process; wait for its end"),
    ],
)
def test_no_file_is_moved_that_is_in_use_or_of_others(
    topology: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays where it is."""
    flow()
    with closing(owned(FILE, topology)):
        assert main(RUN) == 2
    assert message in capsys.readouterr().err
    assert asides() == []


def test_an_empty_file_is_new() -> None:
    """There is nothing to keep; a log beside it says otherwise, and both stay."""
    flow()
    FILE.touch()
    assert main(RUN) == 0
    assert asides() == []
    FILE.write_bytes(b"")
    log = FILE.with_name(f"{FILE.name}-wal")
    log.write_bytes(bytes(32))
    assert main(RUN) == 2
    assert (log.stat().st_size, asides()) == (32, [])


def test_a_file_whose_first_run_was_killed_as_it_made_it_is_new() -> None:
    """There is a part of a transaction in it, and the journal by which that is undone."""
    flow()
    with closing(sqlite3.connect(FILE, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size=1")  # so that the file has some of the transaction at once
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE meta (text)")
        connection.executemany("INSERT INTO meta VALUES (?)", [("x" * 5000,)] * 20)
        for ending in ("", "-journal"):
            shutil.copy(f"{FILE}{ending}", f"left{ending}")
        connection.execute("ROLLBACK")
    for ending in ("", "-journal"):
        Path(f"left{ending}").rename(f"{FILE}{ending}")
    assert FILE.stat().st_size > 0
    assert main(RUN) == 0
    assert (counts(), asides()) == ({"a": 2, "b": 2, "c": 1}, [])


def test_no_file_is_moved_by_a_topology_that_cannot_run() -> None:
    """It is checked first."""
    flow(FLOW.replace('.state")', '.state", ackers=0)'))
    keep({"a": 1})
    assert main(RUN) == 2
    assert (counts(), asides()) == ({"a": 1}, [])


def test_a_file_that_is_no_state_file_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """It may be anything that a slip of the hand has named."""
    flow()
    assert main([*RUN, "--state", "flow.py"]) == 2
    assert "flow.py is no state file" in capsys.readouterr().err
    assert Path("flow.py").read_text().endswith("\n")


def test_an_empty_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Which would be the current directory."""
    flow()
    for option in ("--state", "--dead-letters", "--replay-dead-letters"):
        assert main(["run", "flow.py", option, ""]) == 2
        assert "it is empty; give the path of a file" in capsys.readouterr().err
    flow(FLOW.replace("counts.state", ""))
    assert main(["run", "flow.py"]) == 2
    assert "the path of the state file is empty" in capsys.readouterr().err
