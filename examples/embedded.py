"""A service with a topology inside: it prices baskets, one lookup per item, and answers when the whole tree is done.

::

    uvicorn examples.embedded:app
    curl localhost:8000/quotes -d '{"items": [{"name": "lamp", "quantity": 2}, {"name": "chair", "quantity": 4}]}'
    curl localhost:8000/ready

What becomes of a request, as HTTP:

======  ================================================================================================
200     every item was priced
400     the body is no basket
422     a bolt rejected it (``Reject``): the same request can never succeed
500     a bolt failed. Not 502: the bolts are part of this service, not a gateway's upstream
504     the message timeout passed
503     no verdict; it may be sent again, as a lookup may be repeated: there was no room within 50 ms, or the
        topology is stopping, or has stopped before the tree was done
======  ================================================================================================

``max_spout_pending`` bounds the requests under way, and so their latency: what comes beyond is refused at once instead
of waiting in line.

A crash of the topology makes the service unready at once and ends it: it cannot be repaired from inside, so requests
under way get their 503 and the process ends as after SIGTERM, for its supervisor to start a new one.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormlet import (
    Failure,
    FailureKind,
    Reject,
    Running,
    StartFailed,
    Topology,
    TopologyCrashed,
    TopologyStopping,
    TupleFailed,
)

PATIENCE = 0.05
"""Seconds that a request waits for room."""
LOOKUPS = 20
"""How many lookups are under way at a time."""
CATALOGUE = {"lamp": 35_00, "table": 149_00, "chair": 80_00, "carpet": 210_00}


class Item(msgspec.Struct, frozen=True):
    """So many of a thing."""

    name: str
    quantity: Annotated[int, msgspec.Meta(ge=1)]


class Basket(msgspec.Struct, frozen=True):
    """What is to be priced: the body of a request."""

    items: list[Item]


class Line(msgspec.Struct, frozen=True):
    """An item and what it costs."""

    name: str
    quantity: int
    cents: int


class Quote(msgspec.Struct, frozen=True):
    """The body of an answer; the lines come in the order in which they were priced."""

    lines: Sequence[Line]
    cents: int


async def look_up(name: str) -> int:
    """The price of one thing in cents; stands for a call of a database. Raises LookupError if it has none."""
    await asyncio.sleep(0.05)
    return CATALOGUE[name]


class Quotes:
    """The topology, and the HTTP around it."""

    app: Starlette
    running: Running

    def __init__(
        self, look_up: Callable[[str], Awaitable[int]] = look_up, max_pending: int = 100, timeout: float = 5.0
    ) -> None:
        self.look_up = look_up
        self.topology = Topology("quotes", max_spout_pending=max_pending, message_timeout=timeout)
        self.baskets = self.topology.spout("baskets", outputs=Basket)
        items = self.topology.bolt("items", self.items, self.baskets.shuffle())
        self.lines = self.topology.bolt("price", self.price, items.shuffle(), concurrency=LOOKUPS)
        self.app = Starlette(
            routes=[Route("/quotes", self.quote, methods=["POST"]), Route("/ready", self.ready)],
            lifespan=self.lifespan,
        )

    # The bolts.

    def items(self, basket: Basket) -> Iterator[Item]:
        """One basket in, many items out."""
        yield from basket.items

    async def price(self, item: Item) -> Line:
        """Price one item."""
        try:
            cents = await self.look_up(item.name)
        except LookupError:
            raise Reject(f"there is no {item.name!r} to buy") from None
        return Line(item.name, item.quantity, item.quantity * cents)

    # The service.

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        """The topology runs as long as the service; leaving the block drains it."""
        try:
            async with self.topology.run() as self.running:
                yield
        except StartFailed:
            raise  # the server has not started either
        except TopologyCrashed:
            signal.raise_signal(signal.SIGTERM)  # answer what is under way, then end
            raise

    async def quote(self, request: Request) -> Response:
        """Price a basket."""
        try:
            basket = msgspec.json.decode(await request.body(), type=Basket)
            async with asyncio.timeout(PATIENCE):
                tree = await self.running.emit(self.baskets, basket, collect=self.lines)
            lines = await tree
        except msgspec.DecodeError as error:
            return problem(400, str(error))
        except TimeoutError:
            return problem(503, "overloaded")
        except (TopologyStopping, TopologyCrashed):
            return problem(503, "stopping")
        except TupleFailed as error:
            return problem(*status_of(error.failure))
        return answer(200, Quote(lines, sum(line.cents for line in lines)))

    async def ready(self, request: Request) -> Response:
        """For the probe of a load balancer."""
        health = self.running.health()
        body = {"state": health.state.value, "pending": health.pending, "crash": health.crash}
        return answer(200 if health.ready else 503, body)


def status_of(failure: Failure) -> tuple[int, str]:
    """The status of a request whose tree failed, and what its client may know; the log knows all."""
    if failure.permanent:
        return 422, failure.reason
    match failure.kind:
        case FailureKind.FAILED:
            return 500, f"failed in {failure.component}"
        case FailureKind.TIMEOUT:
            return 504, "not done in time"
        case FailureKind.OVERFLOW | FailureKind.SHUTDOWN | FailureKind.TASK_LOST:
            return 503, "interrupted"


def problem(status: int, what: str) -> Response:
    """An answer without a quote; after 503 the same request may succeed a second later, perhaps elsewhere."""
    return answer(status, {"problem": what}, {"Retry-After": "1"} if status == 503 else {})


def answer(status: int, body: object, headers: dict[str, str] | None = None) -> Response:
    """A response in JSON."""
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


app = Quotes().app
