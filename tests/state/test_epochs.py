"""Stores of epochs, each by the same rules."""

from __future__ import annotations

import msgspec
import pytest

from stormlet.core.state.commits import Append, Commit, Rows, Shape, StateId, Store, Stored
from stormlet.errors import StateUnusable
from stormlet.state import retention
from stormlet.state.memory import MemoryStore
from tests.state.programs import SHAPES, TOTAL, Program, differences

OTHER = StateId("latest", "value")
COMMIT = Commit(1, 1.5, {"lines[0]": b"7"})


def commit(epoch: int, *appends: Append, **changes: object) -> Commit:
    """An epoch that moves a source."""
    plain = Commit(epoch, float(epoch), {"lines[0]": b"%d" % epoch}, appends)
    return msgspec.structs.replace(plain, **changes)


def plain(stored: Stored) -> Stored:
    """Without the way to its entries, which is another one each time."""
    return msgspec.structs.replace(stored, entries=None)


def append(text: str, *, begins: bool = False, state: StateId = TOTAL) -> Append:
    return Append(state, text.encode(), begins)


def blobs(stored: Stored, state: StateId = TOTAL) -> str:
    return " ".join(blob.decode() for blob in stored.states.get(state, ()))


def test_a_new_store_has_nothing(any_store: Store) -> None:
    """Epoch 0 is durable, and there is a line."""
    stored = any_store.load()
    assert plain(stored) == Stored(stored.line)
    assert stored.line


def test_each_store_has_a_line_of_its_own(any_store: Store) -> None:
    """It is random, and stays."""
    assert MemoryStore().load().line != any_store.load().line == any_store.load().line


def test_an_epoch_is_durable_when_commit_returns(store: Store) -> None:
    """All of it can be read."""
    rows, letters = [Rows("ledger", 1, b"rows")], [b"one", b"two"]
    store.commit(commit(1, append("a"), append("b", state=OTHER), outbox=rows, letters=letters))
    assert store.load() == Stored(
        store.load().line,
        1,
        1.0,
        {"lines[0]": b"1"},
        {},
        {TOTAL: (b"a",), OTHER: (b"b",)},
        tuple(rows),
        ((1, b"one"), (1, b"two")),
    )


def test_an_epoch_that_brings_nothing(any_store: Store) -> None:
    """It counts."""
    any_store.commit(Commit(1, 2.0, {}))
    assert (any_store.load().epoch, any_store.load().closed_at) == (1, 2.0)


@pytest.mark.parametrize("epoch", [0, 1, 3, -1])
def test_epochs_follow_one_another(any_store: Store, epoch: int) -> None:
    """One that is there already, or that leaves a gap, is refused, and nothing of it is kept."""
    any_store.commit(commit(1))
    before = plain(any_store.load())
    with pytest.raises(
        StateUnusable, match=f"ends with epoch 1, so epoch {epoch} cannot be added: something else"
    ):
        any_store.commit(commit(epoch, append("a"), delivered=[("ledger", 1)]))
    assert plain(any_store.load()) == before


def test_a_position_is_the_last_one(any_store: Store) -> None:
    """A source that has not moved keeps the one that it had."""
    any_store.commit(commit(1, positions={"lines[0]": b"1", "lines[1]": b"1"}))
    any_store.commit(commit(2, positions={"lines[1]": b"2"}))
    assert any_store.load().positions == {"lines[0]": b"1", "lines[1]": b"2"}


def test_shapes_are_noted(any_store: Store) -> None:
    """A new one takes the place of the old one; others stay."""
    any_store.declare(SHAPES)
    any_store.declare({TOTAL: Shape("value", "str", "float")})
    assert any_store.load().shapes == {**SHAPES, TOTAL: Shape("value", "str", "float")}


def test_what_was_delivered_is_dropped(any_store: Store) -> None:
    """Rows up to the last epoch that their committer has had, and letters up to the last one that their sink has."""
    rows = [[Rows("ledger", epoch, b"x"), Rows("mail", epoch, b"y")] for epoch in (1, 2)]
    any_store.commit(commit(1, outbox=rows[0], letters=[b"one"]))
    any_store.commit(commit(2, outbox=rows[1], letters=[b"two"]))
    any_store.commit(commit(3, delivered=[("ledger", 1), ("mail", 2)], letters_delivered=1))
    assert any_store.load().outbox == (Rows("ledger", 2, b"x"),)
    assert any_store.load().letters == ((2, b"two"),)


def test_rounds_drop_what_they_have_written_again(store: Store) -> None:
    """When a round begins, what is older than the beginning of the one before goes, of this state alone."""
    for epoch, (text, begins) in enumerate(
        [("a", False), ("b", True), ("c", False), ("d", True), ("e", False)], 1
    ):
        store.commit(commit(epoch, append(text, begins=begins), append(text, state=OTHER)))
    assert blobs(store.load()) == "b c d e"
    store.commit(commit(6, append("f", begins=True)))
    assert blobs(store.load()) == "d e f"
    assert blobs(store.load(), OTHER) == "a b c d e"


