"""Call HTTP for every message, up to 50 calls at a time, and retry by replay.

One client, and so one pool of connections, per task; ``concurrency=50`` bounds its calls. An answer that may be better
next time (a server error, 408, 425, 429, no answer at all) raises, and the message is replayed after a growing pause;
any other error is the request's own fault: ``Reject`` sends it to the dead letters at once.

Guaranteed: every message is answered with success or is a dead letter with the reason. A call may be made more than
once, so it should be idempotent.

::

    python -m stormlet run examples/recipes/http_calls.py
    python -m stormlet run examples/recipes/http_calls.py --arg missing=3    # dead letters, so exit code 1
"""

from __future__ import annotations

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import httpx
import msgspec

from stormlet import BasicBolt, Collector, Reject, TaskContext, Topology, Tuple

CONCURRENCY = 50
WORTH_A_RETRY = {408, 425, 429}


class Page(msgspec.Struct, frozen=True):
    """What was fetched."""

    path: str
    text: str


class Fetch(BasicBolt[str, Page]):
    """Gets paths of one host."""

    client: httpx.AsyncClient

    def __init__(self, url: str = "") -> None:
        self.url = url

    async def prepare(self, context: TaskContext) -> None:
        """Make the client; its timeout is well below the topology's ``message_timeout``."""
        limits = httpx.Limits(max_connections=CONCURRENCY)
        self.client = httpx.AsyncClient(base_url=self.url, limits=limits, timeout=5.0, trust_env=False)

    async def execute(self, tup: Tuple[str], out: Collector[Page]) -> None:
        """One call; ``httpx`` raises where there is no answer."""
        response = await self.client.get(tup.value)
        if not response.is_success:
            raise error_of(response)
        out.emit(Page(tup.value, response.text))

    async def cleanup(self) -> None:
        """Close its connections."""
        await self.client.aclose()


def error_of(response: httpx.Response) -> Exception:
    """What to raise for an answer that is none: ``Reject`` if it will be the same next time."""
    what = f"{response.url.path} answers {response.status_code} {response.reason_phrase}"
    retry = response.is_server_error or response.status_code in WORTH_A_RETRY
    return ConnectionError(what) if retry else Reject(what)


class Report(BasicBolt[Page, None]):
    """Counts the pages."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}

    def execute(self, tup: Tuple[Page], out: Collector[None]) -> None:
        """Take one page down; by its path, as it may come twice."""
        self.pages[tup.value.path] = tup.value.text

    def finish(self, out: Collector[None]) -> None:
        """All have come."""
        print(f"{len(self.pages)} pages fetched")


class Shop(BaseHTTPRequestHandler):
    """A server for this recipe alone: it is overloaded at the first call of every tenth page."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    calls: ClassVar = Counter[str]()

    def do_GET(self) -> None:
        """Answer one request."""
        self.calls[self.path] += 1
        overloaded = self.path.endswith("0") and self.calls[self.path] == 1
        status = 404 if self.path.startswith("/missing") else 503 if overloaded else 200
        body = f"page {self.path}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


class ShopServer(ThreadingHTTPServer):
    """Takes all connections at once."""

    request_queue_size = CONCURRENCY


class FetchFromShop(Fetch):
    """Starts and ends the server that it calls."""

    async def prepare(self, context: TaskContext) -> None:
        """Start the server on a free port."""
        self.server = ShopServer(("127.0.0.1", 0), Shop)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        await super().prepare(context)

    async def cleanup(self) -> None:
        """End the server."""
        await super().cleanup()
        self.server.shutdown()
        self.server.server_close()


def fetched(pages: int = 200, missing: int = 0) -> Topology:
    """Fetch so many pages of the recipe's own server, and so many that it does not have."""
    paths = [f"/{number}" for number in range(pages)] + [f"/missing/{number}" for number in range(missing)]
    topology = Topology("http-calls", message_timeout=30.0)
    fetched = topology.bolt(
        "fetch", FetchFromShop, topology.spout("paths", paths).shuffle(), concurrency=CONCURRENCY
    )
    topology.bolt("report", Report, fetched.global_())
    return topology
