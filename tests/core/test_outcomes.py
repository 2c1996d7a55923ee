from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from stormlet.core.outcomes import DeadLetter, Failure, FailureKind


def test_there_are_five_reasons() -> None:
    """A failure says why, with one of the five reasons (law L14)."""
    assert [kind.name for kind in FailureKind] == ["FAILED", "TIMEOUT", "OVERFLOW", "TASK_LOST", "SHUTDOWN"]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(FailureKind.FAILED, "split", 4), "failed in 'split' (task 4)"),
        (Failure(FailureKind.FAILED, "split", 4, "no words"), "failed in 'split' (task 4): no words"),
        (
            Failure(FailureKind.FAILED, "split", 4, exception=ValueError("x")),
            "failed in 'split' (task 4): ValueError('x')",
        ),
        (
            Failure(FailureKind.FAILED, "split", 4, "Reject says it", ValueError("x")),
            "failed in 'split' (task 4): ValueError('x')",
        ),
        (Failure(FailureKind.TIMEOUT), "timeout, held by no component"),
        (Failure(FailureKind.TIMEOUT, holders=("a", "b")), "timeout, held by 'a', 'b'"),
        (Failure(FailureKind.OVERFLOW), "overflow"),
        (Failure(FailureKind.TASK_LOST, "count", 2), "task lost in 'count' (task 2)"),
        (Failure(FailureKind.SHUTDOWN), "shutdown"),
        (Failure(FailureKind.SHUTDOWN, reason="deadline"), "shutdown: deadline"),
    ],
    ids=str,
)
def test_a_failure_says_why(failure: Failure, text: str) -> None:
    """One line names the reason, where it happened, and the exception before the words."""
    assert str(failure) == text


def test_holders_are_told_of_a_copy() -> None:
    """``held_by`` leaves the failure itself, which many trees share, as it is."""
    timeout = Failure(FailureKind.TIMEOUT)
    held = timeout.held_by(("count",))
    assert held == Failure(FailureKind.TIMEOUT, holders=("count",))
    assert timeout.holders == ()


def test_a_failure_cannot_be_changed() -> None:
    """Trees share failures, so nobody may write to one."""
    with pytest.raises(FrozenInstanceError):
        Failure(FailureKind.SHUTDOWN).reason = "other"  # type: ignore[misc]


def test_a_dead_letter_has_all_that_is_known() -> None:
    """Where it came from, what it was, how often it was tried, why each attempt failed (law S6)."""
    failure = Failure(FailureKind.FAILED, "split", 4)
    letter = DeadLetter("lines", "a b", 7, 2, failure, ("file", 3), (Failure(FailureKind.OVERFLOW), failure))
    assert (letter.component, letter.value, letter.message_id, letter.attempts) == ("lines", "a b", 7, 2)
    assert letter.history[-1] is letter.failure is failure
    assert letter.origin == ("file", 3)


def test_a_dead_letter_without_an_origin() -> None:
    """What its source did not say is None, and no history is no failures."""
    letter = DeadLetter("lines", "a b", 7, 1, Failure(FailureKind.TIMEOUT))
    assert letter.origin is None
    assert letter.history == ()
