"""The partitions of a source task: which it has, which are paused, and which it is about to give away (law R1, R2).

A partition that is given away is drained first and fenced second: :meth:`Partitions.revoke` returns what may be
committed only when its trees are done or the time is up, and from the same moment on nothing of it can be committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from stormlet.connect.driver.context import Fronts
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.settling import Settling
from stormlet.connect.session import Session, Settles
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import InvalidTopology


class Partitions:
    """The partitions of one source task."""

    def __init__(
        self, holding: Holding, settling: Settling, settings: SourceSettings, settles: Settles
    ) -> None:
        """``settling`` knows those that belong to the task, as it commits their fronts."""
        self._holding = holding
        self._settling = settling
        self._settings = settings
        self._settles = settles
        self._paused: dict[Prefix, None] = {}
        self._revoking: dict[Prefix, None] = {}
        self._balancing = asyncio.Lock()
        """Held while the session is told: a partition that is resumed before its pause has reached the broker would be
        paused for ever."""
        self._begins = True
        """False while the topology is deactivated: nothing is begun."""

    def go_on(self) -> None:
        """Begin again what is read."""
        self._begins = True

    def rest(self) -> None:
        """Begin nothing from now on. Messages that wait in partitions that are given away are for their next owner."""
        self._begins = False
        self._holding.withdraw_unbegun(self._revoking, with_overtaken=True)

    def assign(self, name: str, most_uncommitted: int) -> Prefix:
        """A partition belongs to this task from now on."""
        if self._settles is Settles.EACH:  # else the broker would hear of no receipt
            raise InvalidTopology(
                f"partition {name!r} is assigned, and capabilities say settles=Settles.EACH, by which each message is "
                f"settled by its receipt; let them say Settles.PREFIX, or leave out the partition and place="
            )
        place = Prefix(name, min(most_uncommitted, self._settings.max_uncommitted))
        self._settling.places[place] = None
        return place

    def is_given_away(self, place: Prefix) -> bool:
        """Return True for one of which nothing more is begun."""
        return place.is_revoked or place in self._revoking

    async def revoke(self, places: Collection[Prefix]) -> Fronts:
        """Drain first, fence second; return what may be committed."""
        given = dict.fromkeys(place for place in places if not place.is_revoked)
        self._revoking.update(given)
        self._holding.withdraw_unbegun(given, with_overtaken=not self._begins)
        try:
            await self._holding.until_over(self._holding.of(given), self._settings.revoke_timeout)
            return [(place, front) for place in given if (front := place.to_commit()) is not None]
        finally:  # also when the session waits no longer: nobody would begin what comes of them
            self.lose(given)

    def lose(self, places: Collection[Prefix]) -> None:
        """These belong to somebody else: nothing of them is settled or committed from now on."""
        for place in places:
            place.revoke()
            self._settling.places.pop(place, None)
            self._paused.pop(place, None)
            self._revoking.pop(place, None)
        self._holding.buffer.forget(places)
        self._holding.withdraw(self._holding.of(dict.fromkeys(places)))

    def lose_all(self) -> None:
        """The connection is lost, and all of them with it; what is held of them is withdrawn beside."""
        for place in self._settling.places:
            place.revoke()
        self._holding.buffer.forget(self._settling.places)
        self._settling.places.clear()
        self._paused.clear()

    async def balance(self, session: Session) -> None:
        """Pause those with too much behind their front, and resume them when half of it is done (law R1)."""
        async with self._balancing:
            await self._balance(session)

    async def _balance(self, session: Session) -> None:
        places = self._settling.places
        full = [place for place in places if place.is_full and place not in self._paused]
        if full:
            self._paused.update(dict.fromkeys(full))
            await session.pause(full)
        ready = [place for place in self._paused if place.has_room]
        if ready:
            for place in ready:
                del self._paused[place]
            await session.resume(ready)
