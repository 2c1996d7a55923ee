"""The cases that every connector must pass, on a twin as on the real broker.

A *bench* is one connector with one broker: it makes sources and sinks, publishes, looks into the broker, and brings
faults. ``TwinBench`` is one for a profile of ``stormlet.testing.brokers``, on simulated time. The tests of a connector
derive one from :class:`Bench` for its real broker and run ``CASES`` on both::

    @pytest.mark.parametrize("case", CASES, ids=name_of)
    @pytest.mark.parametrize("bench", [TwinBench("redis-7"), RealRedis()], ids=str)
    def test_conformance(bench: Bench, case: Case) -> None:
        bench.hold(case)

Nothing but a fault that a bench cannot bring, or a rule of its broker, skips a case. In case 2 the run is cancelled
while its broker is away for it, so that it cannot say a last word; processes that are really killed are left to the
tests of the connectors (``test_kills``). 28 (a batch that fails in part) is law R10. ``TESTS_SOAK=3600`` has case 31
go on for an hour at a real broker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

import msgspec
import pytest

from stormlet import (
    DeadLetter,
    FailureKind,
    Reject,
    Running,
    StartFailed,
    Stream,
    Topology,
    TopologyCrashed,
    TupleFailed,
)
from stormlet.connect.kafka import Commit
from stormlet.connect.secrets import Secret
from stormlet.connect.session import Capabilities, Settles
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.connect.twins import TWINS
from stormlet.model.state.committers import CommitterFactory
from stormlet.testing import run_simulated
from stormlet.testing.brokers import PROFILES, Broker, TwinSink, TwinSource
from stormlet.testing.brokers.logs import Log
from tests.connect.sessions import until

QUEUE: Final = "orders"
WRITERS: Final = "writers of orders"
SOAK: Final = float(os.environ.get("TESTS_SOAK", "0"))
"""Seconds that case 31 takes at a real broker."""


class Bench(ABC):
    """One connector with one broker."""

    name: str
    rules: Capabilities
    faults: frozenset[str] = frozenset()
    """Of ``cut``, ``gone`` with ``back``, ``silent``, ``restart``, ``rebalance``, ``taken``, ``leases``, ``duplicate``,
    ``commits``, ``gaps``, ``finish``, ``unroutable``, ``missing``, ``password``, ``certificate``, ``secret``: it takes
    any password, and ``fence``: it has transactions, and a writer takes the place of an earlier one."""
    notices: float = 0.0
    """Seconds for which the connector may go on with what it has, as it has not noticed that its broker is gone."""
    heals: bool = False
    """True if the client connects again by itself, so that the connector does not."""
    again: int = 40
    """Messages that may come again when a connection is lost: those pending, and those done in one settlement."""
    forgets: int = 0
    """Acks that a broker may have taken, and does not know of when it was killed: it had not written them yet."""
    calls: int = 1500
    """Calls of functions that a message may cost: 220 to 720 were counted at real brokers."""

    def __str__(self) -> str:
        return self.name

    def hold(self, case: Case) -> None:
        """Run a case on a fresh broker."""
        self.begin()
        try:
            self.run(lambda: case(self))
        finally:
            self.end()

    @abstractmethod
    def begin(self) -> None:
        """Have a broker with empty queues and topics."""

    def end(self) -> None:
        """It is needed no more."""

    @abstractmethod
    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run on a loop of its own."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let so much time pass; a real broker may make it shorter."""

    @abstractmethod
    def source(self, **options: Any) -> Source[Any]:
        """A source of the queue or topic."""

    @abstractmethod
    def sink(self) -> Sink[bytes]:
        """A sink to that queue or topic."""

    def committer(self) -> CommitterFactory:
        """A committer at that topic, where there are transactions; all of them have one name."""
        raise NotImplementedError(self.name)

    @abstractmethod
    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        """Put a message there, all in one partition or queue where ``ordered`` matters."""

    async def publish_all(self, bodies: Sequence[bytes], *, gap: int = 0) -> None:
        """Put messages there, in this order; where each of them takes long, faster than one by one."""
        for body in bodies:
            await self.publish(body, gap=gap)

    @abstractmethod
    async def left(self) -> list[bytes]:
        """The bodies that the broker does not know to be done, sorted."""

    @abstractmethod
    async def dead(self) -> list[bytes]:
        """The bodies among the broker's own dead letters."""

    async def violations(self) -> list[str]:
        """What the connector has done that none may do, as far as the broker can tell."""
        return []

    async def bring(self, fault: str) -> None:
        """Bring a fault."""
        raise NotImplementedError(fault)

    def needs(self, *faults: str) -> None:
        """Skip the case where one of them cannot be brought."""
        missing = [each for each in faults if each not in self.faults]
        if missing:
            pytest.skip(f"{self.name} cannot have {', '.join(missing)}")

    def needs_rule(self, holds: object, rule: str) -> None:
        """Skip the case where the broker has not this rule."""
        if not holds:
            pytest.skip(f"{self.name} has no {rule}")


