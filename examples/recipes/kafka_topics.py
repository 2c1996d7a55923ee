"""Take orders from a Kafka topic, and tell in another one what was charged.

Several of these may run, on one host or on many: as members of the group ``billing`` they share the partitions. One
that is killed with ``kill -9`` loses nothing: the others go on behind what it has committed. A charge that is there
twice by that has the same header ``stormlet-origin``.

This needs confluent-kafka (``pip install 'stormlet[cli,kafka]'``) and a Kafka. Orders come from a spout here, so that
there are some.

::

    docker run --rm -p 9092:9092 apache/kafka
    python -m stormlet run examples/recipes/kafka_topics.py --duration 10

Another address goes to ``--arg url=``, or, with a password, into ``STORMLET_CONNECT_ORDERS_URL``,
``STORMLET_CONNECT_PLACE_URL`` and ``STORMLET_CONNECT_TELL_URL``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from stormlet import Topology
from stormlet.connect import kafka


class Order(msgspec.Struct, frozen=True):
    """Something that somebody wants to buy."""

    what: str
    cents: int


class Charge(msgspec.Struct, frozen=True):
    """Something that the bank has agreed to."""

    what: str
    cents: int


def shop() -> Iterator[Order]:
    """Iterate over what people want."""
    yield from (Order("table", 12_000), Order("lamp", 3_500), Order("carpet", 25_000))


async def charge(order: Order) -> Charge:
    """Charge for an order."""
    await asyncio.sleep(0.01)  # the bank takes its time
    return Charge(order.what, order.cents)


def what(order: Order) -> str:
    """Return the key: orders of the same thing stay in their order."""
    return order.what


def charging(url: str = "kafka://127.0.0.1:9092") -> Topology:
    """Put orders into a topic, and charge for those that are there, until it is stopped."""
    topology = Topology("charging")
    place = kafka.Produce[Order](url, "orders", key=what, create=4)
    topology.bolt("place", place, topology.spout("shop", shop).shuffle())
    orders = kafka.Topics(url, ["orders"], group="billing", as_=Order, create=4)
    charges = topology.bolt("charge", charge, topology.spout("orders", orders).shuffle(), concurrency=50)
    topology.bolt("tell", kafka.Produce[Charge](url, "charges", create=4), charges.shuffle())
    return topology
