"""Something outside of a simulated loop that may still bring it something."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

SHORTEST_LULL: Final = 0.1
LONGEST_LULL: Final = 1.0


class Thing(ABC):
    """One of them. Times are seconds of real time."""

    given_up = False
    """The clock has waited for it in vain, and it was not heard of since."""

    @abstractmethod
    def until(self, patience: float) -> float:
        """Until when the clock waits for it."""

    @abstractmethod
    def __str__(self) -> str:
        """What it is and does."""


class Partner(Thing):
    """One that is talked with: it is told something, and heard to answer."""

    def __init__(self, now: float) -> None:
        self._told = now
        self._heard = 0.0
        self._took = 0.0

    @property
    def owes(self) -> bool:
        """Whether nothing has come from it since it was told something, or came to be."""
        return self._heard < self._told

    def tell(self, now: float) -> None:
        """Something goes there."""
        self._told = now

    def hear(self, now: float) -> None:
        """Something comes from there."""
        if self.owes:
            self._took = now - self._told
        self._heard = now
        self.given_up = False

    def answers_until(self) -> float:
        """When an answer that has begun is taken for complete: after a lull as long as it took to begin."""
        return self._heard + min(max(SHORTEST_LULL, self._took), LONGEST_LULL)

    def silent_until(self, patience: float) -> float:
        """When it has been silent for so long."""
        return max(self._told, self._heard) + patience
