"""The task that gives back what a broker would soon close the connection for (law R4).

Such a broker waits for a message for so long, and then takes back all that came by the same connection. So the message
is given back before, alone: it comes again, to whomever, and its tree goes on here without replays.
"""

from __future__ import annotations

import asyncio
from typing import Final

from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.status import Status
from stormlet.core.shortened import counted

PART: Final = 0.8
"""The part of the broker's time after which a message is given back: it may have waited in the client, too."""
LOOKS: Final = 100
"""Looks in that time at most."""


class Overdue:
    """Watches the messages of one source task."""

    def __init__(self, most_held: float, holding: Holding, status: Status) -> None:
        """``most_held``: seconds for which the broker waits."""
        self._after = most_held * PART
        self._most_held = most_held
        self._holding = holding
        self._status = status
        self._clock = asyncio.get_running_loop().time

    async def keep(self) -> None:
        """Give back what is held for too long, for ever."""
        while True:
            oldest = self._holding.oldest
            left = self._after if oldest is None else oldest + self._after - self._clock()
            await asyncio.sleep(max(left, self._after / LOOKS))
            given = self._holding.hand_back(self._clock() - self._after)
            if given:
                self._status.warn(
                    "%s been under way for %g s; given back, to come again, as the broker closes the connection "
                    "after %g s",
                    counted(given, "message has", "messages have"),
                    self._after,
                    self._most_held,
                )
