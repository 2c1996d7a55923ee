"""Take orders from a Redis stream, and tell in another one what was charged.

Several of these may run, on one host or on many: as members of the group ``billing`` they share the orders. One that is
killed with ``kill -9`` loses nothing. What it had not acked it gets when it starts again, or the others get it when its
lease has run out; a charge that is there twice by that has the same ``origin``.

This needs redis-py (``pip install 'stormlet[cli,redis]'``), and a Redis or Valkey with an append-only file: without one
it may lose what it has said to have, and the log warns of that. Orders come from a spout here, so that there are some.

::

    redis-server --appendonly yes
    python -m stormlet run examples/recipes/redis_streams.py --duration 5

Another address goes to ``--arg url=``, or, with a password, into ``STORMLET_CONNECT_ORDERS_URL``,
``STORMLET_CONNECT_PLACE_URL`` and ``STORMLET_CONNECT_TELL_URL``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from stormlet import Topology
from stormlet.connect import redis


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


def charging(url: str = "redis://127.0.0.1:6379/0") -> Topology:
    """Put orders into a stream, and charge for those that are there, until it is stopped."""
    topology = Topology("charging")
    topology.bolt("place", redis.Add[Order](url, "orders"), topology.spout("shop", shop).shuffle())
    stream = redis.Stream(url, "orders", group="billing", as_=Order, create=True, trim="acked")
    charges = topology.bolt("charge", charge, topology.spout("orders", stream).shuffle(), concurrency=50)
    topology.bolt("tell", redis.Add[Charge](url, "charges", max_length=100_000), charges.shuffle())
    return topology
