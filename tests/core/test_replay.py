from __future__ import annotations

from random import Random

import pytest

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.retries import JITTER, ReplayPolicy

FAILED = Failure(FailureKind.FAILED)


class Fixed(Random):
    """Always gives the same share."""

    def __init__(self, share: float) -> None:
        super().__init__(0)
        self.share = share

    def random(self) -> float:
        return self.share


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        (FailureKind.FAILED, True),
        (FailureKind.TIMEOUT, True),
        (FailureKind.OVERFLOW, False),
        (FailureKind.SHUTDOWN, False),
    ],
)
def test_which_failures_are_attempts(kind: FailureKind, counts: bool) -> None:
    """A message that no bolt has tried has not been attempted (law S6)."""
    assert ReplayPolicy().counts(Failure(kind, "bolt", 3)) is counts


def test_an_acker_s_death_is_no_attempt() -> None:
    """No component has lost the tuples of that tree: the message had no part in it."""
    assert not ReplayPolicy().counts(Failure(FailureKind.TASK_LOST, reason="__acker[0] died"))


def test_for_the_host_no_room_is_an_attempt() -> None:
    """It waits for the outcome, and would wait for room unknowingly (law C4); an acker's death is no attempt."""
    policy = ReplayPolicy()
    assert policy.counts_for_host(Failure(FailureKind.OVERFLOW))
    assert policy.counts_for_host(Failure(FailureKind.TASK_LOST, "bolt", 3))
    assert not policy.counts_for_host(Failure(FailureKind.TASK_LOST, reason="__acker[0] died"))


def test_five_attempts_by_default() -> None:
    """The fourth failure is replayed, the fifth is the last one (law S6)."""
    policy = ReplayPolicy()
    assert [policy.gives_up(FAILED, attempts) for attempts in range(1, 7)] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(("most", "attempts"), [(1, 1), (2, 2), (7, 7)])
def test_a_message_may_have_a_limit_of_its_own(most: int, attempts: int) -> None:
    """What the host asks for wins over the policy, in both directions (law C4)."""
    policy = ReplayPolicy(max_attempts=3)
    assert policy.gives_up(FAILED, attempts, most)
    assert not policy.gives_up(FAILED, attempts - 1, most)
    assert policy.gives_up(FAILED, 3)


def test_a_permanent_failure_is_given_up_at_once() -> None:
    """``Reject`` and ``permanent=True`` skip the replays (law S6)."""
    permanent = Failure(FailureKind.FAILED, permanent=True)
    assert ReplayPolicy().gives_up(permanent, 1)
    assert ReplayPolicy().gives_up(permanent, 1, 10)


def test_pauses_double_up_to_the_longest() -> None:
    """0.1 s, 0.2, 0.4 … 25.6, then 30 s for ever (law S6)."""
    pauses = [ReplayPolicy().pause(failures, Fixed(0.0)) for failures in range(1, 12)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


def test_jitter_only_stretches() -> None:
    """A pause lasts its doubled time and up to a quarter more, never less."""
    assert ReplayPolicy().pause(2, Fixed(0.5)) == pytest.approx(0.2 * (1 + JITTER / 2))
    random = Random(4)
    pauses = [ReplayPolicy().pause(3, random) for _ in range(500)]
    assert 0.4 <= min(pauses) < 0.41
    assert 0.49 < max(pauses) < 0.4 * (1 + JITTER)


def test_one_seed_gives_one_jitter() -> None:
    """Pauses come from the generator alone (law L16)."""
    policy, a, b = ReplayPolicy(), Random(8), Random(8)
    assert [policy.pause(n, a) for n in range(1, 9)] == [policy.pause(n, b) for n in range(1, 9)]


def test_many_failures_do_not_overflow() -> None:
    """Overflows do not count as attempts, so there may be thousands of failures in a row."""
    assert ReplayPolicy().pause(100_000, Fixed(0.0)) == 30.0


def test_pauses_of_nothing() -> None:
    """A delay of 0 replays at once, every time."""
    policy = ReplayPolicy(first_pause=0.0, longest_pause=0.0)
    assert [policy.pause(failures, Fixed(0.9)) for failures in (1, 5, 50)] == [0.0, 0.0, 0.0]
