"""One broker in memory, and its place in the stead of a real one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, TypeAlias, TypeVar, Unpack

import msgspec

from stormlet.connect.address import Address, read_address
from stormlet.connect.driver.options import SinkOptions, SourceOptions
from stormlet.connect.session import (
    DONE,
    Capabilities,
    ConnectContext,
    Item,
    Session,
    Settles,
    SinkSession,
    SourceContext,
    Written,
)
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.connect.twins import TWINS, EpochWriter, Reading, Row, Writing
from stormlet.errors import BrokerRefused, ConnectionLost
from stormlet.testing.brokers.logs import Log, LogSession
from stormlet.testing.brokers.profiles import PROFILES, Profile, profile_of
from stormlet.testing.brokers.queues import Queue, QueueSession
from stormlet.testing.brokers.transactions import Transactions, TwinTransactions
from stormlet.testing.brokers.troubles import Trouble, Troubles

T = TypeVar("T")


class Broker:
    """A broker in memory, on the clock of the loop that it is used on."""

    def __init__(
        self,
        profile: Profile | str = "rabbitmq-4.0",
        *,
        latency: float = 0.001,
        troubles: Troubles | None = None,
    ) -> None:
        """``latency`` is how many seconds an answer takes; ``troubles`` begin with the first connection."""
        self._troubles = troubles
        self.profile = PROFILES[profile] if isinstance(profile, str) else profile
        self.latency = latency
        self.password: str | None = None
        """The password that it wants; None: any."""
        self.is_trusted = True
        """False if its certificate is one that clients refuse."""
        self.missing: list[str] = []
        """Names of queues and topics that are not there."""
        self.unroutable: list[str] = []
        """Names of queues and topics that take nothing: what is written there is rejected."""
        self.full: list[str] = []
        """Names of queues and topics that have no room: what is written there waits."""
        self.places: dict[str, Queue | Log] = {}
        self.connects = 0
        """Connections that it has given."""
        self.seen: list[Trouble] = []
        """The faults that it has had."""
        self._down_until = -1.0
        self._slow_until = -1.0
        self._silent_until = -1.0
        self._random = Random(0)
        self._sessions: list[_Session] = []
        self._transactions = Transactions()

    # What tests do.

    def queue(self, name: str) -> Queue:
        """Return the queue of this name."""
        found = self.places.setdefault(name, Queue(name, self.profile, _now))
        assert isinstance(found, Queue), f"{name} is a topic"
        return found

    def topic(self, name: str) -> Log:
        """Return the topic of this name."""
        found = self.places.setdefault(name, Log(name, self.profile))
        assert isinstance(found, Log), f"{name} is a queue"
        return found

    def place(self, name: str) -> Queue | Log:
        """Return the queue or topic of this name, by the profile."""
        is_log = self.profile.capabilities.settles is Settles.PREFIX
        return self.topic(name) if is_log else self.queue(name)

    @property
    def violations(self) -> list[str]:
        """Acts of sources that none may do."""
        return [each for place in self.places.values() for each in place.violations]

    def cut(self) -> None:
        """Every connection is lost."""
        self._lose(list(self._sessions))

    def _balance_topics(self) -> None:
        for place in self.places.values():
            if isinstance(place, Log) and place.members:
                self._soon(place)

    def restart(self, seconds: float) -> None:
        """Every connection is lost, and for so many seconds nobody gets one."""
        self._down_until = _now() + seconds
        self.cut()

    def go_away(self) -> None:
        """Every connection is lost, and nobody gets another one until :meth:`come_back`. A topology that is cancelled
        meanwhile has told the broker nothing more, as one whose process was killed."""
        self.restart(math.inf)

    def come_back(self) -> None:
        """Give connections again."""
        self._down_until = -1.0

    def fall_silent(self, seconds: float) -> None:
        """For so many seconds nothing comes through, as in a black hole; after the profile's ``heartbeat`` clients
        count their connections as lost."""
        self._silent_until = _now() + seconds
        sessions = list(self._sessions)
        if seconds > self.profile.heartbeat:
            asyncio.get_running_loop().call_later(self.profile.heartbeat, self._lose, sessions)

    def _lose(self, sessions: Sequence[_Session]) -> None:
        for session in sessions:
            if session in self._sessions:
                self._sessions.remove(session)
                session.lose()
        self._balance_topics()

    def slow_down(self, seconds: float) -> None:
        """For so many seconds every answer takes up to 5 seconds."""
        self._slow_until = _now() + seconds

    async def rebalance(self, turn: int = 1) -> None:
        """Give every partition to another member."""
        for place in self.places.values():
            if isinstance(place, Log):
                await place.balance(turn)

    def take_away(self) -> None:
        """Partitions are taken from their owners without a word before, and given out anew."""
        for place in self.places.values():
            if isinstance(place, Log):
                for session in list(place.members):
                    session.taken_away([each for each, owner in place.owners.items() if owner is session])
                self._soon(place, turn=1)

    def end_leases(self) -> None:
        """Every lease ends now."""
        for place in self.places.values():
            if isinstance(place, Queue) and self.profile.capabilities.lease is not None:
                for receipt in list(place.lent):
                    place.take_back(receipt, counts=True)

    def deliver_twice(self) -> None:
        """Deliver all that is under way once more, as when an answer was lost."""
        for place in self.places.values():
            if isinstance(place, Queue) and self.profile.capabilities.receipts_survive:
                for lent in list(place.lent.values()):
                    lent.ends = _now()

    def trouble(self, troubles: Troubles) -> None:
        """Have faults by a seed from now on, until there were enough."""
        self._trouble_later(troubles, troubles.random())

    def _trouble_later(self, troubles: Troubles, random: Random) -> None:
        # By timers: a task that lives on would be taken for a leak of the topology.
        if len(self.seen) < troubles.most:
            pause = random.uniform(0.0, 2 * troubles.every)
            asyncio.get_running_loop().call_later(pause, self._befall, troubles, random)

    def _befall(self, troubles: Troubles, random: Random) -> None:
        kind = random.choice(troubles.kinds)
        self.seen.append(kind)
        self._have(kind, random)
        self._trouble_later(troubles, random)

    def _have(self, kind: Trouble, random: Random) -> None:
        if kind is Trouble.REBALANCE:
            for place in self.places.values():
                if isinstance(place, Log):
                    self._soon(place, random.randint(0, 3))
        elif kind in (timed := {Trouble.RESTART: self.restart, Trouble.SLOW: self.slow_down}):
            timed[kind](random.uniform(0.0, 20.0))
        elif kind is Trouble.SILENT:
            self.fall_silent(random.uniform(0.0, 30.0))
        else:
            at_once = {
                Trouble.CUT: self.cut,
                Trouble.TAKEN: self.take_away,
                Trouble.LEASE_LOST: self.end_leases,
            }
            at_once.get(kind, self.deliver_twice)()

    # What sources and sinks do.

    async def source(self, source: Reading, address: Address, context: SourceContext) -> Session:
        """Connect a source."""
        (name,) = source.reads
        await self.welcome(name, address)
        place = self.place(name)
        finite = source.capabilities.is_finite
        if isinstance(place, Queue):
            reading = QueueSession(place, self.profile, context, self.answer_time, finite=finite)
            self._sessions.append(reading)
            return reading
        session = LogSession(place, self.profile, context, self.answer_time, finite=finite)
        self._sessions.append(session)
        place.members.append(session)
        self._soon(place)
        return session

    async def sink(self, sink: Writing, address: Address, context: ConnectContext) -> SinkSession:
        """Connect a sink."""
        await self.welcome(sink.writes, address)
        session = TwinWriter(self, sink)
        self._sessions.append(session)
        return session

    async def transactions(self, name: str, topic: str, address: Address) -> EpochWriter:
        """Connect a writer of transactions, who takes the place of an earlier one of this name."""
        await self.welcome(topic, address)
        writer = TwinTransactions(name, self._transactions, self._publish, self.answer_time)
        self._sessions.append(writer)
        return writer

    def _publish(self, row: Row) -> None:
        self.topic(row.topic).publish(row.body, row.key)

    async def welcome(self, name: str, address: Address) -> None:
        """Give a connection, or refuse it."""
        if self._is_silent:
            await asyncio.sleep(self.profile.heartbeat)
            raise ConnectionLost(f"{address}: no answer within {self.profile.heartbeat:g} s")
        await asyncio.sleep(self.answer_time())
        if _now() < self._down_until:
            raise ConnectionLost("connection refused")
        if not self.is_trusted:
            raise BrokerRefused(f"{address}: its certificate is not valid")
        given = None if address.password is None else address.password.reveal()
        if self.password is not None and given != self.password:
            raise BrokerRefused(f"{address}: ACCESS_REFUSED - wrong user or password")
        if name in self.missing:
            raise BrokerRefused(f"NOT_FOUND - no queue {name!r}")
        self.connects += 1
        if self._troubles is not None:
            troubles, self._troubles = self._troubles, None
            self.trouble(troubles)

    def _soon(self, log: Log, turn: int = 0) -> None:
        if not log.members:
            return
        self._balancing = asyncio.get_running_loop().create_task(log.balance(turn))

    @property
    def _is_silent(self) -> bool:
        return _now() < self._silent_until

    def answer_time(self) -> float:
        """Return the seconds that an answer takes now."""
        if self._is_silent:
            return self._silent_until - _now()
        return self._random.uniform(0.0, 5.0) if _now() < self._slow_until else self.latency


class TwinWriter:
    """A connection of a sink."""

    def __init__(self, broker: Broker, sink: Writing) -> None:
        self._broker = broker
        self._sink = sink
        self._lost = False

    def lose(self) -> None:
        """The connection is lost."""
        self._lost = True

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Publish; the answer may be lost with the connection, when it was done."""
        await asyncio.sleep(self._broker.answer_time() / 2)
        self._check()
        name = self._sink.writes
        if name in self._broker.unroutable:
            return [Written(f"{name!r} takes nothing", permanent=True)] * len(items)
        if name in self._broker.full:
            return [Written(f"{name!r} is full", later=True)] * len(items)
        place = self._broker.place(name)
        for item in items:
            place.publish(self._sink.encode(item.value))
        await asyncio.sleep(self._broker.answer_time() / 2)
        self._check()
        return [DONE] * len(items)

    def _check(self) -> None:
        if self._lost:
            raise ConnectionLost("the connection was reset")

    async def close(self) -> None:
        """Leave."""
        self._lost = True


