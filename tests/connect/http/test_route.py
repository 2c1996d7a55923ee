"""A route that answers with the outcome of a tree, over real sockets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
import uvicorn

from stormlet import Reject, Running, Topology
from stormlet.connect import http
from stormlet.connect.http.idempotency import KeyReused, Remembered
from stormlet.connect.secrets import Secret
from tests.connect.sessions import until

pytestmark = pytest.mark.asyncio


class Order(msgspec.Struct, frozen=True):
    """A body."""

    shop: str
    seconds: float = 0.0


class Shop:
    """A topology behind a route, served on loopback."""

    def __init__(self, **options: Any) -> None:
        self.topology = Topology("shop", max_spout_pending=5, message_timeout=4.0, replay_delay=0.01)
        self.orders = self.topology.spout("orders", outputs=Order)
        self.receipts = self.topology.bolt("sell", self.sell, self.orders.shuffle(), concurrency=5)
        self.sold = Counter[str]()
        self.opens = asyncio.Event()
        """Orders of the shop ``shut`` wait for it."""
        given = {"collect": self.receipts, **options}
        self.route = http.Route[Order](self.orders, as_=Order, **given)

    async def sell(self, order: Order) -> Any:
        self.sold[order.shop] += 1
        await asyncio.sleep(order.seconds)
        if order.shop == "shut":
            await self.opens.wait()
        if order.shop == "closed":
            raise Reject("the shop is closed")
        if order.shop == "broken" or (order.shop == "once" and self.sold["once"] == 1):
            raise ValueError("a secret of the code")
        return object() if order.shop == "odd" else f"receipt of {order.shop}"

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[tuple[Running, httpx.AsyncClient]]:
        config = uvicorn.Config(self.route, port=0, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        task = asyncio.create_task(server._serve())
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        try:
            async with (
                httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client,
                self.topology.run() as running,
            ):
                with self.route.serving(running):
                    yield running, client
        finally:
            server.should_exit = True
            await task


@pytest_asyncio.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    async with Shop().served() as (_, client):
        yield client


@pytest.mark.parametrize(
    ("body", "status", "answer"),
    [
        ('{"shop": "a"}', 200, ["receipt of a"]),
        ('{"shop": "closed"}', 422, {"problem": "the shop is closed"}),
        ('{"shop": "broken"}', 500, {"problem": "failed in sell"}),
        ('{"shop": "slow", "seconds": 9}', 504, {"problem": "not done in time"}),
        ("{no json", 400, None),
        ('{"shop": 7}', 400, {"problem": "Expected `str`, got `int` - at `$.shop`"}),
        ("x" * 1_100_000, 413, {"problem": "a body has at most 1,048,576 bytes"}),
    ],
)
async def test_the_answer_is_the_outcome(
    client: httpx.AsyncClient, body: str, status: int, answer: object
) -> None:
    """Of the tree; a client hears what a ``Reject`` says, and nothing else of the code."""
    response = await client.post("/", content=body, timeout=60)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    if answer is not None:
        assert response.json() == answer


async def test_only_posts_are_messages(client: httpx.AsyncClient) -> None:
    """The others are told so."""
    response = await client.get("/")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


async def test_a_body_without_a_length_is_bounded_too(client: httpx.AsyncClient) -> None:
    """It is not read to its end."""

    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(200):
            yield b"x" * 100_000

    response = await client.post("/", content=endless())
    assert response.status_code == 413


async def test_a_full_topology_says_when_to_come_again() -> None:
    """Five may be pending; what comes beyond is refused within ``patience``."""
    shop, refused = Shop(), list[int]()

    async def post(client: httpx.AsyncClient) -> httpx.Response:
        response = await client.post("/", json={"shop": "shut"})
        refused.append(response.status_code)
        return response

    async with shop.served() as (_, client):
        posting = asyncio.gather(*(post(client) for _ in range(8)))
        await until(lambda: len(refused) == 3)
        shop.opens.set()
        responses = await posting
    statuses = Counter(each.status_code for each in responses)
    assert statuses == {200: 5, 503: 3}
    assert {each.headers.get("retry-after") for each in responses} == {None, "1"}


async def test_before_and_after_a_run_it_is_not_ready() -> None:
    """And while the topology drains."""
    shop = Shop()
    async with shop.served() as (running, client):
        running.stop()
        assert (await client.post("/", json={"shop": "a"})).json() == {"problem": "stopping"}
        with shop.route.serving(running):
            pass
        response = await client.post("/", json={"shop": "a"})
        assert (response.status_code, response.json()) == (503, {"problem": "not ready"})
        assert response.headers["retry-after"] == "1"


async def test_a_message_may_have_several_attempts() -> None:
    """The client waits for the last one."""
    async with Shop(attempts=2).served() as (_, client):
        response = await client.post("/", json={"shop": "once"})
    assert (response.status_code, response.json()) == (200, ["receipt of once"])


async def test_without_collect_the_answer_has_no_values() -> None:
    """It is there when the tree is done all the same."""
    shop = Shop(collect=None)
    async with shop.served() as (_, client):
        response = await client.post("/", json={"shop": "a"})
    assert (response.status_code, shop.sold["a"]) == (200, 1)


async def test_a_key_is_one_message() -> None:
    """Also if its requests come at once; another body with it is refused."""
    shop, key = Shop(), {"Idempotency-Key": "k1"}
    async with shop.served() as (_, client):
        slow = {"shop": "a", "seconds": 0.2}
        at_once = await asyncio.gather(*(client.post("/", json=slow, headers=key) for _ in range(3)))
        later = await client.post("/", json=slow, headers=key)
        other = await client.post("/", json={"shop": "b"}, headers=key)
        long = await client.post("/", json={"shop": "b"}, headers={"Idempotency-Key": "k" * 256})
    assert [each.json() for each in (*at_once, later)] == [["receipt of a"]] * 4
    assert (other.status_code, long.status_code, shop.sold) == (422, 400, {"a": 1})


async def test_an_answer_that_is_none_is_not_remembered() -> None:
    """The same request may succeed later; a ``Reject`` may not."""
    shop = Shop()
    async with shop.served() as (_, client):
        for name, status in [("once", 500), ("once", 200), ("closed", 422), ("closed", 422)]:
            response = await client.post("/", json={"shop": name}, headers={"Idempotency-Key": name})
            assert response.status_code == status
    assert shop.sold == {"once": 2, "closed": 1}


async def test_values_without_a_json_form_are_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """The message is done, and may not run again: body and log say so, and whose values they are."""
    shop = Shop()
    async with shop.served() as (_, client):
        for _ in range(2):
            response = await client.post("/", json={"shop": "odd"}, headers={"Idempotency-Key": "k1"})
            assert (response.status_code, response.json()) == (
                200,
                {"problem": "done, but what sell sent has no JSON form"},
            )
    assert shop.sold["odd"] == 1
    (record,) = [each for each in caplog.records if each.name == "stormlet.connect"]
    assert record.getMessage().startswith("sell: what it sent has no JSON form")
    assert "objects of type object is unsupported" in record.getMessage()


async def test_a_client_that_leaves_does_not_end_its_tree() -> None:
    """Its next request gets the answer."""
    shop, key = Shop(), {"Idempotency-Key": "k1"}
    order = {"shop": "shut"}
    async with shop.served() as (_, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.post("/", json=order, headers=key, timeout=httpx.Timeout(20, read=0.1))
        await until(lambda: shop.sold["shut"])
        shop.opens.set()
        response = await client.post("/", json=order, headers=key)
    assert (response.status_code, shop.sold["shut"]) == (200, 1)


@pytest.mark.parametrize(("signed", "status"), [(b'{"shop":"a"}', 200), (b'{"shop":"b"}', 401), (None, 401)])
async def test_a_request_must_be_signed(signed: bytes | None, status: int) -> None:
    """By the HMAC of its body, and with the secret; nothing is emitted otherwise."""
    secret = Secret("hunter2")
    shop = Shop(signature=http.Hmac(secret))
    headers = {}
    if signed is not None:
        headers["X-Hub-Signature-256"] = f"sha256={hmac.new(b'hunter2', signed, hashlib.sha256).hexdigest()}"
    async with shop.served() as (_, client):
        response = await client.post("/", content=b'{"shop":"a"}', headers=headers)
    assert (response.status_code, shop.sold.total()) == (status, status == 200)
    assert "hunter2" not in repr(http.Hmac(secret))


async def test_the_oldest_answers_are_forgotten() -> None:
    """Beyond so many; those under way are kept."""
    calls = list[str]()
    remembered = Remembered[str](2, lambda answer: True)

    async def ask(key: str) -> str:
        async def work() -> str:
            calls.append(key)
            return key

        return await remembered.answer(key, b"", work)

    for key in ("a", "b", "c", "c", "b", "a"):
        assert await ask(key) == key
    await asyncio.sleep(0)
    assert (calls, len(remembered)) == (["a", "b", "c", "a"], 2)
    with pytest.raises(KeyReused):
        await remembered.answer("a", b"another", lambda: ask("x"))


async def test_a_caller_that_is_cancelled_leaves_the_work_to_others() -> None:
    """A server may cancel it when its client leaves."""
    remembered, gate, calls = Remembered[str](2, lambda answer: True), asyncio.Event(), list[str]()

    async def work() -> str:
        calls.append("begun")
        await gate.wait()
        return "done"

    first = asyncio.create_task(remembered.answer("a", b"", work))
    await asyncio.sleep(0)
    second = asyncio.create_task(remembered.answer("a", b"", work))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert (await second, calls, first.cancelled()) == ("done", ["begun"], True)
