"""How often a task that dies is restarted, and how soon (seed 003's failure cases; Erlang's restart intensity)."""

from __future__ import annotations

from collections import deque

import msgspec


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
        self._recent: deque[float] = deque()

    def within_window(self, now: float) -> int:
        """How many of them the policy counts now: those after kills, and those that are long past, are left out."""
        recent = self._recent
        while recent and now - recent[0] >= self.policy.within:
            recent.popleft()
        return len(recent)

    def pause_after_kill(self) -> float:
        """Somebody has killed it, so that its code is not to blame: the seconds to wait."""
        self.count += 1
        return self.policy.first_pause

    def pause(self, now: float) -> float | None:
        """It has died: the seconds to wait before it is restarted; None if that would be once too often."""
        policy, recent = self.policy, self.within_window(now)
        if recent >= policy.most:
            return None
        pause = min(policy.first_pause * 2.0**recent, policy.longest_pause)
        self._recent.append(now + pause)
        self.count += 1
        return pause
