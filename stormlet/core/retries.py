"""Policies of retries: the pauses before a failed message is emitted again (law S6) and before a dead task is started
again (law C5), and the end of both.

Restarts follow the failure cases of seed 003 and Erlang's restart intensity.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final

import msgspec

from stormlet.core.outcomes import Failure, FailureKind

JITTER = 0.25
"""Largest fraction by which a pause is stretched, so that messages that failed together do not return together."""

NOT_ATTEMPTS = (FailureKind.OVERFLOW, FailureKind.SHUTDOWN)
"""Failures of messages that no bolt has tried (law S6)."""


class ReplayPolicy(msgspec.Struct, frozen=True):
    """Number of attempts, and the pauses between them in seconds."""

    max_attempts: int = 5
    first_pause: float = 0.1
    longest_pause: float = 30.0

    def counts(self, failure: Failure) -> bool:
        """Return True if this failure uses up an attempt."""
        # TASK_LOST names the bolt that had the tuple. Without one an acker or the spout has died: no message's fault.
        if failure.kind is FailureKind.TASK_LOST:
            return failure.component is not None
        return failure.kind not in NOT_ATTEMPTS

    def counts_for_host(self, failure: Failure) -> bool:
        """Return True if this failure uses up an attempt at a message that the host awaits (law C4).

        OVERFLOW does, unlike for a spout's message: the host would wait for room without learning why.
        """
        return failure.kind is FailureKind.OVERFLOW or self.counts(failure)

    def gives_up(self, failure: Failure, attempts: int, max_attempts: int | None = None) -> bool:
        """Return True if a message that failed like this is given up after ``attempts`` counted attempts."""
        return failure.permanent or attempts >= (max_attempts or self.max_attempts)

    def pause(self, failures: int, random: Random) -> float:
        """Return the seconds until the replay after ``failures`` failures in a row: 0.1, 0.2, 0.4 … 30 by default,
        plus jitter."""
        # Bounded, as a float does not hold 2 ** 1024, and a message may fail more often than that.
        doubled = self.first_pause * 2.0 ** min(failures - 1, 64)
        # The longest pause is stretched too: messages would fall into step at that bound.
        return min(doubled, self.longest_pause) * (1.0 + JITTER * random.random())


MOST_DOUBLINGS: Final = 64
"""Doublings of a pause at most. A float does not hold 2 ** 1024, and a task may be restarted more often than that."""

KEPT_EXACTLY: Final = 1000
"""Restarts that are kept with times of their own, so that memory is bounded whatever the policy allows.

A further restart is counted together with those of at most a thousandth of the window before it. These then leave the
window with it, late by that thousandth at most.
"""


class RestartPolicy(msgspec.Struct, frozen=True):
    """At most ``most`` restarts in any ``within`` seconds. The pause before the first one is ``first_pause`` seconds;
    it doubles for each further one up to ``longest_pause``."""

    most: int = 3
    within: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0

    def __str__(self) -> str:
        return f"{self.most} {'restart' if self.most == 1 else 'restarts'} within {self.within:g} s"


class Restarts:
    """The restarts of one task."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.policy = policy
        self.count = 0
        """Restarts in all, those after kills included."""
        self._recent: deque[_Moment] = deque()
        self._in_window = 0

    def within_window(self, now: float) -> int:
        """Return the number of restarts that the policy counts now: not those after kills, nor those before the
        window."""
        recent = self._recent
        while recent and now - recent[0].last >= self.policy.within:
            self._in_window -= recent.popleft().count
        return self._in_window

    def pause_after_kill(self) -> float:
        """Count a restart after a kill and return the seconds to wait before it."""
        # The task's own code is not to blame, so the restart is not part of a crash loop.
        self.count += 1
        return self._pause(0)

    def pause(self, now: float) -> float | None:
        """Count a restart after a death and return the seconds to wait before it; None if the policy allows no more."""
        policy, recent = self.policy, self.within_window(now)
        if recent >= policy.most:
            return None
        pause = self._pause(recent)
        # The window counts the restart itself, which comes after the pause, not the death.
        self._note(now + pause)
        self.count += 1
        return pause

    def _pause(self, restarts: int) -> float:
        doubled = self.policy.first_pause * 2.0 ** min(restarts, MOST_DOUBLINGS)
        return min(doubled, self.policy.longest_pause)

    def _note(self, when: float) -> None:
        recent = self._recent
        self._in_window += 1
        if len(recent) >= KEPT_EXACTLY and when - recent[-1].first < self.policy.within / KEPT_EXACTLY:
            recent[-1].last = when
            recent[-1].count += 1
        else:
            recent.append(_Moment(when, when))


class _Moment(msgspec.Struct):
    """Restarts that are counted together; a single one, unless there are very many."""

    first: float
    last: float
    count: int = 1
