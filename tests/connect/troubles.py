"""One queue at a twin, its consumers one after another, and faults of the broker, all by one seed.

Some consumers are stopped in the middle, some are killed; the last one goes on until nothing is left. Of the messages
some fail always, some have too large a body, and at brokers with leases some take longer than two of these. A third of
the seeds orders messages by key. Whatever happens, the account of every message adds up; and where nothing happens that
may double a message, none is done or buried twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any, Final

from stormlet import DeadLetter, FailureKind, Running, StartFailed
from stormlet.connect.session import Capabilities, Settles
from stormlet.testing.brokers import Trouble, Troubles
from tests.connect.conformance import Consumed, Killed, TwinBench, by_eight

MESSAGES: Final = 120
ALL_ATTEMPTS: Final = 20.0
"""Seconds in which a message that fails always has had all of its attempts."""
LOSSES: Final = (Trouble.CUT, Trouble.RESTART, Trouble.SILENT)


def kinds_of(rules: Capabilities) -> list[Trouble]:
    """Return the faults that a broker with these rules can have."""
    if rules.settles is Settles.PREFIX:
        return [*LOSSES, Trouble.SLOW, Trouble.REBALANCE, Trouble.TAKEN]
    if rules.lease is None:
        return [*LOSSES, Trouble.SLOW]
    return [*LOSSES, Trouble.SLOW, Trouble.LEASE_LOST, Trouble.DUPLICATE]


class Consumer(Consumed):
    """A run whose dead letters take a moment to be written, and are kept for those that come after it."""

    def __init__(self, account: Account, closing: float | None) -> None:
        source = {"max_message_bytes": 100, "closing_timeout": closing}
        source["revoke_timeout"] = account.revoke_timeout
        if account.is_ordered:
            source["ordered_by"] = by_eight
        options: dict[str, Any] = {"max_spout_pending": 15, "message_timeout": None}
        super().__init__(
            account.bench, account.work, parallelism=account.parallelism, source=source, **options
        )
        self._account = account

    def run(self) -> Any:
        return self.topology.run(dead_letters=self._write)

    async def _write(self, letter: DeadLetter) -> None:
        if letter.failure.kind is not FailureKind.SHUTDOWN:
            await asyncio.sleep(1.0)
            self._account.letters.append(letter.value)


class Account:
    """All messages of one seed, and what has become of them."""

    def __init__(self, bench: TwinBench, seed: int) -> None:
        self.bench = bench
        random = self._random = Random(f"{seed}/lives")
        self.parallelism = random.randint(1, 3)
        self.is_ordered = random.random() < 1 / 3
        if self.is_ordered and bench.rules.settles is Settles.EACH:  # as several are refused
            self.parallelism = 1
        self.revoke_timeout = random.choice([2.0, ALL_ATTEMPTS])
        self.ends = [random.choice(["kill", "stop"]) for _ in range(random.choice([0, 0, 1, 3]))]
        """What becomes of the consumers before the last one."""
        kinds = kinds_of(bench.rules)
        self.kinds = tuple(random.sample(kinds, random.choice([1, 2, len(kinds)])))
        self.done = Counter[bytes]()
        self.letters: list[bytes] = []
        self.good, self.poison, self.large = list[bytes](), list[bytes](), list[bytes]()
        for number in range(MESSAGES):
            is_large, fails = (number + seed) % 23 == 0, (number + seed) % 17 == 0
            body = b"%04d" % number + b"x" * (200 * is_large)
            (self.large if is_large else self.poison if fails else self.good).append(body)
        self._seed = seed

    @property
    def bodies(self) -> list[bytes]:
        """All of them."""
        return [*self.good, *self.poison, *self.large]

    async def work(self, body: bytes) -> None:
        """Take a while, and fail where that is the message's lot."""
        number, lease = int(body), self.bench.rules.lease
        is_long = lease is not None and (number + self._seed) % 37 == 1
        await asyncio.sleep(2.2 * (lease or 0.0) if is_long else (number * 7919 + self._seed) % 30 / 10)
        if body in self.poison:
            raise ValueError(body)

    async def live(self, patience: float) -> None:
        """Have one consumer after another, until nothing is left."""
        for body in sorted(self.bodies):
            await self.bench.publish(body)
        self.bench.broker.trouble(Troubles(self._seed, kinds=self.kinds, every=4.0))
        for end in self.ends:
            await self._live(end, patience)
        await self._live("", patience)

    async def _live(self, end: str, patience: float) -> None:
        async with asyncio.timeout(patience):
            consumer = await self._started(end, patience)
        self.done += consumer.counts

    async def _started(self, end: str, patience: float) -> Consumer:
        """Run one, which may find its broker away: then another one."""
        while True:
            consumer = Consumer(self, 0.01 if end == "kill" else None)
            try:
                with suppress(Killed):
                    async with consumer.run() as running:
                        await self._go_on(end, consumer, running, patience)
            except StartFailed:
                await asyncio.sleep(1.0)
                continue
            if end == "kill":
                self.bench.broker.come_back()
            return consumer

    async def _go_on(self, end: str, consumer: Consumer, running: Running, patience: float) -> None:
        if end:
            await asyncio.sleep(self._random.uniform(0.0, 12.0))
        if end == "kill":
            self.bench.broker.go_away()
            raise Killed
        if not end:
            await consumer.until_empty(patience)
            counts = running.statistics().components["orders"]
            ended = counts.acked + counts.given_back + counts.dead_letters + counts.withdrawn
            assert counts.messages == ended + counts.left_over + counts.pending, "the law of conservation"

    async def check(self) -> None:
        """Nothing is lost, no rule of the broker broken, and nothing doubled without a cause."""
        buried = Counter([*self.letters, *await self.bench.dead()])
        left = await self.bench.left()
        lost = set(self.bodies) - {*self.done, *buried, *left}
        assert not lost, f"{len(lost)} messages are lost"
        assert await self.bench.violations() == []
        assert not set(self.letters) & set(await self.bench.dead()), (
            "buried twice: by the run, and by the broker"
        )
        assert not {*self.poison, *self.large} & set(self.done), "what fails always is done"
        if not self.may_double:
            doubled = (self.done + buried) - Counter(self.bodies)
            assert not doubled, f"{doubled.total()} messages are doubled"

    @property
    def may_double(self) -> bool:
        """True if something has happened after which a message may come again that was done."""
        seen = set(self.bench.broker.seen)
        if self.bench.rules.settles is Settles.PREFIX and self.is_ordered and "stop" in self.ends:
            return True  # what is done behind messages that wait for their key comes again
        return "kill" in self.ends or bool(seen & self._doubling)

    @property
    def _doubling(self) -> set[Trouble]:
        # At the end of a consumer that is stopped, a slow broker may learn too late what is done.
        slow = {Trouble.SLOW} if self.ends else set[Trouble]()
        rules = self.bench.rules
        if rules.settles is Settles.PREFIX:
            cut_short = {Trouble.REBALANCE} if self.revoke_timeout < ALL_ATTEMPTS else set[Trouble]()
            return {*LOSSES, Trouble.TAKEN, *cut_short, *slow}
        if rules.lease is None:
            return {*LOSSES, *slow}
        # A receipt survives a connection, but may run out while there is none, or while each renewal is cut short.
        if Trouble.CUT in self.kinds:
            slow = {Trouble.SLOW}
        return {Trouble.RESTART, Trouble.SILENT, Trouble.LEASE_LOST, Trouble.DUPLICATE, *slow}


async def trouble(bench: TwinBench, seed: int, patience: float = 6000.0) -> None:
    """Run one seed on a fresh twin; ``patience`` is the seconds of simulated time that a consumer may take."""
    account = Account(bench, seed)
    await account.live(patience)
    await account.check()