_Session: TypeAlias = QueueSession | LogSession | TwinWriter | TwinTransactions


def _now() -> float:
    return asyncio.get_running_loop().time()


class TwinSource(Source[T]):
    """A source at a twin, with the rules of its profile, where a test has no connector of its own."""

    def __init__(
        self,
        broker: Broker,
        name: str,
        *,
        as_: Any = bytes,
        finite: bool = False,
        **options: Unpack[SourceOptions],
    ) -> None:
        super().__init__("twin://broker", as_=as_, **options)
        self._broker = broker
        self._name = name
        self._finite = finite

    @property
    def capabilities(self) -> Capabilities:
        """Those of the profile."""
        rules = self._broker.profile.capabilities
        return msgspec.structs.replace(rules, is_finite=self._finite)

    @property
    def reads(self) -> tuple[str, ...]:
        """The queue or topic."""
        return (self._name,)

    async def begin(self, address: Address, context: SourceContext) -> Session:
        """Connect to the twin."""
        return await self._broker.source(self, address, context)


class TwinSink(Sink[T]):
    """A sink at a twin, where a test has no connector of its own."""

    def __init__(self, broker: Broker, name: str, **options: Unpack[SinkOptions]) -> None:
        super().__init__("twin://broker", **options)
        self._broker = broker
        self._name = name

    @property
    def writes(self) -> str:
        """The queue or topic."""
        return self._name

    async def begin(self, address: Address, context: ConnectContext) -> SinkSession:
        """Connect to the twin."""
        return await self._broker.sink(self, address, context)


@contextmanager
def twin(url: str, profile: Profile | str | None = None, *, latency: float = 0.001) -> Generator[Broker]:
    """Put a twin in the stead of the broker at this URL, for all sources and sinks that connect in this block.

    The scheme chooses the profile, unless one is named: one of ours, or one that an installed package registers (see
    :func:`~stormlet.testing.brokers.profiles.profile_of`). Raises :class:`KeyError` for a scheme that no profile has.
    """
    address = read_address(url, where="twin")
    broker = Broker(profile_of(address.scheme) if profile is None else profile, latency=latency)
    place = f"{address.scheme}://{address.servers}"
    before = TWINS.get(place)
    TWINS[place] = broker
    try:
        yield broker
    finally:
        del TWINS[place]
        if before is not None:
            TWINS[place] = before
