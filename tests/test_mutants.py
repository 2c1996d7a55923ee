"""The mutation suite fits the code: what ``python -m tests.mutants`` would find out late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.mutants.__main__ import main
from tests.mutants.mutants import ROOT, Mutant, Stale, rooms
from tests.mutants.runner import Copy, Result, Run

ROOMS = rooms()
MUTANT = Mutant(
    "never-full", "A queue is never full.", "queue.py", "a < b", "False", ("test_queue.py::test_it",)
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_mutant_fits_the_code(room: str) -> None:
    """The text of each stands in its file exactly once, and its tests exist: tests/mutants/README.md says how to mend
    one that does not."""
    stale: list[str] = []
    for each in ROOMS[room]:
        try:
            each.check()
        except Stale as error:
            stale.append(str(error))
    assert stale == []


def test_every_mutant_has_a_name_of_its_own() -> None:
    """Reports and --id name mutants by their ids."""
    assert [
        id for id, count in Counter(each.id for room in ROOMS.values() for each in room).items() if count > 1
    ] == []


@pytest.mark.parametrize(
    ("text", "test", "said"),
    [
        ("a > b", "def test_it(): ...", "queue.py has its text 0 times instead of once"),
        ("a < b, a < b", "def test_it(): ...", "queue.py has its text 2 times instead of once"),
        ("a < b", "def test_another(): ...", "there is no test test_queue.py::test_it"),
    ],
)
def test_a_stale_mutant_says_how_to_mend_it(tmp_path: Path, text: str, test: str, said: str) -> None:
    """The error names the mutant, what is wrong with it, and the page that helps."""
    (tmp_path / "queue.py").write_text(text)
    (tmp_path / "test_queue.py").write_text(test)
    with pytest.raises(Stale, match=rf"never-full: {said}; see tests/mutants/README.md"):
        MUTANT.check(tmp_path)


def test_a_mutant_replaces_its_text() -> None:
    """What is around the text stays."""
    assert MUTANT.applied("if a < b:") == "if False:"


@pytest.mark.parametrize(
    ("code", "output", "result"),
    [
        (1, "1 failed", Result.CAUGHT),
        (-1, "", Result.CAUGHT),
        (0, "1 passed", Result.SURVIVED),
        (0, "1 skipped", Result.SKIPPED),
        (2, "1 error", Result.BROKEN),
        (-11, "", Result.BROKEN),
    ],
)
def test_only_a_test_that_fails_or_hangs_catches_a_mutant(code: int, output: str, result: Result) -> None:
    """Tests that pass, are skipped, or cannot begin have caught nothing."""
    assert Run(code, output).result is result


def test_an_unknown_mutant_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt id must not pass for a mutant that was caught."""
    assert main(["--room", "no-such-room", "--id", "ledger-zero-beats-fail", "--id", "no-such-mutant"]) == 2
    assert capsys.readouterr().err == "there is no 'no-such-room', 'no-such-mutant'\n"


def test_a_mutant_is_applied_to_a_copy_and_taken_back(tmp_path: Path) -> None:
    """The copy is what its tests import, and the files that people work on stay as they are."""
    copy = Copy(tmp_path)
    mutant = next(each for each in ROOMS["core"] if each.id == "ledger-zero-beats-fail")
    before = (ROOT / mutant.file).read_text("utf-8")
    assert copy.result(mutant)[0] is Result.CAUGHT
    assert copy.result(replace(mutant, new=mutant.old))[0] is Result.SURVIVED
    assert copy.result(replace(mutant, old="no such text"))[0] is Result.STALE
    assert copy.result(replace(mutant, new="if"))[0] is Result.BROKEN
    assert (copy.folder / mutant.file).read_text("utf-8") == (ROOT / mutant.file).read_text("utf-8") == before
