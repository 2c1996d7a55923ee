"""The example of a service with a topology inside, under load and in all its failures."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import httpx
import msgspec
import pytest
import uvicorn

from examples.embedded import CATALOGUE, PATIENCE, Basket, Item, Quotes
from examples.embedded_load import Answer, load
from stormlet import Topology, TopologyCrashed
from tests.cast import ignore
from tests.helpers import now

ROOT = Path(__file__).parents[2]
LAMPS = Basket([Item("lamp", 2)])


# Under load: real time and real connections are the subject.


@contextmanager
def served(quotes: Quotes, loop: str = "auto") -> Generator[str]:
    """The service on loopback, in a thread of its own; stopped as by SIGTERM."""
    config = uvicorn.Config(quotes.app, port=0, loop=loop, lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


class Catalogue:
    """Looks prices up, and counts."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lookups = 0

    async def look_up(self, name: str) -> int:
        """One price."""
        self.lookups += 1
        await asyncio.sleep(self.seconds)
        return CATALOGUE[name]


def check_accounts(quotes: Quotes, catalogue: Catalogue, accepted: int) -> None:
    """Whether the topology has done exactly what was answered with a quote, and nothing is left."""
    baskets = quotes.running.statistics().components["baskets"]
    assert (baskets.emitted, baskets.acked, baskets.failed) == (accepted, accepted, 0)
    assert (baskets.pending, baskets.left_over) == (0, 0)
    assert catalogue.lookups == accepted
    assert quotes.running.health().state.value == "stopped"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_every_request_gets_its_own_answer(loop: str) -> None:
    """Fifty clients at once get quotes alone, each for what it asked; every tree is acked, and nothing is left."""
    catalogue = Catalogue(0.001)
    quotes = Quotes(catalogue.look_up)
    with served(quotes, loop) as url:
        answers = asyncio.run(load(url, clients=50, seconds=3.0))
    assert len(answers) > 50  # some clients have asked again; a slow machine answers no more in that time
    assert [each for each in answers if each.status != 200 or not each.right] == []
    check_accounts(quotes, catalogue, len(answers))


def test_what_is_too_much_is_refused_at_once_and_the_rest_is_answered_in_time() -> None:
    """With 150 clients for 20 places, requests are answered or refused within a fraction of what a queue of all
    of them would take, in one round of five, as a busy machine takes time, too; none is lost, and none is both refused
    and done."""
    assert any(is_in_time(overloaded()) for _ in range(5))


def overloaded() -> Sequence[Answer]:
    """What the clients get."""
    catalogue = Catalogue(0.2)
    quotes = Quotes(catalogue.look_up, max_pending=20)  # 100 per second: 150 clients in line would take 1.5 s
    with served(quotes) as url:
        answers = asyncio.run(load(url, clients=150, seconds=3.0))
    statuses = Counter(each.status for each in answers)
    assert statuses.keys() == {200, 503}
    assert all(each.right for each in answers if each.status == 200)
    check_accounts(quotes, catalogue, statuses[200])
    return answers


def is_in_time(answers: Sequence[Answer]) -> bool:
    """True if there are many of each kind, and none of them waits as in a queue."""
    done, refused = seconds_of(answers, 200), seconds_of(answers, 503)
    assert min(done) >= 0.2
    assert min(refused) >= PATIENCE
    return min(len(done), len(refused)) >= 100 and max(median(done), median(refused)) < 0.7


def seconds_of(answers: Sequence[Answer], status: int) -> list[float]:
    """How long the requests took that got this status."""
    return [each.seconds for each in answers if each.status == status]


def test_what_is_under_way_at_the_end_is_answered() -> None:
    """Requests that have been accepted when the server is stopped get their quotes before it ends."""
    catalogue = Catalogue(0.5)
    quotes = Quotes(catalogue.look_up)
    answers: list[httpx.Response] = []

    def ask(url: str) -> None:
        body = msgspec.json.encode(LAMPS)
        answers.append(httpx.post(f"{url}/quotes", content=body, trust_env=False, timeout=60))

    with served(quotes) as url:
        clients = [Thread(target=ask, args=[url]) for _ in range(10)]
        for client in clients:
            client.start()
        while catalogue.lookups < 10:
            time.sleep(0.01)
    for client in clients:
        client.join(60)
    assert [each.status_code for each in answers] == [200] * 10
    check_accounts(quotes, catalogue, 10)