Case = Callable[[Bench], Awaitable[None]]


class TwinBench(Bench):
    """A twin, on simulated time."""

    calls = 700

    def __init__(self, profile: str) -> None:
        self.name = f"{profile} (twin)"
        self.profile = PROFILES[profile]
        self.rules = self.profile.capabilities
        faults = ["cut", "restart", "gone", "silent", "finish", "unroutable"]
        faults += ["missing", "password", "certificate", "secret"]
        if self.rules.settles is Settles.PREFIX:
            faults += ["rebalance", "taken", "commits", "gaps", "fence"]
        if self.rules.lease is not None:
            faults += ["leases", "duplicate"]
        self.faults = frozenset(faults)

    def begin(self) -> None:
        self.broker = TWINS["kafka://twin"] = Broker(self.profile)

    def end(self) -> None:
        del TWINS["kafka://twin"]

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            await work()

        run_simulated(running())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def source(self, **options: Any) -> Source[Any]:
        return TwinSource[Any](self.broker, QUEUE, **options)

    def sink(self) -> Sink[bytes]:
        return TwinSink[bytes](self.broker, QUEUE)

    def committer(self) -> CommitterFactory:
        return Commit("kafka://twin", QUEUE, bytes, transactional_id=WRITERS)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        place = self.broker.place(QUEUE)
        if isinstance(place, Log):
            place.publish(body, gap=gap)
        else:
            place.publish(body)

    async def left(self) -> list[bytes]:
        return self.broker.place(QUEUE).left

    async def dead(self) -> list[bytes]:
        place = self.broker.place(QUEUE)
        return [] if isinstance(place, Log) else [body for body, _ in place.dead]

    async def violations(self) -> list[str]:
        return self.broker.violations

    async def bring(self, fault: str) -> None:
        if fault == "rebalance":
            await self.broker.rebalance()
        else:
            self._ways[fault]()

    @property
    def _ways(self) -> dict[str, Callable[[], object]]:
        broker, place = self.broker, self.broker.place(QUEUE)
        return {
            "cut": broker.cut,
            "gone": broker.go_away,
            "back": broker.come_back,
            "silent": lambda: broker.fall_silent(25),
            "unroutable": lambda: broker.unroutable.append(QUEUE),
            "restart": lambda: broker.restart(15),
            "taken": broker.take_away,
            "leases": broker.end_leases,
            "duplicate": broker.deliver_twice,
            "missing": lambda: broker.missing.append(QUEUE),
            "finish": lambda: setattr(place, "finished", True),
            "commits": lambda: setattr(place, "rebalancing", not getattr(place, "rebalancing", False)),
            "password": lambda: setattr(broker, "password", "another"),
            "certificate": lambda: setattr(broker, "is_trusted", False),
        }


