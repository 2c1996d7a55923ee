"""States, positions and rows that are forgotten, or go by another id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormlet.core.state.commits import Append, Commit, Rows, StateId
from stormlet.errors import StateUnusable
from stormlet.state.sqlite.file import StateFile
from tests.state.programs import LAST, SEEN, SHAPES, TOTAL

COMMIT = Commit(
    1,
    1.0,
    {"lines[0]": b"1", "lines[1]": b"2", "lines 2[0]": b"3"},
    [Append(TOTAL, b"a"), Append(SEEN, b"b"), Append(LAST, b"c"), Append(TOTAL, b"d", begins_round=True)],
    [Rows("ledger", 1, b"x"), Rows("mail", 1, b"y")],
)


@pytest.fixture
def filled(file: StateFile) -> StateFile:
    file.declare(SHAPES)
    file.commit(COMMIT)
    return file


def test_a_component_is_forgotten(filled: StateFile) -> None:
    """Its states and their shapes go, others stay."""
    filled.drop("count")
    assert filled.load().states == {LAST: (b"c",)}
    assert filled.load().shapes == {LAST: SHAPES[LAST]}


def test_a_source_is_forgotten(filled: StateFile) -> None:
    """All of its tasks begin anew; one with a similar name does not."""
    filled.drop("lines")
    assert filled.load().positions == {"lines 2[0]": b"3"}


def test_a_committer_is_forgotten(filled: StateFile) -> None:
    """What it has not had is given up."""
    filled.drop("ledger")
    assert filled.load().outbox == (Rows("mail", 1, b"y"),)


def test_a_component_goes_by_another_id(filled: StateFile, reopened: Callable[[], StateFile]) -> None:
    """Its states go on under that, in their order."""
    filled.rename("count", "totals")
    total, seen = StateId("totals", "total"), StateId("totals", "seen")
    filled.close()
    stored = reopened().load()
    assert stored.states == {total: (b"a", b"d"), seen: (b"b",), LAST: (b"c",)}
    assert stored.shapes == {total: SHAPES[TOTAL], seen: SHAPES[SEEN], LAST: SHAPES[LAST]}


def test_a_source_goes_by_another_id(filled: StateFile) -> None:
    """Each of its tasks resumes where it was."""
    filled.rename("lines", "rows")
    assert filled.load().positions == {"rows[0]": b"1", "rows[1]": b"2", "lines 2[0]": b"3"}


def test_a_committer_goes_by_another_id(filled: StateFile) -> None:
    """It gets what it has not had."""
    filled.rename("mail", "post")
    assert filled.load().outbox == (Rows("ledger", 1, b"x"), Rows("post", 1, b"y"))


def test_what_is_not_there(filled: StateFile) -> None:
    """The ids that there are are named, as one may be mistyped."""
    known = "has nothing of 'conut'; it has what belongs to: 'count', 'latest', 'ledger', 'lines', 'lines 2', 'mail'"
    with pytest.raises(StateUnusable, match=known):
        filled.drop("conut")
    with pytest.raises(StateUnusable, match=known):
        filled.rename("conut", "count")


def test_an_id_that_is_taken(filled: StateFile) -> None:
    """Two states do not become one."""
    before = filled.load()
    with pytest.raises(
        StateUnusable, match="has something of 'latest' already, so that 'count' cannot be called that"
    ):
        filled.rename("count", "latest")
    assert filled.load() == before


def test_a_run_goes_on_after_it(filled: StateFile) -> None:
    """Epochs are numbered as before, and a round that was begun is begun under the other name."""
    filled.rename("count", "totals")
    filled.drop("latest")
    filled.commit(Commit(2, 2.0, {}, [Append(StateId("totals", "total"), b"e", begins_round=True)]))
    assert filled.at(2).states[StateId("totals", "total")] == (b"d", b"e")
