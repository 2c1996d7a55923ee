"""The account of a partition: the front moves over what is settled, and over nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.settlement.prefix import Front, Prefix


def prefix_of(*positions: int, most: int = 100) -> Prefix:
    prefix = Prefix("events[2]", most)
    for position in positions:
        prefix.add(position)
    return prefix


def test_the_front_moves_over_gaps() -> None:
    """Positions 17 and 23 follow one another where the topic was compacted."""
    prefix = prefix_of(17, 23)
    prefix.settle(0)
    assert prefix.to_commit() == Front(17, 0)
    prefix.settle(1)
    assert prefix.to_commit() == Front(23, 1)


def test_what_is_settled_behind_an_open_one_waits() -> None:
    """Nothing is committed past a delivery that is not settled."""
    prefix = prefix_of(1, 2, 3)
    prefix.settle(1)
    prefix.settle(2)
    assert (prefix.to_commit(), prefix.open, prefix.uncommitted) == (None, 1, 3)
    prefix.settle(0)
    assert (prefix.to_commit(), prefix.open, prefix.uncommitted) == (Front(3, 2), 0, 0)


def test_each_settles_once() -> None:
    """A second outcome, and one of a delivery that never came, changes nothing."""
    prefix = prefix_of(1, 2)
    assert [prefix.settle(each) for each in (1, 1, 0, 0, 2, -1)] == [True, False, True, False, False, False]


def test_a_commit_that_failed_is_due_again() -> None:
    """Only what the broker has is committed."""
    prefix = prefix_of(1, 2)
    prefix.settle(0)
    asked = prefix.to_commit()
    assert asked is not None
    assert prefix.to_commit() == asked
    prefix.committed(asked)
    assert prefix.to_commit() is None


def test_a_late_answer_does_not_take_a_commit_back() -> None:
    """Of two commits that are under way the later one counts, whichever is answered first."""
    prefix = prefix_of(1, 2)
    prefix.settle(0)
    first = prefix.to_commit()
    prefix.settle(1)
    second = prefix.to_commit()
    assert first is not None
    assert second is not None
    prefix.committed(second)
    prefix.committed(first)
    assert prefix.to_commit() is None


def test_a_revoked_partition_is_fenced() -> None:
    """Nothing is settled, committed or taken any more."""
    prefix = prefix_of(1, 2)
    prefix.settle(0)
    prefix.revoke()
    assert (prefix.settle(1), prefix.to_commit(), prefix.is_revoked) == (False, None, True)
    with pytest.raises(ValueError, match=r"'events\[2\]' is revoked"):
        prefix.add(3)


def test_the_bound_has_two_marks() -> None:
    """It is full at its bound, and has room again when half of it is done."""
    prefix = prefix_of(1, 2, 3, most=4)
    assert not prefix.is_full
    prefix.add(4)
    assert prefix.is_full
    prefix.settle(0)
    assert not prefix.is_full
    assert not prefix.has_room
    prefix.settle(1)
    assert prefix.has_room


def test_a_bound_below_one_is_refused() -> None:
    """Nothing would ever be asked for."""
    with pytest.raises(ValueError, match="at least 1 delivery, not 0"):
        Prefix("p", 0)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_front_is_that_of_a_naive_account(gaps: list[int], random: object) -> None:
    """In any order of settling, the front is the last position before which all are settled."""
    positions = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    prefix = prefix_of(*positions)
    order = list(range(len(positions)))
    random.shuffle(order)  # type: ignore[attr-defined]
    settled = set[int]()
    for number in order:
        prefix.settle(number)
        settled.add(number)
        before = next((each for each in range(len(positions) + 1) if each not in settled), len(positions))
        front = prefix.to_commit()
        assert (front.position if front else None) == (positions[before - 1] if before else None)
        assert prefix.open == len(positions) - len(settled)