class Consumed:
    """A run that consumes the queue of a bench, and its account."""

    def __init__(
        self,
        bench: Bench,
        work: Callable[[bytes], Awaitable[None]],
        *,
        parallelism: int = 1,
        source: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.bench = bench
        self.done: list[bytes] = []
        """What was processed to the end, in this order."""
        self.letters: list[DeadLetter] = []
        self._work = work
        configuration: dict[str, Any] = {"max_spout_pending": 20, "replay_delay": 0.05, **options}
        self.topology = Topology("consumed", **configuration)
        made = bench.source(**{"as_": bytes, **(source or {})})
        stream = self.topology.spout("orders", made, parallelism=parallelism)
        self.topology.bolt("work", self._process, stream.shuffle(), concurrency=50)

    async def _process(self, body: Any) -> None:
        await self._work(body)
        self.done.append(body)

    def run(self) -> Any:
        """``async with consumed.run() as running``."""
        return self.topology.run(dead_letters=self.letters.append)

    @property
    def counts(self) -> Counter[bytes]:
        """How often each was processed."""
        return Counter(self.done)

    async def until_empty(self, seconds: float = 900.0) -> None:
        """Wait until the broker knows everything to be done."""
        async with asyncio.timeout(seconds):
            while await self.bench.left():  # noqa: ASYNC110 - it is the broker that is watched
                await asyncio.sleep(0.1)

    async def check(self, bodies: Sequence[bytes]) -> None:
        """Nothing is lost, and the connector has kept the rules of the broker."""
        own = [each.value for each in self.letters if each.failure.kind is not FailureKind.SHUTDOWN]
        there = [*self.done, *own, *await self.bench.dead(), *await self.bench.left()]
        assert [body for body in bodies if body not in there] == []
        assert await self.bench.violations() == []
        both = set(own) & set(await self.bench.dead())
        assert both == set()


async def published(bench: Bench, count: int, *, gap: int = 0) -> list[bytes]:
    """So many messages in the queue."""
    bodies = [b"%04d" % number for number in range(count)]
    await bench.publish_all(bodies, gap=gap)
    return bodies


async def at_once(body: bytes) -> None:
    """Take no time."""


async def briefly(body: bytes) -> None:
    """Take a moment."""
    await asyncio.sleep(0.02)


async def longer(body: bytes) -> None:
    """Take several intervals of settling."""
    await asyncio.sleep(0.1)


def waiting_for(gate: asyncio.Event, *bodies: bytes) -> Callable[[bytes], Awaitable[None]]:
    """Work that waits at some messages."""

    async def work(body: bytes) -> None:
        if body in bodies:
            await gate.wait()

    return work


def by_eight(body: bytes) -> int:
    """One of eight keys, of which a twin's partition has two."""
    return int(body) % 8


def connection_of(running: Running) -> Any:
    """The connection of the first task."""
    return running.health().connections["orders[0]"]


# The cases.


async def case_01_everything_arrives_and_is_acked_once(bench: Bench) -> None:
    """And the broker is empty."""
    bodies = await published(bench, 200)
    run = Consumed(bench, at_once)
    async with run.run():
        await run.until_empty()
    assert run.counts == dict.fromkeys(bodies, 1)
    await run.check(bodies)


class Killed(Exception):
    """The process is no more."""


async def case_02_a_process_is_killed_at_random_moments(bench: Bench) -> None:
    """Twenty times: nothing is lost, and doubled is what was pending, and what one settlement had."""
    bench.needs("gone")
    bodies, done, random = await published(bench, 300), Counter[bytes](), Random(2)
    for _ in range(20):
        run = Consumed(bench, longer, source={"settle_every": 0.02, "closing_timeout": 0.01})
        with suppress(Killed):
            async with run.run():
                await bench.sleep(random.uniform(0.0, 0.3))
                await bench.bring("gone")
                raise Killed
        await bench.bring("back")
        done += run.counts
    last = Consumed(bench, briefly)
    async with last.run():
        await last.until_empty()
    done += last.counts
    assert done.total() - len(bodies) <= 20 * 40
    await last.check([body for body in bodies if body not in done])


async def case_03_a_stop_doubles_nothing(bench: Bench) -> None:
    """Stopped in the middle, and begun again, ten times."""
    bodies, done = await published(bench, 200), Counter[bytes]()
    for _ in range(10):
        run = Consumed(bench, briefly)
        async with run.run():
            await bench.sleep(0.05)
        done += run.counts
    last = Consumed(bench, briefly)
    async with last.run():
        await last.until_empty()
    assert done + last.counts == dict.fromkeys(bodies, 1)
    await last.check([body for body in bodies if body not in done])


async def case_03b_a_stop_gives_back_what_nobody_has_begun(bench: Bench) -> None:
    """Messages that wait for others of their key are the broker's again."""
    bodies = await published(bench, 20)
    run = Consumed(bench, briefly, source={"ordered_by": len})
    async with run.run():
        await until(lambda: len(run.done) >= 3)  # to join a group may take seconds
    assert len(run.done) < 20
    await run.check(bodies)
    rest = Consumed(bench, briefly)
    async with rest.run():
        await rest.until_empty()
    assert run.counts + rest.counts == dict.fromkeys(bodies, 1)


async def case_04_the_broker_restarts(bench: Bench) -> None:
    """Everything is done; doubled is at most what was pending, what one settlement had, and what was done unnoticed."""
    bench.needs("restart")
    unnoticed = int(1000 * bench.notices)  # of 20 at a time, each of 0.02 s
    bodies = await published(bench, 300 + 2 * unnoticed)
    run = Consumed(bench, briefly, source={"settle_every": 0.02})
    async with run.run() as running:
        await bench.sleep(0.05)
        await bench.bring("restart")
        await run.until_empty()
        assert connection_of(running).reconnects >= 1
        assert running.statistics().components["orders"].restarts == 0
    assert (again := len(run.done) - len(bodies)) <= 40 + unnoticed + bench.forgets, (
        f"{again:,} of {len(bodies):,} came twice"
    )
    await run.check(bodies)


async def case_05_connections_are_reset(bench: Bench) -> None:
    """Five times, with trees open."""
    bench.needs("cut")
    bodies = await published(bench, 600)
    run = Consumed(bench, briefly, source={"settle_every": 0.02})
    async with run.run():
        for _ in range(5):
            await bench.sleep(0.15)
            await bench.bring("cut")
        await run.until_empty()
    assert (again := len(run.done) - len(bodies)) <= 5 * bench.again, (
        f"{again:,} of {len(bodies):,} came twice"
    )
    await run.check(bodies)


async def case_06_nothing_comes_through(bench: Bench) -> None:
    """For longer than a heartbeat, as in a black hole: the connection counts as lost, and everything is done."""
    bench.needs("silent")
    bodies = await published(bench, 300)
    run = Consumed(bench, briefly, source={"settle_every": 0.02})
    async with run.run() as running:
        await bench.sleep(0.05)
        await bench.bring("silent")
        await run.until_empty()
        assert connection_of(running).reconnects >= (not bench.heals)
        assert running.statistics().components["orders"].restarts == 0
    assert (again := len(run.done) - len(bodies)) <= 40, f"{again:,} of {len(bodies):,} came twice"
    await run.check(bodies)


async def case_07_a_broker_that_is_away_is_no_crash(bench: Bench) -> None:
    """Health says so, and is ready again afterwards."""
    bench.needs("restart")
    bodies = await published(bench, 50)
    run = Consumed(bench, briefly)
    async with run.run() as running:
        await bench.sleep(0.01)
        await bench.bring("restart")
        await until(lambda: connection_of(running).state.value == "reconnecting")
        assert not running.health().ready
        await run.until_empty()
        await until(lambda: running.health().ready)
    await run.check(bodies)


async def case_08_a_start_that_cannot_be_fails(bench: Bench) -> None:
    """The error names the component and what is missing, and shows no secret."""
    await a_start_fails(bench, "missing", QUEUE)


async def case_08b_a_wrong_password_fails_the_start(bench: Bench) -> None:
    """And is not said."""
    await a_start_fails(bench, "password", "password")


async def case_08c_a_bad_certificate_fails_the_start(bench: Bench) -> None:
    """Whatever the password is."""
    await a_start_fails(bench, "certificate", "certificate")


async def a_start_fails(bench: Bench, fault: str, named: str) -> None:
    """With this fault, which the error names, as it does the component."""
    bench.needs(fault)
    await bench.bring(fault)
    secret = {} if fault == "missing" else {"password": Secret("hunter2")}
    run = Consumed(bench, at_once, source=secret)
    with pytest.raises(StartFailed) as failed:
        async with run.run():
            pass
    _, _, why = str(failed.value).partition("did not start: orders[0]: ")
    assert named in why, str(failed.value)
    assert "hunter2" not in "".join(traceback.format_exception(failed.value))


async def case_09_an_ack_of_an_old_connection_changes_nothing(bench: Bench) -> None:
    """The message comes again, and no other is acked in its stead."""
    bench.needs("cut")
    gate = asyncio.Event()
    bodies = await published(bench, 10)
    run = Consumed(bench, waiting_for(gate, b"0000", b"0003"), message_timeout=None)
    async with run.run():
        await bench.sleep(1)
        await bench.bring("cut")
        await bench.sleep(3)
        gate.set()
        await run.until_empty()
    await run.check(bodies)


async def case_10_outcomes_cost_no_message_on_its_way(bench: Bench) -> None:
    """They come while a read waits; each message is delivered to somebody."""
    run = Consumed(bench, at_once)
    bodies = [b"%04d" % number for number in range(100)]
    async with run.run():
        for body in bodies:
            await bench.publish(body)
            await bench.sleep(0.003)
        await run.until_empty(60)
    assert run.counts == dict.fromkeys(bodies, 1)


async def case_11_a_poison_message_is_a_dead_letter_once(bench: Bench) -> None:
    """After all attempts, with its reason; others go on."""
    bodies = await published(bench, 10)

    async def work(body: bytes) -> None:
        if body == b"0003":
            raise ValueError("poison")

    run = Consumed(bench, work)
    async with run.run() as running:
        await run.until_empty()
        assert running.statistics().components["orders"].replayed == 4
    buried = [*await bench.dead(), *(each.value for each in run.letters)]
    assert buried == [b"0003"]
    await run.check(bodies)


class Order(msgspec.Struct):
    """A record that not every body is."""

    shop: str


async def case_12_what_cannot_be_decoded_is_a_dead_letter(bench: Bench) -> None:
    """With its bytes."""
    await bench.publish(b"{no json")
    await bench.publish(b'{"shop": "a"}')
    run = Consumed(bench, at_once, source={"as_": Order})
    async with run.run():
        await run.until_empty()
    assert [*await bench.dead(), *(each.value for each in run.letters)] == [b"{no json"]
    assert list(map(repr, run.done)) == ["Order(shop='a')"]


async def case_12b_a_connection_is_lost_while_letters_are_written(bench: Bench) -> None:
    """Each is written; twice at most if its message comes again, and once where receipts survive a connection."""
    bench.needs("cut")
    bodies = [b"{%d" % number for number in range(3)]
    await bench.publish_all(bodies)
    run, letters = Consumed(bench, at_once, source={"as_": Order}), list[bytes]()

    async def write(letter: DeadLetter) -> None:
        await bench.sleep(0.3)
        letters.append(letter.value)

    async with run.topology.run(dead_letters=write):
        await bench.sleep(0.5)
        await bench.bring("cut")
        await run.until_empty(50)
    counts = Counter([*letters, *await bench.dead()])
    most = 1 if bench.rules.receipts_survive or bench.rules.has_dead_letters else 2
    assert set(counts) == set(bodies)
    assert max(counts.values()) <= most
    assert await bench.violations() == []


async def case_13_a_rejected_message_has_one_attempt(bench: Bench) -> None:
    """And is a dead letter."""
    bodies = await published(bench, 3)

    async def work(body: bytes) -> None:
        if body == b"0001":
            raise Reject("never")

    run = Consumed(bench, work)
    async with run.run() as running:
        await run.until_empty()
        assert running.statistics().components["orders"].replayed == 0
    assert [*await bench.dead(), *(each.value for each in run.letters)] == [b"0001"]
    await run.check(bodies)


async def case_14_a_body_that_is_too_large_is_a_dead_letter(bench: Bench) -> None:
    """With its bytes, whatever it would have been."""
    await bench.publish(b"x" * 1001)
    run = Consumed(bench, at_once, source={"max_message_bytes": 1000})
    async with run.run():
        await run.until_empty()
    assert [*await bench.dead(), *(each.value for each in run.letters)] == [b"x" * 1001]
    assert run.done == []


async def case_15_a_slow_bolt_takes_no_more_than_it_may(bench: Bench) -> None:
    """The source holds what may be pending."""
    bodies, gate = await published(bench, 100), asyncio.Event()
    run = Consumed(bench, waiting_for(gate, *bodies), message_timeout=None)
    async with run.run() as running:
        await bench.sleep(2)
        assert connection_of(running).received <= 20
        gate.set()
        await run.until_empty()
    assert run.counts == dict.fromkeys(bodies, 1)


async def case_16_a_tree_may_take_longer_than_its_lease(bench: Bench) -> None:
    """It is renewed, and comes to nobody else."""
    lease = bench.rules.lease
    bench.needs_rule(lease, "leases")
    bodies = await published(bench, 5)

    async def work(body: bytes) -> None:
        await bench.sleep(3 * (lease or 0))

    run = Consumed(bench, work, message_timeout=None)
    async with run.run():
        await run.until_empty()
    assert run.counts == dict.fromkeys(bodies, 1)


async def case_17_replays_stop_when_the_lease_is_lost(bench: Bench) -> None:
    """Two owners do not bury the same message."""
    bench.needs("leases", "restart")
    await published(bench, 1)

    async def fail(body: bytes) -> None:
        raise ValueError(body)

    run = Consumed(bench, fail, replay_delay=20.0, replay_delay_max=20.0, max_attempts=100)
    async with run.run() as running:
        await bench.sleep(1)
        for _ in range(12):
            await bench.bring("restart")
            await bench.sleep(10)
            if connection_of(running).withdrawn:
                break
        assert connection_of(running).withdrawn >= 1
    assert run.letters == [] or {each.failure.kind for each in run.letters} == {FailureKind.SHUTDOWN}


async def case_18_partitions_go_from_one_to_another(bench: Bench) -> None:
    """With trees open: nothing is skipped or repeated, and nothing is committed for what is lost."""
    bench.needs("rebalance")

    async def work(body: bytes) -> None:
        await asyncio.sleep(0.5)

    bodies = await published(bench, 300)
    run = Consumed(bench, work, parallelism=3)
    async with run.run():
        for _ in range(6):
            await bench.sleep(0.7)
            await bench.bring("rebalance")
        await run.until_empty()
    assert run.counts == dict.fromkeys(bodies, 1)
    await run.check(bodies)


async def case_18b_partitions_are_taken_without_a_word(bench: Bench) -> None:
    """What is under way goes on and commits nothing."""
    bench.needs("taken")
    bodies = await published(bench, 200)
    gate = asyncio.Event()
    run = Consumed(bench, waiting_for(gate, *bodies[:8]), parallelism=2, message_timeout=None)
    async with run.run():
        await bench.sleep(1)
        await bench.bring("taken")
        await bench.sleep(1)
        gate.set()
        await run.until_empty()
    await run.check(bodies)


async def case_19_offsets_have_gaps(bench: Bench) -> None:
    """As in compacted topics."""
    bench.needs("gaps")
    bodies = await published(bench, 50, gap=7)
    run = Consumed(bench, at_once)
    async with run.run():
        await run.until_empty(60)
    assert run.counts == dict.fromkeys(bodies, 1)


async def case_20_others_go_on_while_one_is_stuck(bench: Bench) -> None:
    """Nothing is committed past it."""
    bodies, gate = await published(bench, 60), asyncio.Event()
    run = Consumed(bench, waiting_for(gate, b"0002"), message_timeout=None)
    async with run.run():
        await until(lambda: len(run.counts) == 59)
        await bench.sleep(1)  # for more than an interval of settling
        assert b"0002" in await bench.left()
        gate.set()
        await run.until_empty()
    await run.check(bodies)


async def case_21_a_commit_that_fails_is_tried_again(bench: Bench) -> None:
    """As in a rebalance."""
    bench.needs("commits")
    run = Consumed(bench, at_once)
    async with run.run():
        await bench.sleep(1)
        await bench.bring("commits")
        bodies = await published(bench, 20)
        await bench.sleep(3)
        assert await bench.left() == bodies
        await bench.bring("commits")
        await run.until_empty(30)


async def case_22_replays_keep_the_order_of_a_key(bench: Bench) -> None:
    """With ``ordered_by``."""
    failed: list[bytes] = []

    async def work(body: bytes) -> None:
        if body[-1] % 7 == 0 and body not in failed:
            failed.append(body)
            raise ValueError(body)

    bodies = await published(bench, 60)
    run = Consumed(bench, work, source={"ordered_by": by_eight})
    async with run.run():
        await run.until_empty()
    by_key = defaultdict[int, list[bytes]](list)
    for body in run.done:
        by_key[by_eight(body)].append(body)
    assert failed
    assert all(each == sorted(each) for each in by_key.values())
    await run.check(bodies)


async def case_23_an_inactive_topology_takes_nothing(bench: Bench) -> None:
    """And goes on where it was."""
    run = Consumed(bench, at_once)
    async with run.run() as running:
        await bench.sleep(1)
        running.deactivate()
        await bench.sleep(6)  # a read that waits may still bring what comes
        bodies = await published(bench, 10)
        await bench.sleep(2)
        assert (run.done, connection_of(running).state.value) == ([], "paused")
        running.activate()
        await run.until_empty()
    assert run.counts == dict.fromkeys(bodies, 1)


async def case_24_the_lag_is_what_the_broker_has(bench: Bench) -> None:
    """And 0 when there is nothing to do."""
    bench.needs_rule(bench.rules.has_lag, "lag")
    bodies, gate = await published(bench, 40), asyncio.Event()
    run = Consumed(bench, waiting_for(gate, *bodies), message_timeout=None, source={"lag_every": 1.0})
    async with run.run() as running:
        await until(lambda: connection_of(running).total_lag == 40)
        assert len(await bench.left()) == 40
        gate.set()
        await run.until_empty()
        await until(lambda: connection_of(running).total_lag == 0)


async def case_25_two_runs_share_the_work(bench: Bench) -> None:
    """Both have some, and none has what the other has."""
    first, second = Consumed(bench, briefly), Consumed(bench, briefly)
    bodies = list[bytes]()
    async with first.run(), second.run():
        while not (bodies and first.done and second.done) and len(bodies) < 4000:  # now that both are there
            more = [b"%04d" % number for number in range(len(bodies), len(bodies) + 200)]
            await bench.publish_all(more, gap=0)
            bodies += more
            await first.until_empty()
    assert first.done
    assert second.done
    assert len(second.done) + len(first.done) - len(bodies) <= 40
    await second.check([body for body in bodies if body not in first.done])


async def case_26_a_finite_source_ends(bench: Bench) -> None:
    """When all is settled, and the next run finds nothing."""
    bench.needs("finish")
    bodies = await published(bench, 40)
    await bench.bring("finish")
    for expected in (dict.fromkeys(bodies, 1), {}):
        run = Consumed(bench, at_once, source={"finite": True})
        async with run.run() as running:
            await running.finished()
        assert run.counts == expected


async def case_27_a_sink_has_each_value_at_least_once(bench: Bench) -> None:
    """The connection is lost between writing and acking; no message fails by that."""
    bench.needs("cut")
    topology = Topology("sending", max_spout_pending=50)
    bodies = [b"%04d" % number for number in range(200)]
    topology.bolt("send", bench.sink(), topology.spout("bodies", bodies).shuffle())
    async with topology.run() as running:
        for _ in range(3):
            await bench.sleep(0.004)
            await bench.bring("cut")
        await running.finished()
        assert running.statistics().components["bodies"].failed == 0
    assert set(await bench.left()) == set(bodies)


async def case_29_what_is_routed_nowhere_is_a_dead_letter(bench: Bench) -> None:
    """At once, without further attempts; what was taken before stays."""
    bench.needs("unroutable")
    topology = Topology("sending", max_spout_pending=10)
    bodies = topology.spout("bodies", outputs=bytes)
    topology.bolt("send", bench.sink(), bodies.shuffle())
    async with topology.run() as running:
        await (await running.emit(bodies, b"0001"))
        await bench.bring("unroutable")
        (outcome,) = await asyncio.gather(await running.emit(bodies, b"0002"), return_exceptions=True)
        assert isinstance(outcome, TupleFailed)
    assert await bench.left() in ([b"0001"], [])  # a queue that was removed has nothing


async def case_30_a_writer_that_was_replaced_is_fenced(bench: Bench) -> None:
    """It has hung, and another run writes under its name: nothing more of it is there, and its run crashes."""
    bench.needs("fence")
    with pytest.raises(
        TopologyCrashed, match=r"write.*(fenced by a newer instance|has taken the place of this one)"
    ):
        await one_writer_after_another(bench)
    assert await bench.left() == [b"0001", b"0002"]


async def one_writer_after_another(bench: Bench) -> None:
    """The first one writes once more when there is a second one."""
    (first, to_first), (second, to_second) = writing(bench), writing(bench)
    async with first.run() as hung:
        await hung.emit(to_first, b"0001")
        await until_left(bench, b"0001")
        async with second.run() as instead:
            await instead.emit(to_second, b"0002")
            await until_left(bench, b"0002")
            await hung.emit(to_first, b"0003")
            await hung.finished()


def writing(bench: Bench) -> tuple[Topology, Stream[bytes]]:
    """A topology that writes transactions, and where it takes rows."""
    topology = Topology("writing", restart_delay=0.0, epoch_seconds=0.1)
    bodies = topology.spout("bodies", outputs=bytes)
    topology.bolt("write", bench.committer(), bodies.global_())
    return topology, bodies


async def until_left(bench: Bench, body: bytes) -> None:
    """Wait until the broker has it."""
    async with asyncio.timeout(60):
        while body not in await bench.left():  # noqa: ASYNC110 - it is the broker that is watched
            await asyncio.sleep(0.1)


async def case_31_anything_at_all(bench: Bench) -> None:
    """Faults at random moments, on twins for five minutes of their time: the account of every message adds up."""
    if isinstance(bench, TwinBench):
        await soak(bench, 300.0)
    elif SOAK:
        await soak(bench, SOAK)
    else:
        pytest.skip("TESTS_SOAK=seconds has it go on at a real broker")


async def soak(bench: Bench, seconds: float, *, pause: float = 2.0) -> None:
    """Publish and have faults at random, for so long, with pauses up to this."""
    random, bodies, loop = Random(31), list[bytes](), asyncio.get_running_loop()
    faults = sorted(bench.faults & {"cut", "restart", "silent", "rebalance", "taken", "leases", "duplicate"})
    run = Consumed(bench, briefly, parallelism=2, source={"revoke_timeout": 5.0})
    ends = loop.time() + seconds
    async with run.run() as running:
        while loop.time() < ends:
            for _ in range(random.randrange(20)):
                bodies.append(b"%06d" % len(bodies))
                await bench.publish(bodies[-1])
            await asyncio.sleep(random.uniform(0.0, pause))
            if faults and random.random() < pause / 20:
                await bench.bring(random.choice(faults))
        await run.until_empty()
        assert running.statistics().components["orders"].restarts == 0
    await run.check(bodies)


async def case_32_a_password_is_nowhere(bench: Bench) -> None:
    """In log lines, health, statistics, descriptions, dead letters and tracebacks."""
    bench.needs("cut", "secret")
    with noted_logs() as lines:
        bodies = await published(bench, 20)
        run = Consumed(bench, failing_once(), source={"password": Secret("hunter2")})
        async with run.run() as running:
            await bench.sleep(0.02)
            await bench.bring("cut")
            await run.until_empty()
            seen = [repr(running.health()), repr(running.statistics()), repr(run.topology.describe())]
        seen += [repr(running.failures()), *map(repr, run.letters), *lines]
    assert any("lost" in line for line in lines)
    assert "hunter2" not in "\n".join(seen)
    await run.check(bodies)


async def case_33_the_loop_has_little_to_do_with_a_message(bench: Bench) -> None:
    """So many calls of functions at most, with all that the client does; ``speed.py`` beside the tests of a connector
    has what it takes beside its bare client."""
    bodies, all_are_done = await published(bench, 300), asyncio.Event()

    async def work(body: bytes) -> None:
        if len(run.done) >= len(bodies) - 1:
            all_are_done.set()

    run = Consumed(bench, work, max_spout_pending=100)
    with counted_calls() as calls:
        async with run.run(), asyncio.timeout(60):
            await all_are_done.wait()
    assert calls.count < bench.calls * len(bodies)


async def case_33b_a_source_that_waits_takes_no_time(bench: Bench) -> None:
    """Of the loop: nothing of it turns in circles while there is nothing to do. 1,100 to 6,300 calls were counted; one
    task that looks each two milliseconds makes 14,500 more."""
    async with Consumed(bench, at_once).run():
        await bench.sleep(0.5)
        with counted_calls() as calls:
            await bench.sleep(0.5)
    assert calls.count < 12_500


class Calls:
    """Calls of functions by one thread, counted."""

    count = 0


@contextmanager
def counted_calls() -> Generator[Calls]:
    """Count the calls of functions by this thread, Python's and C's. The same work makes as many of them on a slow or
    busy machine, where any measure of time has more."""
    calls, before = Calls(), sys.getprofile()

    def count(frame: object, event: str, argument: object) -> None:
        calls.count += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@contextmanager
def noted_logs() -> Generator[list[str]]:
    """All that is logged, down to DEBUG, with tracebacks."""
    lines, root = list[str](), logging.getLogger()
    handler, before = logging.StreamHandler(), root.level
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def failing_once() -> Callable[[bytes], Awaitable[None]]:
    """Work that fails at first, so that there are tracebacks."""
    failed = list[bytes]()

    async def work(body: bytes) -> None:
        if body not in failed:
            failed.append(body)
            raise ValueError(body)

    return work


CASES: Final[Sequence[Case]] = [
    value for name, value in sorted(globals().items()) if name.startswith("case_")
]


def name_of(case: Case) -> str:
    """The name of a case, for pytest."""
    return getattr(case, "__name__", "").removeprefix("case_")
