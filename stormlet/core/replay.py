"""Replay policy: the pause before a failed message is emitted again, and the attempts before it is given up (law
S6)."""

from __future__ import annotations

from random import Random

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
