"""From a queue of RabbitMQ to an exchange of it.

``price`` takes orders from the queue ``orders``, and publishes their prices to the exchange ``prices``, each with its
shop as routing key. An order is acked when its price is confirmed. One that nobody can price is rejected, so that the
dead-letter exchange of the queue brings it to ``orders dead``.

Guaranteed: each order is priced at least once or among the dead letters, whatever is killed or cut. After such a
failure orders that were under way come again, and their prices are published twice: readers know them by the number.

This needs aiormq, ``pip install 'stormlet[cli,rabbitmq]'``, and a RabbitMQ, which ``apt-get install rabbitmq-server``
starts. The first command declares the queues and publishes four orders; the second works until Ctrl-C.

::

    python examples/recipes/rabbitmq.py
    python -m stormlet run examples/recipes/rabbitmq.py
"""

from __future__ import annotations

import asyncio
import sys

import aiormq
import msgspec

from stormlet import Reject, Topology
from stormlet.connect import rabbitmq

LOCAL = "amqp://guest:guest@localhost/"
CENTS = {"lamp": 4900, "table": 12000}


class Order(msgspec.Struct, frozen=True):
    """What somebody wants."""

    number: int
    shop: str
    article: str


class Price(msgspec.Struct, frozen=True):
    """What that costs."""

    number: int
    shop: str
    cents: int


def price(order: Order) -> Price:
    """The price of an order."""
    if order.article not in CENTS:
        raise Reject(f"nobody sells a {order.article}")
    return Price(order.number, order.shop, CENTS[order.article])


def shop_of(price: Price) -> str:
    """The routing key."""
    return price.shop


def prices(url: str = LOCAL) -> Topology:
    """The topology."""
    topology = Topology("prices", max_spout_pending=500)
    source = rabbitmq.Queue(url, "orders", as_=Order, rejects=True)
    sink = rabbitmq.Publish[Price](url, exchange="prices", routing_key=shop_of)
    orders = topology.spout("orders", source)
    priced = topology.bolt("price", price, orders.shuffle())
    topology.bolt("publish", sink, priced.shuffle())
    return topology


async def declare_and_order(url: str = LOCAL) -> None:
    """Declare what the topology reads and writes, and publish four orders. Usually somebody else has done so."""
    articles = ["lamp", "table", "gift", "lamp"]
    dead_letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders dead"}
    async with await aiormq.connect(url) as connection:
        channel = await connection.channel()
        await channel.queue_declare("orders dead", durable=True)
        await channel.queue_declare(
            "orders", durable=True, arguments={"x-queue-type": "quorum", **dead_letters}
        )
        await channel.exchange_declare("prices", exchange_type="topic", durable=True)
        await channel.queue_declare("prices", durable=True)
        await channel.queue_bind("prices", "prices", routing_key="#")
        for number, article in enumerate(articles, 1):
            order = Order(number, f"shop-{number % 2}", article)
            await channel.basic_publish(msgspec.json.encode(order), routing_key="orders")


if __name__ == "__main__":
    asyncio.run(declare_and_order(*sys.argv[1:]))
