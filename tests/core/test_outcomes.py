from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from stormlet.core import outcomes
from stormlet.core.outcomes import KEPT_FIRST, KEPT_LAST, DeadLetter, Failure, FailureKind, History


def test_there_are_five_reasons() -> None:
    """A failure says why, with one of the five reasons (law L14)."""
    assert [kind.name for kind in FailureKind] == ["FAILED", "TIMEOUT", "OVERFLOW", "TASK_LOST", "SHUTDOWN"]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(FailureKind.FAILED, "split", 4), "failed in 'split' (task 4)"),
        (Failure(FailureKind.FAILED, "split", 4, "no words", task_index=1), "failed in split[1]: no words"),
        (Failure(FailureKind.FAILED, "sp\nlit", 4, task_index=0), "failed in sp\\nlit[0]"),
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


def test_a_history_keeps_the_first_and_the_last() -> None:
    """A message may be replayed for ever, and needs no more room after 100 attempts; each keeps its number."""
    history = History()
    for attempt in range(1, 1001):
        history = history.and_also(Failure(FailureKind.FAILED, reason=str(attempt)))
        assert len(history) + history.left_out == attempt
        assert all(failure.reason == str(number) for number, failure in history.numbered())
    assert len(history) == KEPT_FIRST + KEPT_LAST
    assert [history[place].reason for place in (0, KEPT_FIRST - 1, KEPT_FIRST, -1)] == [
        "1",
        "10",
        "911",
        "1000",
    ]


def test_messages_that_time_out_in_the_same_way_share_their_history() -> None:
    """A failure that is one object for many of them makes one history, and one of each attempt."""
    first, second = Failure(FailureKind.TIMEOUT, holders=("a",)), Failure(FailureKind.TIMEOUT, holders=("b",))
    nothing = History()
    shared = [nothing.and_also(first).and_also(second) for _ in range(2)]
    assert shared[0] == (first, second)
    assert shared[0] is shared[1]
    assert nothing.and_also(second) == (second,)


def test_what_is_known_of_one_message_alone_is_not_shared() -> None:
    """Failures that a recorder has described are equal to others, and are told each with its own seconds."""
    nothing, timeout = History(), Failure(FailureKind.TIMEOUT)
    histories = [nothing.and_also(timeout.recorded(seconds, ())) for seconds in (1.0, 2.0)]
    assert [history[0].seconds for history in histories] == [1.0, 2.0]
    assert nothing.and_also(timeout)[0].seconds is None


def test_shared_histories_are_forgotten_again() -> None:
    """However many ways there are to time out, a few hundred are remembered, and all are right."""
    nothing = History()
    for number in range(1000):
        timeout = Failure(FailureKind.TIMEOUT, holders=(f"bolt {number}",))
        assert nothing.and_also(timeout) == (timeout,)
    assert outcomes._all_timed_out.cache_info().currsize <= 256  # pyright: ignore[reportPrivateUsage]


def test_a_history_without_frames_keeps_its_numbers() -> None:
    """What is parted from its frames is as long as before."""
    history = History()
    for _ in range(200):
        history = history.and_also(a_failure())
    kept = history.without_frames()
    assert kept.numbered()[-1][0] == 200
    assert [each.exception.__traceback__ for each in kept if each.exception is not None] == [None] * 100


def a_failure() -> Failure:
    try:
        raise ValueError("a")
    except ValueError as error:
        return Failure(FailureKind.FAILED, "split", 4, exception=error)


def test_a_failure_without_frames_says_the_same() -> None:
    """Its text and its place are those of the failure itself, which is left alone."""
    failure = a_failure()
    kept = failure.without_frames()
    assert (str(kept), kept.place) == (str(failure), failure.place)
    assert kept.exception is not failure.exception
    assert kept.without_frames() is kept


def test_a_letter_without_frames_says_the_same() -> None:
    """Its failure is the last of its history, as before; one that a spout has written may have no history."""
    failure = a_failure()
    letter = DeadLetter("lines", "a b", 7, 2, failure, None, (a_failure(), failure)).without_frames()
    assert letter.history[-1] is letter.failure
    assert [each.exception.__traceback__ for each in letter.history if each.exception is not None] == [
        None,
        None,
    ]
    alone = DeadLetter("lines", "a b", 7, 1, failure).without_frames()
    assert (alone.failure.exception is failure.exception, alone.history) == (False, ())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exception": "disk full"}, "a failure has exception='disk full', which is no exception"),
        (
            {"exception": OSError, "component": "b", "task": 3},
            "a failure in 'b' (task 3) has exception=<class",
        ),
        ({"reason": OSError()}, "a failure has reason=OSError(), which is no text"),
    ],
)
def test_a_failure_has_text_and_an_exception(given: Any, said: str) -> None:
    """Neither is taken for the other."""
    with pytest.raises(TypeError, match=re.escape(said)):
        Failure(FailureKind.FAILED, **given)