# A crash ends the service.

CRASHING = """
import asyncio
from examples.embedded import Quotes

class Broken(BaseException):
    pass

async def look_up(name):
    if name == "broken":
        raise Broken("no way out")
    await asyncio.Event().wait()

app = Quotes(look_up, timeout=60.0).app
"""


def test_a_crash_answers_what_is_under_way_and_ends_the_process(tmp_path: Path) -> None:
    """After a crash waiting requests get 503, the log says what crashed, and the process ends as by SIGTERM."""
    (tmp_path / "crashing.py").write_text(CRASHING)
    command = [sys.executable, "-m", "uvicorn", "crashing:app", "--port", "0", "--app-dir", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as service:
        try:
            log, url = read_address(service)
            statuses = asyncio.run(crash(url))
            log += service.communicate(timeout=60)[1]
        finally:
            service.kill()
    assert statuses == [503] * 4
    assert "topology 'quotes' crashed: execute of price[0] raised Broken('no way out')" in log
    assert service.returncode == -signal.SIGTERM


def read_address(service: subprocess.Popen[str]) -> tuple[str, str]:
    """What the server says until it serves, and where that is."""
    assert service.stderr is not None
    log = ""
    for line in service.stderr:
        log += line
        if found := re.search(r"running on (http://\S+)", line):
            return log, found[1]
    raise AssertionError(log)


async def crash(url: str) -> list[int]:
    """The statuses of three requests that wait, and of the one that crashes the topology."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        waiting = [asyncio.create_task(post(http, LAMPS)) for _ in range(3)]
        while (await http.get("/ready")).json()["pending"] < 3:
            pass
        waiting.append(asyncio.create_task(post(http, Basket([Item("broken", 1)]))))
        return [(await each).status_code for each in waiting]


async def post(http: httpx.AsyncClient, basket: object) -> httpx.Response:
    """Ask for a quote."""
    return await http.post("/quotes", content=msgspec.json.encode(basket))


# Every outcome as HTTP, on simulated time.


@asynccontextmanager
async def client_of(quotes: Quotes) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the service in this loop, without a server between them."""
    transport = httpx.ASGITransport(quotes.app)
    async with (
        quotes.lifespan(quotes.app),
        httpx.AsyncClient(transport=transport, base_url="http://here") as http,
    ):
        yield http


async def never(name: str) -> int:
    """A lookup without an answer."""
    await asyncio.Event().wait()
    return 0


@pytest.mark.simulated_time
async def test_a_quote_has_all_its_lines() -> None:
    """A basket of several items is priced as a whole, and an empty one too."""
    async with client_of(Quotes()) as http:
        response = await post(http, Basket([Item("lamp", 2), Item("chair", 4)]))
        empty = await post(http, Basket([]))
    body = response.json()
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert sorted(line["name"] for line in body["lines"]) == ["chair", "lamp"]
    assert body["cents"] == 2 * 35_00 + 4 * 80_00
    assert (empty.status_code, empty.json()) == (200, {"lines": [], "cents": 0})


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'{"items": [{"name": "lamp", "quantity": 0}]}', b"\xff"]
)
async def test_what_is_no_basket_is_a_bad_request(body: bytes) -> None:
    """A body that cannot be read gets 400 with the reason, and reaches no topology."""
    quotes = Quotes()
    async with client_of(quotes) as http:
        response = await http.post("/quotes", content=body)
    assert response.status_code == 400
    assert response.json()["problem"]
    assert quotes.running.statistics().components["baskets"].emitted == 0


@pytest.mark.simulated_time
async def test_what_a_bolt_rejects_can_never_succeed() -> None:
    """An item that does not exist gets 422, and the client is told which."""
    async with client_of(Quotes()) as http:
        response = await post(http, Basket([Item("lamp", 1), Item("unicorn", 1)]))
    assert (response.status_code, response.json()) == (422, {"problem": "there is no 'unicorn' to buy"})


