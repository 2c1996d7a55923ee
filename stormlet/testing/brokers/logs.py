"""Partitioned logs of a twin: the members of a group share the partitions, and commit positions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import ConnectionLost, EndOfStream, NotSettled
from stormlet.testing.brokers.profiles import Profile


class Entry(msgspec.Struct, frozen=True):
    """One message of a log."""

    offset: int
    body: bytes
    key: str | bytes | None = None


class Log:
    """One topic, read by one group."""

    def __init__(self, name: str, profile: Profile) -> None:
        self.name = name
        self.entries: dict[str, list[Entry]] = {
            f"{name}[{number}]": [] for number in range(profile.partitions)
        }
        self.committed: dict[str, int] = {}
        """By partition: the offset up to which all is done."""
        self.commits: list[tuple[str, int]] = []
        """Every commit, in order."""
        self.violations: list[str] = []
        """Acts that no source may do."""
        self.finished = False
        self.deliveries = 0
        self.changed = asyncio.Event()
        self.members: list[LogSession] = []
        self.owners: dict[str, LogSession] = {}
        self.rebalancing = False
        self._next = 0
        self._turns = asyncio.Lock()

    def publish(self, body: bytes, key: str | bytes | None = None, *, gap: int = 0) -> None:
        """Append a message; ``gap`` offsets before it are left out, as by compaction."""
        names = list(self.entries)
        number = self._next if key is None else sum(key.encode() if isinstance(key, str) else key)
        self._next += 1
        entries = self.entries[names[number % len(names)]]
        last = entries[-1].offset if entries else -1
        entries.append(Entry(last + 1 + gap, body, key))
        self.changed.set()

    @property
    def left(self) -> list[bytes]:
        """The bodies of messages that are not committed."""
        return sorted(
            each.body
            for name, entries in self.entries.items()
            for each in entries
            if each.offset > self.committed.get(name, -1)
        )

    @property
    def acked(self) -> list[bytes]:
        """The bodies of messages that are committed."""
        return sorted(
            each.body
            for name, entries in self.entries.items()
            for each in entries
            if each.offset <= self.committed.get(name, -1)
        )

    def commit(self, session: LogSession, name: str, offset: int) -> None:
        """Take a commit, also from one who does not own the partition: no broker fences."""
        if self.owners.get(name) is not session:
            self.violations.append(f"{name} is committed to {offset} by one who does not own it")
        if offset < self.committed.get(name, -1):
            self.violations.append(f"{name} is committed to {offset} after {self.committed[name]}")
        self.committed[name] = offset
        self.commits.append((name, offset))

    # The group.

    async def balance(self, turn: int = 0) -> None:
        """Share the partitions among the members; those who lose some are asked to let go first."""
        async with self._turns:
            self.rebalancing = True
            try:
                wanted = self._shares(turn)
                going = [
                    session.give_away(
                        [
                            name
                            for name, owner in self.owners.items()
                            if owner is session and wanted.get(name) is not session
                        ]
                    )
                    for session in list(self.members)
                ]
                await asyncio.gather(*going)
            finally:
                self.rebalancing = False
            for name, session in self._shares(turn).items():
                if name not in self.owners and session in self.members:
                    self.owners[name] = session
                    session.take(name)
            self.changed.set()

    def _shares(self, turn: int) -> dict[str, LogSession]:
        members = self.members
        names = list(self.entries)
        return (
            {name: members[(number + turn) % len(members)] for number, name in enumerate(names)}
            if members
            else {}
        )

    def leave(self, session: LogSession) -> None:
        """A member is gone."""
        if session in self.members:
            self.members.remove(session)
        for name in [each for each, owner in self.owners.items() if owner is session]:
            del self.owners[name]


class LogSession:
    """A connection of a source to a log."""

    def __init__(
        self,
        log: Log,
        profile: Profile,
        context: SourceContext,
        latency: Callable[[], float],
        *,
        finite: bool,
    ) -> None:
        self._log = log
        self._context = context
        self._latency = latency
        self._heartbeat = profile.heartbeat
        self._finite = finite
        self._interrupted = False
        self._lost = False
        self._places: dict[str, Prefix] = {}
        self._positions: dict[str, int] = {}
        self._paused: dict[str, None] = {}

    # As the group has it.

    def take(self, name: str) -> None:
        """Own a partition from here on, and read it from what is committed."""
        self._places[name] = self._context.assigned(name)
        self._positions[name] = self._log.committed.get(name, -1)
        self._paused.pop(name, None)

    async def give_away(self, names: Sequence[str]) -> None:
        """Let the driver finish with these partitions, commit, and let go."""
        places = [self._places[name] for name in names if name in self._places]
        if places:
            for place, front in await self._context.revoking(places):
                if not self._lost:
                    self._log.commit(self, place.name, front.position)
        self._drop(names)

    def taken_away(self, names: Sequence[str]) -> None:
        """These partitions belong to somebody else, without a word before."""
        places = [self._places[name] for name in names if name in self._places]
        self._drop(names)
        self._context.lost(places)

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._places.pop(name, None)
            if self._log.owners.get(name) is self:
                del self._log.owners[name]

    def lose(self) -> None:
        """The connection is lost."""
        if not self._lost:
            self._lost = True
            self._log.leave(self)
            self._log.changed.set()

    # As the driver has it.

    def _check(self) -> None:
        if self._lost:
            raise ConnectionLost("the connection was reset")

    async def _answer(self) -> None:
        self._check()
        await asyncio.sleep(self._latency())
        self._check()

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - the face has it
        """Deliver what there is."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while True:
            self._check()
            deliveries = self._fetch(most)
            if deliveries:
                took = self._latency()
                await asyncio.sleep(took)
                if took >= self._heartbeat:
                    self._check()
                return deliveries
            if self._finite and self._log.finished and not self._log.left:
                raise EndOfStream
            left = until - loop.time()
            if left <= 0 or self._interrupted:
                return []
            self._log.changed.clear()
            try:
                async with asyncio.timeout(min(left, 1.0)):
                    await self._log.changed.wait()
            except TimeoutError:
                continue

    def _fetch(self, most: int) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for name, place in self._places.items():
            if name in self._paused or place.is_revoked:
                continue
            for entry in self._log.entries[name]:
                if entry.offset > self._positions[name] and len(deliveries) < most:
                    self._positions[name] = entry.offset
                    deliveries.append(
                        Delivery(
                            body=entry.body,
                            name=f"{name}@{entry.offset}",
                            key=entry.key,
                            place=place,
                            position=entry.offset,
                        )
                    )
        self._log.deliveries += len(deliveries)
        return deliveries

    def interrupt(self) -> None:
        """Wait no more."""
        self._interrupted = True
        self._log.changed.set()

    async def settle(self, settlement: Settlement) -> int:
        """Commit."""
        self._check()
        await asyncio.sleep(self._latency() / 2)
        self._check()
        if self._log.rebalancing:
            raise NotSettled("ILLEGAL_GENERATION")
        for place, front in settlement.fronts:
            if not place.is_revoked:
                self._log.commit(self, place.name, front.position)
        await self._answer()
        return 0

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """A log has no leases."""
        return []

    async def pause(self, places: Collection[Prefix]) -> None:
        """Fetch nothing of these."""
        self._paused.update(dict.fromkeys(place.name for place in places))

    async def resume(self, places: Collection[Prefix]) -> None:
        """Fetch them again."""
        for place in places:
            self._paused.pop(place.name, None)
        self._log.changed.set()

    async def lag(self) -> Mapping[str, int]:
        """Messages behind what is committed, of the partitions that it owns."""
        await self._answer()
        log = self._log
        return {
            name: sum(each.offset > log.committed.get(name, -1) for each in log.entries[name])
            for name in self._places
        }

    async def close(self) -> None:
        """Leave the group."""
        self.lose()
