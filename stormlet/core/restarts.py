"""How often a task that dies is restarted, and how soon (seed 003's failure cases; Erlang's restart intensity)."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

MOST_DOUBLINGS: Final = 64
"""A pause is doubled so many times at most: a float does not hold the thousandth power of two."""
KEPT_EXACTLY: Final = 1000
"""How many restarts are kept with their own times. What comes beyond is counted together with what came at most a
thousandth of the window before, and so counts for that much longer."""


class RestartPolicy(msgspec.Struct, frozen=True):
    """At most ``most`` restarts in any ``within`` seconds; before the first one ``first_pause`` seconds, doubled for
    each further one up to ``longest_pause``."""

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
        """How many there were, those after kills included."""
        self._recent: deque[_Moment] = deque()
        self._in_window = 0

    def within_window(self, now: float) -> int:
        """How many of them the policy counts now: those after kills, and those that are long past, are left out."""
        recent = self._recent
        while recent and now - recent[0].last >= self.policy.within:
            self._in_window -= recent.popleft().count
        return self._in_window

    def pause_after_kill(self) -> float:
        """Somebody has killed it, so that its code is not to blame: the seconds to wait."""
        self.count += 1
        return self._pause(0)

    def pause(self, now: float) -> float | None:
        """It has died: the seconds to wait before it is restarted; None if that would be once too often."""
        policy, recent = self.policy, self.within_window(now)
        if recent >= policy.most:
            return None
        pause = self._pause(recent)
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
    """Restarts that are counted together: as one, until there are very many."""

    first: float
    last: float
    count: int = 1