@pytest.mark.simulated_time
async def test_an_error_of_a_bolt_is_an_error_of_the_service() -> None:
    """An exception in a bolt gets 500 that names the bolt, and tells the client nothing of the exception."""

    async def broken(name: str) -> int:
        raise ConnectionError("password=secret")

    async with client_of(Quotes(broken)) as http:
        response = await post(http, LAMPS)
    assert (response.status_code, response.json()) == (500, {"problem": "failed in price"})


@pytest.mark.simulated_time
async def test_a_tree_that_takes_too_long_is_a_timeout() -> None:
    """Without an answer within the message timeout the client gets 504, after that time and half of it at most."""
    async with client_of(Quotes(Catalogue(20.0).look_up, timeout=5.0)) as http:
        response = await post(http, LAMPS)
        assert 5.0 <= now() <= 7.5
    assert (response.status_code, response.json()) == (504, {"problem": "not done in time"})


@pytest.mark.simulated_time
async def test_what_finds_no_room_is_refused_after_50_ms() -> None:
    """When all places are taken, the next request gets 503 with Retry-After in 50 ms, and is never emitted."""
    quotes = Quotes(Catalogue(1.0).look_up, max_pending=2)
    async with client_of(quotes) as http:
        taken = [asyncio.create_task(post(http, LAMPS)) for _ in range(2)]
        await asyncio.sleep(0.5)
        response = await post(http, LAMPS)
        assert now() == pytest.approx(0.55)
        assert (response.status_code, response.json()) == (503, {"problem": "overloaded"})
        assert response.headers["Retry-After"] == "1"
        assert [(await each).status_code for each in taken] == [200, 200]
        assert (await post(http, LAMPS)).status_code == 200
    assert quotes.running.statistics().components["baskets"].emitted == 3


@pytest.mark.simulated_time
async def test_while_it_drains_new_requests_are_refused_and_old_ones_answered() -> None:
    """A topology that stops makes the service unready, refuses what comes and what waits, and finishes the rest."""
    quotes = Quotes(Catalogue(1.0).look_up, max_pending=1)
    async with client_of(quotes) as http:
        assert await readiness(http) == (200, "running")
        accepted = asyncio.create_task(post(http, LAMPS))
        await asyncio.sleep(0.5)
        waiting = asyncio.create_task(post(http, LAMPS))
        await asyncio.sleep(0.01)
        quotes.running.stop()
        assert (await waiting).json() == {"problem": "stopping"}
        assert await readiness(http) == (503, "draining")
        late = await post(http, LAMPS)
        assert (late.status_code, late.json()) == (503, {"problem": "stopping"})
        assert (await accepted).status_code == 200
    assert await readiness(http_of(quotes)) == (503, "stopped")


def http_of(quotes: Quotes) -> httpx.AsyncClient:
    """A client of a service whose lifespan is over."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(quotes.app), base_url="http://here")


async def readiness(http: httpx.AsyncClient) -> tuple[int, str]:
    """What a probe sees."""
    response = await http.get("/ready")
    return response.status_code, response.json()["state"]


@pytest.mark.simulated_time
async def test_a_crash_makes_it_unready_and_interrupts_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a crash the probe and all requests get 503, those under way too, and SIGTERM is raised once."""
    signals: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", signals.append)

    class Broken(BaseException):
        """Crashes the topology."""

    async def look_up(name: str) -> int:
        if name == "broken":
            raise Broken
        return await never(name)

    quotes = Quotes(look_up)
    http = http_of(quotes)
    requests: list[asyncio.Task[httpx.Response]] = []

    async def serve() -> None:
        async with quotes.lifespan(quotes.app):
            requests.extend(asyncio.create_task(post(http, LAMPS)) for _ in range(3))
            await asyncio.sleep(1)
            requests.append(asyncio.create_task(post(http, Basket([Item("broken", 1)]))))
            await asyncio.Event().wait()

    with pytest.raises(TopologyCrashed):
        await serve()
    responses = [await each for each in requests]
    assert [each.status_code for each in responses] == [503] * 4
    assert {each.json()["problem"] for each in responses} == {"interrupted"}
    assert now() == 1.0
    assert await readiness(http) == (503, "crashed")
    assert (await post(http, LAMPS)).json() == {"problem": "stopping"}
    assert signals == [signal.SIGTERM]


