"""When a failed message is emitted again, and when it is given up (law S6)."""

from __future__ import annotations

from random import Random

import msgspec

from stormlet.core.outcomes import Failure, FailureKind

JITTER = 0.25
"""A pause is stretched by up to this fraction of itself, so that messages that failed together do not return
together."""

NOT_ATTEMPTS = (FailureKind.OVERFLOW, FailureKind.SHUTDOWN)
"""Failures of messages that no bolt has tried (law S6)."""


class ReplayPolicy(msgspec.Struct, frozen=True):
    """How often and how soon. Pauses are in seconds."""

    max_attempts: int = 5
    first_pause: float = 0.1
    longest_pause: float = 30.0

    def counts(self, failure: Failure) -> bool:
        """Whether this failure uses up an attempt: one of an acker that died is not the message's doing."""
        if failure.kind is FailureKind.TASK_LOST:
            return failure.component is not None
        return failure.kind not in NOT_ATTEMPTS

    def counts_for_host(self, failure: Failure) -> bool:
        """Whether this failure uses up an attempt at a message that the host waits for: also that of one which found
        no room, as the host would wait for room without hearing why (law C4)."""
        return failure.kind is FailureKind.OVERFLOW or self.counts(failure)

    def gives_up(self, failure: Failure, attempts: int, max_attempts: int | None = None) -> bool:
        """Whether a message that failed like this after so many counted attempts is given up."""
        return failure.permanent or attempts >= (max_attempts or self.max_attempts)

    def pause(self, failures: int, random: Random) -> float:
        """Seconds until the replay after so many failures in a row: 0.1, 0.2, 0.4 … 30 by default, plus
        jitter."""
        doubled = self.first_pause * 2.0 ** min(failures - 1, 64)
        return min(doubled, self.longest_pause) * (1.0 + JITTER * random.random())
