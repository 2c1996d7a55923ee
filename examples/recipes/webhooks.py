"""Webhooks: each request is a message, and its answer is the outcome.

The sender signs the body with a secret that both know, and names each event by an ``Idempotency-Key``. It gets 200 when
the whole tree is done, so that it may forget the event, and sends it again after 503 or 504.

Guaranteed: an event that was answered with 200 is done. One that is sent again while it is under way, or among the last
10,000, is the same message; after a restart it is done a second time, so that the work should be idempotent.

::

    WEBHOOK_SECRET=hunter2 uvicorn examples.recipes.webhooks:app
    body='{"shop": "lamps", "cents": 3500}'
    digest=$(printf %s "$body" | openssl dgst -sha256 -hmac hunter2 -r | cut -c-64)
    curl localhost:8000/orders/ -d "$body" -H "X-Hub-Signature-256: sha256=$digest" -H "Idempotency-Key: order-17"
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.routing import Mount

from stormlet import Reject, Topology
from stormlet.connect import http
from stormlet.connect.secrets import Secret


class Order(msgspec.Struct, frozen=True):
    """The body of a request."""

    shop: str
    cents: int


class Receipt(msgspec.Struct, frozen=True):
    """The body of an answer."""

    shop: str
    total: int


class Webhooks:
    """The topology, and the application around it."""

    app: Starlette

    def __init__(self, secret: Secret) -> None:
        self.totals = Counter[str]()
        self.topology = Topology("webhooks", max_spout_pending=100, message_timeout=10.0)
        self.orders = self.topology.spout("orders", outputs=Order)
        receipts = self.topology.bolt("charge", self.charge, self.orders.shuffle())
        self.route = http.Route(
            self.orders, as_=Order, collect=receipts, signature=http.Hmac(secret), attempts=3
        )
        self.app = Starlette(routes=[Mount("/orders", self.route)], lifespan=self.lifespan)

    def charge(self, order: Order) -> Receipt:
        """Add it up."""
        if order.cents <= 0:
            raise Reject(f"nobody is charged {order.cents} cents")
        self.totals[order.shop] += order.cents
        return Receipt(order.shop, self.totals[order.shop])

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        """The topology runs as long as the service; leaving the block drains it."""
        async with self.topology.run() as running:
            with self.route.serving(running):
                yield


app = Webhooks(Secret(os.environ.get("WEBHOOK_SECRET", "hunter2"))).app