# A waiting emit that is cancelled.


class Value:
    """A value that can be watched."""


FULL: dict[str, dict[str, int | None]] = {
    "no place": {"max_spout_pending": 1},
    "a full queue": {"max_spout_pending": None, "queue_capacity": 1},
}


@pytest.mark.simulated_time
@pytest.mark.parametrize("full", FULL)
async def test_emits_that_are_cancelled_while_they_wait_leave_nothing(full: str) -> None:
    """Of a thousand emits that give up waiting, neither values nor tasks nor messages stay behind."""
    go_on = asyncio.Event()
    values: list[weakref.ref[Value]] = []

    async def wait(value: object) -> None:
        await go_on.wait()

    topology = Topology("full", message_timeout=None, **FULL[full])
    spout = topology.spout("spout")
    waited = topology.bolt("wait", wait, spout.shuffle())
    async with topology.run() as running:
        accepted = [await running.emit(spout, 1)]
        await asyncio.sleep(1)
        while running.health().pending < (1 if full == "no place" else 2):
            accepted.append(await running.emit(spout, 1))

        async def give_up() -> None:
            value = Value()
            values.append(weakref.ref(value))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await running.emit(spout, value, collect=waited)

        tasks_before = len(asyncio.all_tasks())
        await asyncio.gather(*(give_up() for _ in range(500)))
        for _ in range(500):
            await give_up()
        await asyncio.sleep(1)  # asyncio keeps the last cancellation until this task is suspended again
        assert len(asyncio.all_tasks()) == tasks_before
        gc.collect()
        assert [value for value in values if value() is not None] == []
        assert running.health().pending == len(accepted)
        bolt = running._tasks.all_bolts[0]  # pyright: ignore[reportPrivateUsage] - memory has no public face
        assert len(bolt.inbox._waiting) <= 1  # pyright: ignore[reportPrivateUsage]
        go_on.set()
        await running.emit(spout, 1)
    assert running.statistics().components["spout"].emitted == len(accepted) + 1


@pytest.mark.simulated_time
@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.1])
async def test_an_emit_is_given_up_or_done_and_never_both(seconds: float) -> None:
    """Where room comes in the moment in which an emit gives up, each emit has either a tree or a TimeoutError."""
    topology = Topology("ties", max_spout_pending=2)
    spout = topology.spout("spout")

    async def work(value: int) -> None:
        await asyncio.sleep(seconds)

    topology.bolt("work", work, spout.shuffle(), concurrency=2)
    given_up = 0
    trees: list[Any] = []
    async with topology.run() as running:

        async def emit(number: int) -> None:
            nonlocal given_up
            await asyncio.sleep(number % 7 * 0.01)
            try:
                async with asyncio.timeout(0.05):
                    trees.append(await running.emit(spout, number))
            except TimeoutError:
                given_up += 1

        await asyncio.gather(*(emit(number) for number in range(200)))
        for tree in trees:
            await tree
        assert running.health().pending == 0
    assert given_up > 0
    assert len(trees) + given_up == 200
    assert running.statistics().components["spout"].acked == len(trees)


@pytest.mark.simulated_time
async def test_an_emit_that_gives_up_does_not_hold_up_the_next() -> None:
    """Room that comes after the first in line has given up goes to the second."""
    topology = Topology("line", max_spout_pending=1)
    spout = topology.spout("spout")
    topology.bolt("sleep", lambda value: asyncio.sleep(1), spout.shuffle())
    topology.bolt("ignore", ignore, spout.shuffle())
    async with topology.run() as running:
        await running.emit(spout, 1)
        first = asyncio.create_task(running.emit(spout, 2))
        second = asyncio.create_task(running.emit(spout, 3))
        await asyncio.sleep(0.5)
        first.cancel()
        await (await second)
        assert now() == pytest.approx(2.0)
        assert first.cancelled()