def test_two_rounds_in_one_epoch(store: Store) -> None:
    """A small state may be written again more than once."""
    store.load()
    store.commit(
        commit(1, append("a", begins=True), append("b"), append("c", begins=True), append("d", begins=True))
    )
    assert blobs(store.load()) == "c d"


def test_a_round_goes_on_in_the_next_run(store: Store) -> None:
    """It is the run that knows whether it has written all keys, not the store."""
    store.commit(commit(1, append("a"), append("b", begins=True)))
    store.load()
    store.commit(commit(2, append("c")))
    assert blobs(store.load()) == "a b c"
    store.commit(commit(3, append("d", begins=True)))
    assert blobs(store.load()) == "b c d"


def test_a_failed_commit_begins_no_round(store: Store) -> None:
    """Its rows are not there, so that the round before is still the last one."""
    store.commit(commit(1, append("a"), append("b", begins=True)))
    with pytest.raises(StateUnusable):
        store.commit(commit(5, append("c", begins=True)))
    store.commit(commit(2, append("d", begins=True)))
    assert blobs(store.load()) == "b d"


def test_an_epoch_of_the_past(store: Store) -> None:
    """Each epoch can be read as it was, without what was delivered since."""
    store.commit(commit(1, append("a"), outbox=[Rows("ledger", 1, b"x")], letters=[b"one"]))
    store.commit(commit(2, append("b"), outbox=[Rows("ledger", 2, b"y")], delivered=[("ledger", 1)]))
    store.commit(commit(3, append("c")))
    assert [blobs(store.at(epoch)) for epoch in range(4)] == ["", "a", "a b", "a b c"]
    assert store.at(1) == Stored(
        store.load().line, 1, 1.0, {"lines[0]": b"1"}, {}, {TOTAL: (b"a",)}, (), ((1, b"one"),)
    )
    assert store.at(0) == Stored(store.load().line)
    assert store.at(3) == store.load()


def test_a_past_that_is_gone(store: Store) -> None:
    """Epochs before the last one that has dropped rows are named as gone, like those to come."""
    for epoch in range(1, 5):
        store.commit(commit(epoch, append("abcd"[epoch - 1], begins=epoch != 4)))
    assert blobs(store.at(3)) == "b c"
    for epoch in (2, 5):
        with pytest.raises(StateUnusable, match=f"does not have epoch {epoch}; it has those from 3 to 4"):
            store.at(epoch)


def test_a_past_that_is_wanted_for_longer(store: Store) -> None:
    """Rows stay for as long as an epoch of the history needs them, and a run that begins reads the newest ones only."""
    for epoch in range(1, 9):
        store.commit(commit(epoch, append("abcdefgh"[epoch - 1], begins=True), history=3.0))
    assert [blobs(store.at(epoch)) for epoch in range(5, 9)] == ["d e", "e f", "f g", "g h"]
    assert blobs(store.load()) == "g h"
    with pytest.raises(StateUnusable, match="does not have epoch 4; it has those from 5 to 8"):
        store.at(4)


def test_a_history_is_of_the_clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have more epochs than are kept without it, and fewer; a clock that was set back ends no history."""
    monkeypatch.setattr(retention, "KEPT_EPOCHS", 2)
    monkeypatch.setattr(retention, "TRIMMED_EVERY", 1)
    for epoch, now in enumerate([10.0, 20.0, 30.0, 5.0, 6.0, 7.0], 1):
        store.commit(commit(epoch, closed_at=now, history=15.0))
    assert store.at(1).closed_at == 10.0
    store.commit(commit(7, closed_at=44.0, history=15.0))
    assert store.at(2).closed_at == 20.0
    with pytest.raises(StateUnusable, match="does not have epoch 1"):
        store.at(1)


def test_a_past_that_is_too_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without states, too, only so many epochs can be read, and positions outlive them."""
    monkeypatch.setattr(retention, "KEPT_EPOCHS", 20)
    monkeypatch.setattr(retention, "TRIMMED_EVERY", 5)
    for epoch in range(1, 33):
        store.commit(commit(epoch, positions={"a[0]": b"x"} if epoch == 1 else {"b[0]": b"%d" % epoch}))
    with pytest.raises(StateUnusable, match="does not have epoch 9; it has those from 10 to 32"):
        store.at(9)
    assert store.at(10).positions == {"a[0]": b"x", "b[0]": b"10"}
    assert store.load().positions == {"a[0]": b"x", "b[0]": b"32"}


def test_what_is_durable_is_what_was_committed(any_store: Store) -> None:
    """The newest value of each key, positions, and what was not delivered."""
    program = Program(any_store, 1)
    for _ in range(60):
        program.commit()
        assert list(differences(any_store.load(), 1)) == []


def test_a_state_is_as_long_as_its_rounds(store: Store) -> None:
    """However many epochs there were, what is kept is what some rounds have written."""
    program = Program(store, 1)
    program.run(120)
    stored = store.load()
    assert list(differences(stored, 1)) == []
    assert sum(map(len, stored.states.values())) < 60
