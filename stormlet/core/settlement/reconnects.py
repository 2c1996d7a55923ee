"""The pauses before further attempts at a lost connection, which go on for ever (law R8)."""

from __future__ import annotations

from random import Random

import msgspec


class ReconnectPolicy(msgspec.Struct, frozen=True):
    """Pauses in seconds: ``first_pause``, doubled up to ``longest_pause``, of which a random part is waited."""

    first_pause: float = 0.1
    longest_pause: float = 10.0

    def pause(self, attempt: int, random: Random) -> float:
        """Return the seconds before attempt ``attempt``, from 1, at a connection that was lost."""
        # Bounded, as a float does not hold 2 ** 1024. Half of it is random, so that all that have lost the same broker
        # do not come back together.
        doubled = min(self.first_pause * 2.0 ** min(attempt - 1, 64), self.longest_pause)
        return doubled * (0.5 + 0.5 * random.random())
