"""A spout over a broker that redelivers, as RabbitMQ does: the broker keeps every message until its tree is acked.

An acked tree acks the delivery, a failed one gives it back (nack), and ``Reject`` sends it to the dead letters at
once. The prefetch is ``max_spout_pending``, so the broker never has more under way than the topology takes. The broker
counts deliveries and dead-letters a message that fails too often.

Guaranteed: every message is processed completely at least once or is among the broker's dead letters, also if this
process dies, as the broker then delivers again what was not acked. What may have been done before comes with
``redelivered`` set.

A read from a network that is cancelled may have taken a message, which nobody gets then. An async ``next_tuple`` is
cancelled whenever an outcome must be delivered (law S7), so the reading is done by a task that nobody cancels before
the end: it fills a buffer, which ``next_tuple``, a plain function, empties. For a real broker, replace ``Channel``: the
reader iterates over a queue of aio-pika, say, and ``ack`` and ``fail`` may be async.

::

    python -m stormlet run examples/recipes/broker.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import cast

import msgspec

from stormlet import EndOfStream, Failure, Reject, Spout, SpoutCollector, TaskContext, Topology

ORDERS = ["table", "lamp", "gift", "chair for nobody", "carpet", "second lamp"]
LATENCY = 0.001
"""Seconds that a delivery is on its way."""


class Delivery(msgspec.Struct, frozen=True):
    """A message on its way to a consumer."""

    tag: int
    """What this delivery is acked by; a redelivery has a new one."""
    body: str
    number: int = 1
    """Which delivery of its message it is."""

    @property
    def redelivered(self) -> bool:
        """Whether the message was delivered before, and may have been processed."""
        return self.number > 1


class Broker:
    """A queue in memory, with the rules of RabbitMQ's quorum queues."""

    def __init__(self, bodies: Iterable[str], delivery_limit: int = 3) -> None:
        self.ready = deque((body, 0) for body in bodies)
        self.dead_letters: list[str] = []
        self.acked: list[str] = []
        self._delivery_limit = delivery_limit
        self._last_tag = 0

    def deliver(self) -> Delivery:
        """The next message."""
        body, deliveries = self.ready.popleft()
        self._last_tag += 1
        return Delivery(self._last_tag, body, deliveries + 1)

    def ack(self, delivery: Delivery) -> None:
        """Forget the message."""
        self.acked.append(delivery.body)

    def nack(self, delivery: Delivery, *, requeue: bool) -> None:
        """Queue the message again, or dead-letter it."""
        if requeue and delivery.number < self._delivery_limit:
            self.ready.append((delivery.body, delivery.number))
        else:
            self.dead_letters.append(delivery.body)


class Channel:
    """A consumer's connection to a broker."""

    def __init__(self, broker: Broker, prefetch: int | None) -> None:
        self.unacked: dict[int, Delivery] = {}
        self._broker = broker
        self._prefetch = prefetch
        self._changed = asyncio.Event()

    async def get(self) -> Delivery | None:
        """The next delivery, or None when all messages are settled. If it is cancelled, one that was on its way is lost
        until the channel is closed."""
        while not self._broker.ready or len(self.unacked) == self._prefetch:
            if not self._broker.ready and not self.unacked:
                return None
            self._changed.clear()
            await self._changed.wait()
        delivery = self._broker.deliver()
        self.unacked[delivery.tag] = delivery
        await asyncio.sleep(LATENCY)
        return delivery

    def ack(self, tag: int) -> None:
        """This delivery is done. Of those of a lost connection nothing is known: their messages are queued again."""
        if tag in self.unacked:
            self._broker.ack(self.unacked.pop(tag))
            self._changed.set()

    def nack(self, tag: int, *, requeue: bool) -> None:
        """This delivery has failed."""
        if tag in self.unacked:
            self._broker.nack(self.unacked.pop(tag), requeue=requeue)
            self._changed.set()

    def close(self) -> None:
        """What was delivered and not acked is queued again, as after a lost connection."""
        while self.unacked:
            _, delivery = self.unacked.popitem()
            self._broker.ready.appendleft((delivery.body, delivery.number))


class Consumer(Spout[Delivery]):
    """Emits what the broker delivers, and reports the outcomes to it."""

    channel: Channel
    reader: asyncio.Task[None]

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.buffer: list[Delivery] = []

    def open(self, context: TaskContext, out: SpoutCollector[Delivery]) -> None:
        """Connect, and begin to read."""
        self.channel = Channel(self.broker, prefetch=context.config.max_spout_pending)
        self.reader = asyncio.create_task(self.read(out))
        self.reader.add_done_callback(lambda _: out.wake())

    async def read(self, out: SpoutCollector[Delivery]) -> None:
        """Keep what is delivered until it is asked for: never more than the prefetch."""
        while (delivery := await self.channel.get()) is not None:
            self.buffer.append(delivery)
            out.wake()

    def next_tuple(self, out: SpoutCollector[Delivery]) -> None:
        """Emit what was read, each under its tag."""
        deliveries, self.buffer = self.buffer, []
        out.emit_many(deliveries, message_ids=[each.tag for each in deliveries])
        if self.reader.done() and not deliveries:
            self.reader.result()  # raises what has ended it
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        """The whole tree is done."""
        self.channel.ack(cast("int", message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        """Let the broker deliver it again, unless that cannot help."""
        self.channel.nack(cast("int", message_id), requeue=not failure.permanent)

    async def close(self) -> None:
        """Disconnect, and report. What was read and not emitted is queued again with what was not acked."""
        self.reader.cancel()
        await asyncio.wait([self.reader])
        self.channel.close()
        print(
            f"acked {len(self.broker.acked)}, left {len(self.broker.ready)}, dead {self.broker.dead_letters}"
        )


def charge(delivery: Delivery) -> str:
    """Charge for an order; the bank often does not answer at first, and never for a lost customer."""
    if "gift" in delivery.body:
        raise Reject("there is nothing to charge")
    if "nobody" in delivery.body or ("lamp" in delivery.body and not delivery.redelivered):
        raise ConnectionError("the bank does not answer")
    return f"charged: {delivery.body} (delivery {delivery.number})"


def consume(broker: Broker | None = None) -> Topology:
    """Charge for the orders that a broker holds."""
    topology = Topology("broker", max_spout_pending=10)
    deliveries = topology.spout("orders", partial(Consumer, broker or Broker(ORDERS)))
    charged = topology.bolt("charge", charge, deliveries.shuffle(), parallelism=2)
    topology.bolt("print", print, charged.shuffle())
    return topology
