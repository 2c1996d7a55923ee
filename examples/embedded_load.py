"""Load the embedded service on loopback with more and more clients, and print what they see.

::

    python -m examples.embedded_load
    python -m examples.embedded_load 10 100 1000    # clients

Every client sends a request, waits for its answer and sends the next one; after a 503 it pauses for a second, as it is
told. Each request is one lookup of 50 ms, and 20 may be under way, so 400 per second are all the service can do.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socket import create_server
from statistics import quantiles
from urllib.request import urlopen

import aiohttp
import msgspec

from examples.embedded import CATALOGUE, Basket, Item, Line, Quote

CLIENTS = (1, 10, 50, 100, 200, 400)
SECONDS = 4.0
"""How long each number of clients goes on."""


@dataclass(frozen=True)
class Answer:
    """What a client saw of one request."""

    status: int
    seconds: float
    right: bool
    """Whether it is the answer to the question."""


async def load(url: str, clients: int, seconds: float) -> Sequence[Answer]:
    """Have so many clients send requests for so long."""
    end = asyncio.get_running_loop().time() + seconds
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=connector) as http:
        answers = await asyncio.gather(*(client(http, number, end) for number in range(clients)))
    return [each for some in answers for each in some]


async def client(http: aiohttp.ClientSession, number: int, end: float) -> Sequence[Answer]:
    """One client: no two of its requests are the same, nor are those of two clients."""
    loop = asyncio.get_running_loop()
    names = list(CATALOGUE)
    answers: list[Answer] = []
    while (began := loop.time()) < end:
        item = Item(names[number % len(names)], 1 + number + 10_000 * len(answers))
        async with http.post("/quotes", data=msgspec.json.encode(Basket([item]))) as response:
            body = await response.read()
        seconds = loop.time() - began
        answers.append(Answer(response.status, seconds, response.status == 200 and is_right(body, item)))
        if response.status == 503:
            await asyncio.sleep(float(response.headers["Retry-After"]))
    return answers


def is_right(body: bytes, item: Item) -> bool:
    """Whether a quote has exactly this item, at its price."""
    cents = item.quantity * CATALOGUE[item.name]
    return msgspec.json.decode(body, type=Quote) == Quote([Line(item.name, item.quantity, cents)], cents)


@contextmanager
def serving() -> Generator[str]:
    """The service in a process of its own."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "examples.embedded:app", "--port", str(port)]
    with subprocess.Popen([*command, "--log-level", "warning"]) as service:
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/ready")
            yield f"http://127.0.0.1:{port}"
        finally:
            service.terminate()


def wait_until_ready(url: str) -> None:
    """As a load balancer does."""
    for _ in range(100):
        with suppress(OSError), urlopen(url) as response:
            if response.status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("the service does not become ready")


def row(clients: int, answers: Sequence[Answer], seconds: float) -> str:
    """A line of the table."""
    quotes = sorted(each.seconds for each in answers if each.status == 200)
    refused = sorted(each.seconds for each in answers if each.status == 503)
    counts = Counter(each.status for each in answers)
    others = sum(counts.values()) - counts[200] - counts[503]
    wrong = sum(not each.right for each in answers if each.status == 200)
    return (
        f"{clients:7,} {len(quotes) / seconds:10,.0f}"
        f" {percentile(quotes, 50):8.0f} {percentile(quotes, 99):8.0f}"
        f" {len(refused) / seconds:10,.0f} {percentile(refused, 99):8.0f} {others + wrong:7,}"
    )


def percentile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    return quantiles(seconds, n=100)[percent - 1] * 1000 if len(seconds) > 1 else float("nan")


def main(clients: Sequence[int]) -> None:
    """Measure and print."""
    print("clients   quotes/s   p50 ms   p99 ms   refused/s   p99 ms   wrong")
    with serving() as url:
        for each in clients:
            print(row(each, asyncio.run(load(url, each, SECONDS)), SECONDS), flush=True)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or CLIENTS)
