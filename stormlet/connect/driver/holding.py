"""The messages that a source task holds: it has them from its broker, and they are not settled (law R3 to R6, S9).

A message is held from its delivery on, first in the buffer, then as a tree. It ends in one of three ways. It is
*settled*: its tree is done, or was given up. It is *given back*: nobody has begun it, and the broker may deliver it
again. Or it is *withdrawn*: it belongs to somebody else, and its tree goes on without replays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from stormlet.connect.driver.buffer import Buffer
from stormlet.connect.driver.held import Held, is_unreadable
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.settling import Settling
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Capabilities
from stormlet.core.settlement.leases import Leases
from stormlet.core.settlement.prefix import Prefix
from stormlet.core.settlement.receipts import Receipts
from stormlet.model.components import SpoutCollector


class Holding:
    """The messages of one source task."""

    def __init__(
        self,
        rules: Capabilities,
        settings: SourceSettings,
        settling: Settling,
        status: Status,
        out: SpoutCollector[Any],
        suffixes: Iterator[int],
    ) -> None:
        """``settling`` tells the broker; ``out`` is the collector of the spout, and ``suffixes`` are those of ids."""
        self.receipts = Receipts(survive=settling.survive, suffixes=suffixes)
        self.leases = None if rules.lease is None else Leases(rules.lease, settings.max_hold)
        self.buffer = Buffer(settings.ordered_by is not None)
        self.all_are_read = False
        """True once the source has come to its end."""
        self._rules = rules
        self._settling = settling
        self._status = status
        self._out = out
        self._room: asyncio.Event | None = None
        """Set when there may be room, for the one who waits for it."""
        self._awaited: list[tuple[dict[str, None], asyncio.Event]] = []

    @property
    def is_over(self) -> bool:
        """True if nothing is held, and nothing will come."""
        return self.all_are_read and not len(self.receipts)

    @property
    def oldest(self) -> float | None:
        """The time at which the oldest of them has come; None if there are none."""
        first = next(iter(self.receipts), None)
        held = None if first is None else self.receipts.get(first)
        return None if held is None else held.since

    def add(self, held: Held) -> bool:
        """Buffer a delivery. Returns False if its message is held already, or was settled meanwhile."""
        id, leases = held.id, self.leases
        before = self.receipts.get(id) if self.buffer.is_ordered else None
        is_new = self.receipts.add(id, held)
        if before is not None and not is_new:
            held.key = before.key  # under which it is under way, whatever the broker has made of it
        if leases is not None and (is_new or id in self.receipts):
            leases.hold(id, held.since)
        if is_new:
            self.buffer.add(held)
        return is_new

    def emit(self, messages: Sequence[Held]) -> None:
        """Emit messages out of the buffer."""
        values, ids, names, attempts = list[Any](), list[str](), list[str | None](), list[int]()
        for message in messages:
            values.append(message.value)
            ids.append(message.id)
            names.append(message.name)
            attempts.append(message.attempt)
        # Without origins all messages have one lineage, which is quicker.
        self._out.emit_many(
            values,
            message_ids=ids,
            origins=names if any(names) else None,
            attempt=1 if attempts.count(1) == len(attempts) else attempts,
        )

    # Settled.

    def done(self, message_id: object) -> None:
        """A tree is done: the ``ack`` of the spout."""
        held = self.settle(str(message_id))
        if held is not None and held.place is None:
            self._settling.done(held.receipt)

    def give_up(self, id: str, reason: str) -> None:
        """A message has failed for good: it is for the broker's own dead letters, if it has some."""
        held = self.settle(id)
        if held is not None and held.place is None:
            if self._rules.has_dead_letters:
                self._settling.reject(held.receipt, reason)
            else:
                self._settling.done(held.receipt)
        if not self._rules.has_dead_letters:
            self._status.rejected += 1

    def settle(self, id: str) -> Held | None:
        """Settle a message for this task, once; where positions are committed, its partition knows that it is done."""
        self._release(id)
        held: Held | None = self.receipts.take(id)
        if held is not None:
            place = held.place
            if place is not None and place.settle(held.number):
                self._settling.note()
            self._over(id, held)
        return held

    # Given back.

    def give_back(self, id: str) -> None:
        """Nobody has begun a message, or the end has come first: the broker may deliver it again (law R6)."""
        self._release(id)
        held = self.receipts.give_back(id)
        if held is not None:
            self._tell_those_who_wait(id)
            if held.place is None and self._rules.can_return:
                self._settling.give_back(held.receipt)

    def hand_back(self, until: float) -> int:
        """Give back what has come until then, begun or not: it comes again, and its trees go on (law R4). Returns how
        many they are."""
        held = ((id, self.receipts.get(id)) for id in self.receipts)
        old = {id: each for id, each in held if each is not None and each.since <= until}
        for each in old.values():
            self._settling.give_back(each.receipt)
        self.withdraw(old)
        return len(old)

    def give_back_unbegun(self) -> None:
        """The end has come for all that is in the buffer."""
        for message in self.buffer.drop(lambda _: True):
            self.give_back(message.id)

    # Withdrawn.

    def withdraw(self, ids: Iterable[str]) -> None:
        """These messages come to somebody else, or again: no replays, no dead letters (law S9)."""
        gone = self.receipts.withdraw(ids)
        if not gone:
            return
        for id in gone:
            self._release(id)
        for message in self.buffer.drop(lambda message: message.id in gone):
            del gone[message.id]
            self._tell_those_who_wait(message.id)
        # The others were emitted, but for those that are being buried.
        self._out.withdraw([id for id, held in gone.items() if not is_unreadable(held)])
        for id, held in gone.items():
            self._over(id, held)
        self._status.withdrawn += len(gone)
        self.may_have_room()

    def withdraw_unbegun(self, places: Collection[Prefix], *, with_overtaken: bool) -> None:
        """Leave to their next owner what nobody has begun of these partitions. What others have overtaken is done here,
        or these would be done twice; it is left, too, where nothing is begun any more."""
        buffer = self.buffer
        unbegun = buffer.drop(
            lambda message: message.place in places and (with_overtaken or not buffer.is_overtaken(message))
        )
        for id in self.receipts.withdraw([message.id for message in unbegun]):
            self._tell_those_who_wait(id)

    def let_go(self) -> None:
        """The task has ended: nothing of what is left is known here any more."""
        self.buffer.drop(lambda _: True)
        self.receipts.withdraw(list(self.receipts))

    # Room for more.

    def may_have_room(self) -> None:
        """There may be room for another message."""
        if self._room is not None:
            self._room.set()

    async def wait_for_room(self, seconds: float) -> None:
        """Wait until there may be room, for so many seconds at most."""
        self._room = room = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await room.wait()
        except TimeoutError:
            return
        finally:
            self._room = None

    # All that are held.

    def of(self, places: Collection[Prefix]) -> list[str]:
        """Return the ids of the messages of these partitions."""
        held = ((id, self.receipts.get(id)) for id in self.receipts)
        return [id for id, each in held if each is not None and each.place in places]

    async def until_over(self, ids: Iterable[str], seconds: float) -> None:
        """Wait until these messages are no longer held, for so many seconds at most."""
        waiting = (dict.fromkeys(ids), asyncio.Event())
        if not waiting[0]:
            return
        self._awaited.append(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting[1].wait()
        except TimeoutError:
            return
        finally:
            self._awaited.remove(waiting)

    def _release(self, id: str) -> None:
        if self.leases is not None:
            self.leases.release(id)

    def _over(self, id: str, held: Held) -> None:
        if self.buffer.is_ordered and self.buffer.over(held):
            self._out.wake()
        if self._awaited:
            self._tell_those_who_wait(id)
        if self._room is not None:
            self._room.set()
        if self.all_are_read and self.is_over:
            self._out.wake()

    def _tell_those_who_wait(self, id: str) -> None:
        for ids, empty in self._awaited:
            ids.pop(id, None)
            if not ids:
                empty.set()
