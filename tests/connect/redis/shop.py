"""A topology over Redis Streams that tests kill: each order becomes an entry of the stream ``done``.

::

    python -m tests.connect.redis.shop URL STREAM [LEASE]
"""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec

from stormlet import Topology
from stormlet.connect import redis

PENDING = 200


class Order(msgspec.Struct, frozen=True):
    """One order."""

    id: int


def shop(url: str, stream: str, lease: float = 5.0) -> Topology:
    """Bring orders from one stream to another."""
    topology = Topology("shop", max_spout_pending=PENDING)
    orders = topology.spout("orders", redis.Stream(url, stream, group="g", as_=Order, lease=lease))
    priced = topology.bolt("price", price, orders.shuffle())
    topology.bolt("tell", redis.Add[Order](url, f"{stream}-done"), priced.shuffle())
    return topology


async def price(order: Order) -> Order:
    """Take a moment."""
    await asyncio.sleep(0)
    return order


async def main(url: str, stream: str, lease: float) -> None:
    """Run until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with shop(url, stream, lease).run():
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
