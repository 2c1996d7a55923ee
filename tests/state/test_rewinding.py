"""A file that goes back to an earlier epoch, and on from there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from stormlet.core.state.commits import Append, Commit, Rows, StateId
from stormlet.errors import StateUnusable
from stormlet.state.sqlite.file import StateFile
from stormlet.state.sqlite.reading import StateReader
from tests.state.programs import Program, account, differences, read


def first(path: Path) -> int:
    with closing(StateReader(path)) as reader:
        return reader.epochs()[0].number


@pytest.mark.parametrize("seed", range(8))
def test_going_back_and_on_is_as_never_having_left(seed: int, tmp_path: Path) -> None:
    """At any epoch that is kept, any number of times: each epoch is then what it would have been."""
    path, random = tmp_path / "words.state", Random(seed)
    for _ in range(12):
        with closing(StateFile(path, "words")) as file:
            Program(file, seed).run(random.randint(0, 15))
            assert list(differences(file.load(), seed, past=True)) == []  # what was delivered stays delivered
            last = file.load().epoch
            chosen = random.randint(first(path), last)
            assert file.rewind(chosen).lost == last - chosen
            assert list(differences(file.load(), seed, past=True)) == []
            assert read(file.load()).live == account(seed, chosen).live


def test_each_way_back_begins_another_line(tmp_path: Path) -> None:
    """Also in a copy of the file."""
    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        Program(file, 1).run(3)
        lines = [file.load().line]
        for _ in range(3):
            file.rewind(first(tmp_path / "words.state"))
            lines.append(file.load().line)
    assert len(set(lines)) == 4


def test_a_line_knows_the_epochs_that_it_shares_with_the_ones_before(tmp_path: Path) -> None:
    """Those up to the earliest epoch that it went back to since (law X10)."""
    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        lines: list[str] = []
        for last in (5, 3, 4):
            for epoch in range(file.load().epoch + 1, 9):
                file.commit(Commit(epoch, epoch, {}))
            lines.append(file.load().line)
            file.rewind(last)
        assert file.load().ancestors == ((lines[0], 3), (lines[1], 3), (lines[2], 4))


def test_an_epoch_that_is_not_kept_changes_nothing(tmp_path: Path) -> None:
    """Neither one to come nor one that is gone."""
    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        Program(file, 1).run(300)
        before = file.load()
        for epoch in (0, 301):
            with pytest.raises(StateUnusable, match=f"does not have epoch {epoch}; it has those from"):
                file.rewind(epoch)
        assert file.load() == before


def test_the_epoch_of_a_time_is_the_last_one_before(tmp_path: Path) -> None:
    """Each of these has its number as its time; there is none before the first."""
    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        for epoch in range(1, 6):
            file.commit(Commit(epoch, epoch, {}))
        assert [file.epoch_at(each) for each in (1.0, 3.5, 4.0, 1e12)] == [1, 3, 4, 5]
        with pytest.raises(StateUnusable, match="has no epoch of that time; its first is epoch 0"):
            file.epoch_at(0.5)


def test_nothing_of_the_lost_epochs_comes_back(tmp_path: Path) -> None:
    """Not when the numbers of the new ones have reached theirs, with other contents."""
    total = StateId("count", "total")

    def epoch(number: int) -> Commit:
        return Commit(
            number, number, {"words[0] of 1": b"%d" % number}, [Append(total, b"\x81\xa1a" + bytes([number]))],
            [Rows("mail", number, b"%d" % number)], letters=[b"%d" % number],
        )  # fmt: skip

    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        for number in range(1, 4):
            file.commit(epoch(number))
        file.rewind(1)
        for number in (2, 3):
            file.commit(Commit(number, number, {}))
        stored = file.load()
    assert stored.positions == {"words[0] of 1": b"1"}
    assert stored.states == {total: (b"\x81\xa1a\x01",)}
    assert (stored.outbox, stored.letters) == ((Rows("mail", 1, b"1"),), ((1, b"1"),))
