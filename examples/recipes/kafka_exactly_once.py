"""Take orders from the Kafka topic ``sales``, and write what each shop owes to another one, exactly once.

The positions of the partitions are in the file of the state, with the balance of each shop. The rows of an epoch go to
the topic ``balances`` in one transaction, with a note of the epoch, so that one which comes again is passed over. The
orders, which a spout brings here so that there are some, are written in the same way.

Guaranteed: each order counts once, and each balance is there once for who reads with
``isolation.level=read_committed``, also after ``kill -9`` at any moment and when the broker is killed. While it is
away, the committers are restarted, at most 50 times in ten minutes, and the sources wait.

This needs confluent-kafka (``pip install 'stormlet[cli,kafka]'``) and a Kafka. Kill the second command as often as you
like, and start it again.

::

    docker run --rm -p 9092:9092 apache/kafka
    python -m stormlet run examples/recipes/kafka_exactly_once.py --duration 10

Another address goes to ``--arg url=``, or, with a password, into ``STORMLET_CONNECT_ORDERS_URL``,
``STORMLET_CONNECT_PLACE_URL`` and ``STORMLET_CONNECT_WRITE_URL``. A new Kafka needs a new file of the state: remove
``balances.state``, or name another one with ``--state``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.connect import kafka


class Order(msgspec.Struct, frozen=True):
    """Something that a shop has sold."""

    number: int
    shop: str
    cents: int


class Balance(msgspec.Struct, frozen=True):
    """The sum of all orders of a shop up to this one."""

    shop: str
    order: int
    cents: int


def sales(count: int) -> Iterator[Order]:
    """Iterate over what ten shops sell."""
    for number in range(count):
        yield Order(number, f"shop {number * 7919 % 10}", number % 1000 + 100)


class Balancing(KeyedBolt[str, Order, Balance]):
    """Keeps the balance of each shop."""

    cents = Value(int, 0)

    def execute(self, tup: Tuple[Order], out: Collector[Balance]) -> None:
        """Add, and emit the balance."""
        order = tup.value
        self.cents += order.cents
        out.emit(Balance(order.shop, order.number, self.cents))


def shop(row: Order | Balance) -> str:
    """Return the key: those of one shop are in one partition, in their order."""
    return row.shop


def balances(url: str = "kafka://127.0.0.1:9092", count: int = 10_000) -> Topology:
    """Write orders to one topic and balances to another, until it is stopped."""
    topology = Topology("balances", state="balances.state")
    sold = topology.spout("sales", partial(sales, count))
    place = kafka.Commit(url, "sales", Order, key=shop, create=4)
    topology.bolt("place", place, sold.global_(), max_restarts=50, restart_window=600)
    source = kafka.Topics(url, ["sales"], group="balances", as_=Order, create=4)
    orders = topology.spout("orders", source)
    added = topology.bolt("balance", Balancing, orders.fields("shop"))
    write = kafka.Commit(url, "balances", Balance, key=shop, create=4)
    topology.bolt("write", write, added.global_(), max_restarts=50, restart_window=600)
    return topology
