"""The cases that every connector must pass, at a real RabbitMQ."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import aiormq
import pytest
from aiormq.exceptions import AMQPError

from stormlet.connect import rabbitmq
from stormlet.connect.address import Address
from stormlet.connect.rabbitmq.connection import close_reason
from stormlet.connect.rabbitmq.queue import QueueSession
from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.brokers.proxy import Proxy
from tests.brokers.servers import RabbitMQ
from tests.connect.conformance import CASES, QUEUE, Bench, Case, name_of
from tests.connect.rabbitmq.kit import Rabbit, through

DEAD = f"{QUEUE} dead"
RESTARTING = ("04", "07", "17", "31")
"""The cases that kill the broker."""
BEATS = "?heartbeat=2"
SILENT = 8.0
"""Seconds for which nothing comes through: longer than three heartbeats."""


class Watched(rabbitmq.Queue[Any]):
    """A queue whose settlements are noted: AMQP does not say which messages are not settled yet."""

    def __init__(self, bench: RealRabbitMQ, url: str, **options: Any) -> None:
        super().__init__(url, QUEUE, **options)
        self._bench = bench

    async def begin(self, address: Address, context: SourceContext) -> QueueSession:
        session: Any = await super().begin(address, context)
        bodies = dict[int, bytes]()
        receive, settle = session.receive, session.settle

        async def received(most: int, within: float) -> Sequence[Delivery]:
            deliveries: Sequence[Delivery] = await receive(most, within)
            bodies.update({each.receipt.tag: each.body for each in deliveries})
            return deliveries

        async def settled(settlement: Settlement) -> int:
            receipts = [*settlement.done, *(each.receipt for each in settlement.rejected)]
            settling = Counter(bodies[each.tag] for each in receipts)
            try:
                refused: int = await settle(settlement)
            except BaseException:  # it is cancelled when the connection is lost
                self._bench.unsure |= settling
                raise
            self._bench.open -= settling
            self._bench.unsure -= settling
            return refused

        session.receive, session.settle = received, settled
        self._bench.sessions.append(session)
        return session  # type: ignore[no-any-return]


class RealRabbitMQ(Bench):
    """The connector at a broker that is killed, behind a proxy that resets."""

    faults = frozenset({"cut", "gone", "silent", "restart", "missing", "unroutable", "password"})

    def __init__(self, kind: str, *, rejects: bool) -> None:
        self.name = f"{kind}{' with dead letters' if rejects else ''}"
        self.rules = rabbitmq.Queue[Any](None, QUEUE, rejects=rejects).capabilities
        self._kind = kind
        self._broker: RabbitMQ

    def at(self, broker: RabbitMQ) -> RealRabbitMQ:
        """The same at this broker."""
        self._broker = broker
        return self

    def hold(self, case: Case) -> None:
        # Killed sooner, the broker itself does not find a quorum queue again.
        self._settles = 2.0 if name_of(case).startswith(RESTARTING) else 0.0
        super().hold(case)

    def begin(self) -> None:
        self.open = Counter[bytes]()
        self.unsure = Counter[bytes]()
        """Of the open ones those that were settled when their connection was lost: the broker may know of it."""
        self.sessions = list[QueueSession]()
        self._forgets = self._is_consumed = self._has_none = False
        self._beats = False  # too soon for a machine with other work, where no case needs it
        self._later: asyncio.Future[None] | None = None

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            async with Rabbit(self._broker.url, QUEUE) as self._rabbit:
                for queue in (QUEUE, DEAD):
                    await self._rabbit.delete(queue)
                await self._rabbit.declare(DEAD)
                dead_letters = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": DEAD}
                await self._rabbit.declare(x_queue_type=self._kind, **dead_letters)
                await asyncio.sleep(self._settles)
                try:
                    await work()
                finally:
                    if self._later is not None:
                        await self._later

        with Proxy(self._broker.port) as self._proxy:
            asyncio.run(running())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def source(self, **options: Any) -> Source[Any]:
        self._is_consumed = True
        rejects = self.rules.has_dead_letters
        url = through(self._broker.url, self._proxy.port, BEATS if self._beats else "")
        return Watched(self, url, rejects=rejects, **options)

    def needs(self, *faults: str) -> None:
        super().needs(*faults)
        self._beats = "silent" in faults

    def sink(self) -> Sink[bytes]:
        url = through(self._broker.url, self._proxy.port)
        return rabbitmq.Publish[bytes](url, routing_key=QUEUE, size=20)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        await self.publish_all([body])

    async def publish_all(self, bodies: Sequence[bytes], *, gap: int = 0) -> None:
        self.open.update(bodies)
        await self._rabbit.publish_many([each.decode() for each in bodies])

    async def left(self) -> list[bytes]:
        if self._has_none:
            return []
        if not self._is_consumed:
            return await self._ready(QUEUE)
        if self.open and not self.open - self.unsure and await self._has_nothing():
            self.open.clear()
        return sorted(self.open.elements())

    async def _has_nothing(self) -> bool:
        """True if the broker has no message, neither in the queue nor under way."""
        for _ in range(2):  # one may be on its way from there to here
            here = [each for each in self.sessions if close_reason(each._channel) is None and each._tags.open]
            if here or not await self._is_empty():
                return False
            await asyncio.sleep(0.2)
        return True

    async def _is_empty(self) -> bool:
        with suppress(AMQPError):  # it is down
            async with Rabbit(self._broker.url, QUEUE) as other:  # the one that is there may be lost
                return not await other.ready()
        return False

    async def dead(self) -> list[bytes]:
        return await self._ready(DEAD)

    async def violations(self) -> list[str]:
        """Something is acked that was not settled, or is not that was."""
        there = Counter(await self._ready(QUEUE))
        lost, again = self.open - self.unsure - there, there - self.open
        wrong = [f"{each!r} is not in the queue and was not settled" for each in lost]
        return wrong + [f"{each!r} was settled and is in the queue" for each in again if not self._forgets]

    async def _ready(self, queue: str) -> list[bytes]:
        connection = await aiormq.connect(self._broker.url)  # the other one may be lost
        channel, bodies = await connection.channel(), list[bytes]()
        while (message := await channel.basic_get(queue)).delivery_tag:
            bodies.append(message.body)
        await connection.close()
        return sorted(bodies)

    async def bring(self, fault: str) -> None:
        match fault:
            case "cut":
                self._proxy.reset()
            case "missing" | "unroutable":
                self._has_none = True
                await self._rabbit.delete()
            case "gone":
                self._proxy.refuse()
            case "back":
                self._proxy.pass_on()
            case "silent":
                self._proxy.swallow()
                self._later = asyncio.ensure_future(self._heard_again())
            case "password":
                return  # any is wrong that a case has
            case _:
                self._forgets = True  # it keeps on disk only after a while what was acked
                self._broker.kill()
                self._later = asyncio.ensure_future(self._again())

    async def _heard_again(self) -> None:
        await asyncio.sleep(SILENT)
        self._proxy.refuse()
        self._proxy.pass_on()

    async def _again(self) -> None:
        await asyncio.sleep(8)
        await asyncio.get_running_loop().run_in_executor(None, self._broker.start)


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitMQ]:
    """One RabbitMQ for all cases."""
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(RabbitMQ(Path(folder))) as broker:
        broker.start()
        yield broker


QUORUM = RealRabbitMQ("quorum", rejects=True)
CLASSIC = RealRabbitMQ("classic", rejects=False)
DIFFERENT = ("01", "03_", "04", "11", "12", "24")
"""The cases in which a classic queue, or one without dead letters, might do something else."""
RUNS = [
    *((QUORUM, case) for case in CASES),
    *((CLASSIC, case) for case in CASES if name_of(case).startswith(DIFFERENT)),
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("bench", "case"), RUNS, ids=lambda each: str(each) if isinstance(each, Bench) else name_of(each)
)
def test_conformance(bench: RealRabbitMQ, case: Case, server: RabbitMQ) -> None:
    """The same cases as the twins."""
    bench.at(server).hold(case)
