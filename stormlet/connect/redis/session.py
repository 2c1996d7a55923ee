"""A source's session with a stream: entries by a consumer group, each leased to one consumer.

Three places have entries for it, in this order: its own list of what it was given and has not acked, from before it
died or lost its connection; the lists of consumers whose leases have run out; the stream.

A read that waits has a connection of its own. ``CLIENT UNBLOCK`` ends it: to cancel it would lose what was given to it
at that moment, until its lease ran out.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from stormlet.connect.driver.ending import end
from stormlet.connect.redis import scripts
from stormlet.connect.redis.client import BEAT, Client, pairs, text
from stormlet.connect.redis.entries import delivery, entries_of, sorted_out
from stormlet.connect.redis.trimming import EVERY, trim
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Prefix
from stormlet.core.shortened import counted
from stormlet.errors import ConnectorError

logger = logging.getLogger("stormlet.connect")

T = TypeVar("T")

AT_ONCE = 1000
"""Entries that one script is given: it takes some 7 ms, in which the server does nothing else."""
UNBLOCK_EVERY = 0.02


class Group(msgspec.Struct, frozen=True):
    """A consumer of a group, and how it reads."""

    stream: str
    name: str
    consumer: str
    lease: float
    """Seconds."""
    body: str
    """The field that has the body."""
    trims: bool


class StreamSession:
    """See :class:`~stormlet.connect.session.Session`."""

    def __init__(self, group: Group, reader: Client, reader_number: int, control: Client) -> None:
        """``reader`` has one connection, whose number at the server is ``reader_number``."""
        self._group = group
        self._reader = reader
        self._reader_number = reader_number
        self._control = control
        self._own: bytes | None = b"0"
        self._others = b"0-0"
        self._claims_at = self._trims_at = get_running_loop().time()
        self._reading = self._interrupted = False
        self._unblocking: asyncio.Task[None] | None = None

    # Receiving.

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see Session
        """Return entries, by a read that waits if there are none."""
        self._reading = True
        try:
            return await self._receive(most, get_running_loop().time() + timeout)
        finally:
            self._reading = False

    async def _receive(self, most: int, until: float) -> Sequence[Delivery]:
        while True:
            now = get_running_loop().time()
            found = (
                await self._pending(most) or await self._dead(most, now) or await self._new(most, until - now)
            )
            if found or self._interrupted or get_running_loop().time() >= until:
                return found

    async def _pending(self, most: int) -> list[Delivery]:
        """Entries that this consumer has not acked, those that are under way too."""
        found: list[Delivery] = []
        while self._own is not None and not found:
            reply = await self._reader.call(*self._read(most), "STREAMS", self._group.stream, self._own)
            entries = entries_of(reply)
            self._own = entries[-1][0] if entries else None
            found = await self._again(*sorted_out(entries))
        return found

    async def _dead(self, most: int, now: float) -> list[Delivery]:
        """Entries whose lease has run out, whoever had them."""
        found: list[Delivery] = []
        while now >= self._claims_at and not found:
            self._others, entries, gone = await self._reader.call(*self._claim(most))
            if self._others == b"0-0":
                self._claims_at = now + self._group.lease / 2
            found = await self._again(sorted_out(entries)[0], gone)
        return found

    async def _new(self, most: int, seconds: float) -> list[Delivery]:
        group = self._group
        wait = min(seconds, BEAT, self._claims_at - get_running_loop().time())
        block = () if self._interrupted or wait < 0.001 else ("BLOCK", int(wait * 1000))
        reply = await self._reader.call(*self._read(most), *block, "STREAMS", group.stream, ">")
        there, _ = sorted_out(entries_of(reply))
        return [delivery(group.stream, id, fields, group.body) for id, fields in there]

    def _read(self, most: int) -> tuple[str | int, ...]:
        return ("XREADGROUP", "GROUP", self._group.name, self._group.consumer, "COUNT", most)

    def _claim(self, most: int) -> tuple[str | bytes | int, ...]:
        group = self._group
        lease = int(group.lease * 1000)
        return ("XAUTOCLAIM", group.stream, group.name, group.consumer, lease, self._others, "COUNT", most)

    async def _again(
        self, there: Sequence[tuple[bytes, Sequence[bytes]]], gone: Collection[bytes]
    ) -> list[Delivery]:
        """Entries that were delivered before, each with how often; those that were deleted are acked."""
        group = self._group
        if gone:
            words = counted(len(gone), "entry was", "entries were")
            logger.warning("%s deleted from %r without having been done", words, group.stream)
            await self._reader.call("XACK", group.stream, group.name, *gone)
        asked = [("XPENDING", group.stream, group.name, id, id, 1) for id, _ in there]
        counts = await self._reader.calls(asked)
        return [
            delivery(group.stream, id, fields, group.body, _times(count))
            for (id, fields), count in zip(there, counts, strict=True)
        ]

    def interrupt(self) -> None:
        """Have the server end a read that waits."""
        self._interrupted = True
        if self._reading and self._unblocking is None:
            self._unblocking = get_running_loop().create_task(self._unblock())

    async def _unblock(self) -> None:
        # Without the permission it ends by itself, in BEAT seconds. Asked again, as the read may be on its way.
        with suppress(ConnectorError):
            while self._reading:
                await self._control.call("CLIENT", "UNBLOCK", self._reader_number)
                await asyncio.sleep(UNBLOCK_EVERY)

    # Settling.

    async def settle(self, settlement: Settlement) -> int:
        """Ack, and give back; trim now and then."""
        group, refused = self._group, 0
        if ids := [*settlement.done, *(each.receipt for each in settlement.rejected)]:
            refused = len(ids) - await self._control.call("XACK", group.stream, group.name, *ids)
        await self._ours(scripts.GIVE_BACK, settlement.returned)
        if group.trims and get_running_loop().time() >= self._trims_at:
            self._trims_at = get_running_loop().time() + EVERY
            await trim(self._control, group.stream)
        return refused

    async def renew(self, receipts: Sequence[str]) -> Sequence[str]:
        """Begin the leases of entries anew that are still this consumer's."""
        ours = await self._ours(scripts.RENEW, receipts)
        return [each for each in receipts if each not in ours]

    async def _ours(self, script: str, ids: Sequence[str]) -> set[str]:
        group, ours = self._group, set[str]()
        for some in _parts(ids, AT_ONCE):
            kept = await self._control.call(
                "EVAL", script, 1, group.stream, group.name, group.consumer, *some
            )
            ours.update(map(text, kept))
        return ours

    async def pause(self, places: Collection[Prefix]) -> None:
        """Not called: each entry is settled by itself."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """Not called, as :meth:`pause`."""

    async def lag(self) -> Mapping[str, int]:
        """Return the number of entries that the group was not given or has not acked; nothing if entries were deleted
        from the middle of the stream, as the server then does not know."""
        stream, name = self._group.stream, self._group.name
        groups = [pairs(each) for each in await self._control.call("XINFO", "GROUPS", stream)]
        ours = next((each for each in groups if text(each["name"]) == name), {"lag": None})
        return {} if ours["lag"] is None else {stream: ours["lag"] + ours["pending"]}

    async def close(self) -> None:
        """Leave the group if nothing is pending, and disconnect."""
        try:
            await self._leave()
        finally:  # a close that is cut short disconnects, too
            try:
                await self._reader.close()
            finally:
                await self._control.close()

    async def _leave(self) -> None:
        if self._unblocking is not None:
            await end([self._unblocking])
        group = self._group
        if not (self._reader.is_lost or self._control.is_lost):
            with suppress(ConnectorError):
                await self._control.call("EVAL", scripts.LEAVE, 1, group.stream, group.name, group.consumer)


def _times(reply: Any) -> int:
    """Return the number of deliveries of an entry; 1 if it was acked meanwhile."""
    return int(reply[0][3]) if reply and not isinstance(reply, Exception) else 1


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    yield from (items[start : start + size] for start in range(0, len(items), size))
