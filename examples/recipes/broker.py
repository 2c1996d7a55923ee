"""A connector for a broker of your own: it redelivers, as RabbitMQ does, what was not acked.

A connector is a ``Source``, which says what the broker can do, and a session, which talks to it; the driver of
``stormlet.connect`` does the rest. It reads ahead as far as ``max_spout_pending`` allows, in a task that nobody
cancels; it acks in batches, away from the way of the tuples; it connects again, for ever, when the connection is lost,
and sends no ack of a lost connection.

Guaranteed: every message is processed completely at least once or is among the broker's dead letters, also if this
process dies, as the broker then delivers again what was not acked. A bolt that fails is tried again by the engine,
after a pause; ``Reject``, and the last of five attempts, send the message to the broker's dead letters.

For a real broker, replace ``Channel`` by its client: ``docs/connect.md`` has the connectors that are there already, and
``tests/connect/conformance.py`` the cases that a new one should pass.

::

    python -m stormlet run examples/recipes/broker.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stormlet import BasicBolt, Collector, EndOfStream, Reject, Topology, Tuple
from stormlet.connect.address import Address
from stormlet.connect.session import Capabilities, Delivery, Session, Settlement, SourceContext
from stormlet.connect.source import Source

ORDERS = ["table", "lamp", "gift", "chair for nobody", "carpet", "second lamp"]
LATENCY = 0.001
"""Seconds that a delivery is on its way."""


class Broker:
    """A queue in memory."""

    def __init__(self, bodies: Iterable[str]) -> None:
        self.ready = deque((body.encode(), 0) for body in bodies)
        self.acked: list[str] = []
        self.dead_letters: list[str] = []


class Channel:
    """A connection to the broker: the session of the source."""

    def __init__(self, broker: Broker, prefetch: int) -> None:
        self.unacked: dict[int, tuple[bytes, int]] = {}
        self._broker = broker
        self._prefetch = prefetch
        self._last_tag = 0
        self._changed = asyncio.Event()

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109
        """The next messages; none if none came in time, and the end when all are settled."""
        await asyncio.sleep(LATENCY)
        deliveries = [self._deliver() for _ in range(min(most, self._room, len(self._broker.ready)))]
        if not deliveries and not self._broker.ready and not self.unacked:
            raise EndOfStream
        if not deliveries:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)
        return deliveries

    @property
    def _room(self) -> int:
        return self._prefetch - len(self.unacked)

    def _deliver(self) -> Delivery:
        body, before = self._broker.ready.popleft()
        self._last_tag += 1
        self.unacked[self._last_tag] = (body, before + 1)
        return Delivery(body=body, receipt=self._last_tag, deliveries=before + 1)

    def interrupt(self) -> None:
        """Wait no more: the topology drains."""
        self._changed.set()

    async def settle(self, settlement: Settlement) -> int:
        """These are done, and those are for the dead letters; each tag comes once, and of this connection alone."""
        for tag in settlement.done:
            self._broker.acked.append(self.unacked.pop(tag)[0].decode())
        for rejection in settlement.rejected:
            self._broker.dead_letters.append(self.unacked.pop(rejection.receipt)[0].decode())
        self._changed.set()
        return 0

    async def close(self) -> None:
        """What was delivered and not acked is queued again, as after a lost connection; and report."""
        while self.unacked:
            _, (body, deliveries) = self.unacked.popitem()
            self._broker.ready.appendleft((body, deliveries))
        broker = self._broker
        print(f"acked {len(broker.acked)}, left {len(broker.ready)}, dead {broker.dead_letters}")

    # Nothing here: this broker has no leases, no partitions, and says nothing of its lag.

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """It has no leases."""
        return []

    async def pause(self, places: Collection[Any]) -> None:
        """It has no partitions."""

    async def resume(self, places: Collection[Any]) -> None:
        """It has no partitions."""

    async def lag(self) -> Mapping[str, int]:
        """It does not say."""
        return {}


class Queue(Source[str]):
    """The source."""

    def __init__(self, broker: Broker) -> None:
        super().__init__("memory://broker", as_=str)
        self.broker = broker

    @property
    def capabilities(self) -> Capabilities:
        """It has dead letters of its own, and an end."""
        return Capabilities(has_dead_letters=True, is_finite=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """The name of the queue."""
        return ("orders",)

    async def begin(self, address: Address, context: SourceContext) -> Session:
        """Connect, with a prefetch of what may be pending."""
        return Channel(self.broker, context.credit)


class Charge(BasicBolt[str, str]):
    """Charges for orders; the bank often does not answer at first, and never for a lost customer."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        """Charge for one."""
        order = tup.value
        if "gift" in order:
            raise Reject("there is nothing to charge")
        if "nobody" in order or ("lamp" in order and tup.attempt == 1):
            raise ConnectionError("the bank does not answer")
        out.emit(f"charged: {order} (attempt {tup.attempt})")


def consume(broker: Broker | None = None) -> Topology:
    """Charge for the orders that a broker holds."""
    topology = Topology("broker", max_spout_pending=10)
    orders = topology.spout("orders", Queue(broker or Broker(ORDERS)))
    charged = topology.bolt("charge", Charge, orders.shuffle(), parallelism=2)
    topology.bolt("print", print, charged.shuffle())
    return topology
