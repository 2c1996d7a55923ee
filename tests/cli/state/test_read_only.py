"""The commands that only look, on a state that may only be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.state.rocksdb import reading
from tests.cli.state.kept import FILE, flow, keep

ROCKSDB = Path("counts.rocksdb")
LOOKS = {
    "list": [],
    "show": ["count"],
    "get": ["count", "a"],
    "diff": ["--epoch", "2", "--epoch", "2"],
    "export": [],
}


def marked(path: Path) -> Path:
    """Mark all files of a state as such that may only be read, which holds for root, too."""
    for each in path.iterdir() if path.is_dir() else [path]:
        each.chmod(0o444)
    return path


def contents() -> Mapping[Path, tuple[int, bytes]]:
    files = (each for each in Path().rglob("*") if each.is_file() and each.suffix != ".pyc")
    return {each: (each.stat().st_mtime_ns, each.read_bytes()) for each in files}


@pytest.mark.parametrize("path", [FILE, ROCKSDB], ids=str)
def test_all_of_them_look_and_change_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the state nor what is beside it; a topology is checked with it, too."""
    flow()
    keep({"a": 1}, {"a": 2}, path=path)
    marked(path)
    before = contents()
    for command, arguments in LOOKS.items():
        assert main(["state", command, str(path), *arguments]) == 0, command
    assert main(["state", "check", "flow.py", str(path)]) == 0
    assert contents() == before
    shown = capsys.readouterr().out
    assert '{"state":"count.total","key":"a","value":2}' in shown
    assert "a run would go on after epoch 2\n  count.total: 1 entry\n" in shown


def test_a_copy_can_be_made_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Which may be written, and is then looked at and changed as any other."""
    for path, copy in ((FILE, "copy.state"), (ROCKSDB, "copy.rocksdb")):
        keep({"a": 1}, path=path)
        assert main(["state", "save", str(marked(path)), copy]) == 0
        assert main(["state", "rename", copy, "count", "counted"]) == 0
    assert capsys.readouterr().out.count("has epoch 1 of") == 2


def test_check_says_that_a_run_needs_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of this user would be refused, for that alone."""
    flow()
    keep({"a": 1})
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    assert main(["state", "check", "flow.py", str(FILE)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "  a run also needs the right to write it and its directory, which this user does not have"


@pytest.mark.parametrize(("missing", "tries"), [("CURRENT", 2), ("MANIFEST-000005", 2), ("", 1)])
def test_files_that_a_run_makes_meanwhile_are_found(
    missing: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of another user's is read by links to its files, and may have others a moment later."""
    keep({"a": 1}, path=ROCKSDB)
    marked(ROCKSDB)
    link, made = reading._link, list[Path]()

    def incomplete(path: Path, links: Path) -> list[str]:
        names = link(path, links)
        made.append(links)
        if missing and len(made) == 1:
            (links / missing).unlink()
            names.remove(missing)
        return names

    monkeypatch.setattr(reading, "_link", incomplete)
    assert main(["state", "list", str(ROCKSDB)]) == 0
    assert len(made) == tries


def test_what_is_missing_for_good_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused as where it may be written."""
    keep({"a": 1}, path=ROCKSDB)
    next(ROCKSDB.glob("MANIFEST-*")).unlink()
    assert main(["state", "list", str(ROCKSDB)]) == 2
    marked(ROCKSDB)
    link, made = reading._link, list[Path]()
    monkeypatch.setattr(reading, "_link", lambda path, links: [made.append(links), *link(path, links)][1:])
    assert main(["state", "list", str(ROCKSDB)]) == 2
    assert len(made) == 1
