"""The cases that every connector must pass, at a real NATS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from stormlet.connect import nats
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.brokers.processes import Broker
from tests.brokers.servers import Nats
from tests.connect.conformance import CASES, QUEUE, Case, name_of
from tests.connect.nats.kit import CONSUMER, Server, through
from tests.connect.proxied import LEASE, ProxiedBench

SUBJECT = f"{QUEUE}.new"


class RealNats(ProxiedBench):
    """The connector with a NATS, behind a proxy that cuts."""

    faults = frozenset({"cut", "gone", "silent", "restart", "leases", "missing", "unroutable", "secret"})
    forgets = 250

    def __init__(self, name: str, *, rejects: bool, retention: str = "limits") -> None:
        self.name = name
        self._rejects = rejects
        self._retention = retention
        source = nats.Stream(None, QUEUE, consumer=CONSUMER, lease=LEASE, rejects=rejects)
        self.rules = source.capabilities
        self.server: Nats

    def at(self, broker: Nats) -> RealNats:
        """The same at this broker."""
        self.server = broker
        return self

    def begin(self) -> None:
        super().begin()
        self._dead = list[int]()
        self._done = set[int]()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[None]:
        async with Server(self.server.url, QUEUE) as self._server:
            await self._begin_anew()
            yield

    async def _begin_anew(self) -> None:
        server, client = self._server, self._server.client
        with suppress(NotFoundError):
            await server.js.delete_stream(QUEUE)
        await server.make(retention=self._retention)
        # The server tells of each ack, as of a sample of a hundred in a hundred.
        await server.consumer(ack_wait=LEASE, max_ack_pending=-1, sample_freq="100")
        await client.subscribe(f"$JS.EVENT.METRIC.CONSUMER.ACK.{QUEUE}.{CONSUMER}", cb=self._acked)
        await client.subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>", cb=self._terminated)
        await client.flush()

    async def _acked(self, message: Msg) -> None:
        self._done.add(json.loads(message.data)["stream_seq"])

    async def _terminated(self, message: Msg) -> None:
        self._dead.append(json.loads(message.data)["stream_seq"])

    def source(self, **options: Any) -> Source[Any]:
        given = {"consumer": CONSUMER, "lease": LEASE, "lag_every": 1.0, "rejects": self._rejects, **options}
        return nats.Stream(through(self.server.url, self.proxy.port), QUEUE, **given)

    def sink(self) -> Sink[bytes]:
        return nats.Publish[bytes](through(self.server.url, self.proxy.port), SUBJECT, size=20)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        await self._server.publish(body.decode())

    async def left(self) -> list[bytes]:
        """Those that are not acked, by the server's own words."""
        await self.is_there()
        try:
            if not await self._server.undone():
                return []
        except NotFoundError:  # the stream was deleted, as a case wants it
            return []
        await self._server.client.flush()
        return sorted(each.data for each in await self._server.messages() if each.seq not in self._known)

    @property
    def _known(self) -> set[int]:
        return self._done | set(self._dead)

    async def dead(self) -> list[bytes]:
        await self._server.client.flush()
        return [each.data for each in await self._server.messages() if each.seq in self._dead]

    async def bring(self, fault: str) -> None:
        if fault in ("missing", "unroutable"):
            await self._server.js.delete_stream(QUEUE)
        else:
            await super().bring(fault)


LIMITS = RealNats("nats", rejects=False)
TERMINATES = RealNats("nats with advisories", rejects=True)
WORK_QUEUE = RealNats("nats work queue", rejects=False, retention="workqueue")
DIFFERENT = ("01", "03_", "04", "11", "12", "13", "14", "20", "24", "32")
"""The cases in which another kind of stream, or one with advisories, might do something else."""
RUNS = [
    *((LIMITS, case) for case in CASES),
    *(
        (bench, case)
        for bench in (TERMINATES, WORK_QUEUE)
        for case in CASES
        if name_of(case).startswith(DIFFERENT)
    ),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("bench", "case"), RUNS, ids=lambda each: str(each) if isinstance(each, RealNats) else name_of(each)
)
def test_conformance(bench: RealNats, case: Case, broker: Broker) -> None:
    """The same cases as the twins."""
    assert isinstance(broker, Nats)
    bench.at(broker).hold(case)
