"""Calls of a service, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from stormlet import DeadLetter, StartFailed, Topology, TopologyCrashed, TupleFailed
from stormlet.connect import http
from stormlet.connect.http.answers import LONGEST_WAIT, Meaning, meaning_of, seconds_of
from stormlet.connect.http.idempotency import key_of
from stormlet.connect.secrets import Secret
from stormlet.core.settlement.reconnects import ReconnectPolicy
from tests.brokers.processes import free_ports
from tests.connect.sessions import until

SOON = ReconnectPolicy(0.02, 0.2)
Decide = Callable[[str, int], "int | web.Response"]


class Service:
    """A service that notes what it gets, and answers as a test has it."""

    def __init__(self) -> None:
        self.answer: Decide = lambda body, time: 200
        self.calls = list[tuple[str, dict[str, str]]]()
        self.times = Counter[str]()
        self.most = self.at_once = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/orders"

    @property
    def bodies(self) -> list[str]:
        return [body for body, _ in self.calls]

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "HEAD":
            return web.Response(status=405)
        body = await request.text()
        self.times[body] += 1
        self.calls.append((body, {**request.headers, ":path": str(request.rel_url)}))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.002)
        self.at_once -= 1
        answer = self.answer(body, self.times[body])
        return answer if isinstance(answer, web.Response) else web.Response(status=answer, text="because")

    @asynccontextmanager
    async def served(self, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncGenerator[Service]:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()


class Sent:
    """A run that has sent all of some values."""

    def __init__(
        self, service: Service, values: list[Any], sink: http.Post[Any] | None = None, **more: Any
    ) -> None:
        self.letters = list[DeadLetter]()
        self.topology = Topology("sending", replay_delay=0.01)
        options: dict[str, Any] = {"reconnects": SOON, "timeout": 5.0, **more}
        made = http.Post[Any](service.url, **options) if sink is None else sink
        self.topology.bolt("tell", made, self.topology.spout("orders", values).shuffle())

    async def done(self) -> Sent:
        async with self.topology.run(dead_letters=self.letters.append) as running:
            async with asyncio.timeout(60):
                await running.finished()
            self.counts = running.statistics().components["orders"]
            self.connection = running.health().connections["tell[0]"]
        return self


@pytest_asyncio.fixture
async def service() -> AsyncGenerator[Service]:
    async with Service().served() as served:
        yield served


pytestmark = pytest.mark.asyncio


async def test_each_value_is_a_call(service: Service) -> None:
    """Its body is the value's JSON; up to 20 are under way at a time."""
    sent = await Sent(service, [{"number": number} for number in range(200)]).done()
    assert Counter(service.bodies) == Counter(f'{{"number":{number}}}' for number in range(200))
    assert 5 < service.most <= 20
    assert (sent.counts.acked, sent.connection.settled) == (200, 200)
    assert service.calls[0][1]["Content-Type"] == "application/json"


@pytest.mark.parametrize(("status", "times"), [(422, 1), (404, 1), (301, 1), (500, 15), (409, 15)])
async def test_a_call_that_fails_is_a_dead_letter(service: Service, status: int, times: int) -> None:
    """At once if it will at each attempt, else after three tries in each of five; others go on."""
    service.answer = lambda body, time: status if body == "3" else 200
    sent = await Sent(service, [1, 2, 3, 4]).done()
    (letter,) = sent.letters
    assert (letter.value, service.times["3"], sent.counts.acked) == (3, times, 3)
    assert f"answers {status}" in letter.failure.reason
    assert '"because"' in letter.failure.reason


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_service_that_is_away_pauses_the_sink(service: Service, status: int) -> None:
    """One call at a time is tried again, no message uses up an attempt, and health says so."""
    away, seen = True, list[tuple[str, str]]()
    service.answer = lambda body, time: status if away else 200
    sent = Sent(service, list(range(100)))
    async with sent.topology.run() as running:
        await until(lambda: not running.health().ready)
        there = running.health().connections["tell[0]"]
        seen.append((there.state.value, there.error))
        await asyncio.sleep(0.4)
        before = len(service.calls)
        await asyncio.sleep(0.6)
        assert len(service.calls) - before <= 6  # pauses have grown to 0.2 s
        away = False
        async with asyncio.timeout(60):
            await running.finished()
        seen.append((running.health().connections["tell[0]"].state.value, ""))
        counts = running.statistics().components["orders"]
    assert seen == [
        ("reconnecting", f'answers {status} {web.Response(status=status).reason}: "because"'),
        ("ready", ""),
    ]
    assert (counts.acked, counts.failed) == (100, 0)
    assert set(service.bodies) == {str(number) for number in range(100)}


async def test_a_limit_that_others_have_used_up_fails_no_message(service: Service) -> None:
    """Each has one attempt, however often it is told that there are too many (429) while others are taken."""
    answers = cycle([429, 429, 429, 200])
    service.answer = lambda body, time: next(answers)
    sent = await Sent(service, list(range(60))).done()
    assert max(service.times.values()) > 3
    assert (sent.counts.acked, sent.counts.failed, sent.letters) == (60, 0, [])


async def test_retry_after_is_heeded(service: Service) -> None:
    """By all calls, as it is the service that asks."""
    loop, calls = asyncio.get_running_loop(), list[float]()

    def answer(body: str, time: int) -> int | web.Response:
        calls.append(loop.time())
        return web.Response(status=429, headers={"Retry-After": "1"}) if len(calls) == 1 else 200

    service.answer = answer
    sent = await Sent(service, [1, 2], at_once=1).done()
    assert calls[1] - calls[0] > 0.95
    assert sent.counts.failed == 0


async def test_a_call_that_kills_the_service_holds_up_nobody(service: Service) -> None:
    """It gets no answer while others do, so that it is the message's fault, and in the end a dead letter."""
    topology, letters = Topology("sending", replay_delay=0.01, max_attempts=2), list[DeadLetter]()
    service.answer = lambda body, time: 503 if body == "3" else 200
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("tell", http.Post[int](service.url, reconnects=SOON), numbers.shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        bad = await running.emit(numbers, 3)
        for number in range(100, 1000):
            await (await running.emit(numbers, number))
            await asyncio.sleep(0.02)
            if bad.done:
                break
        with pytest.raises(TupleFailed, match="503"):
            await asyncio.wait_for(bad, 30)
    assert 3 <= service.times["3"] < 30


async def test_a_service_that_restarts_loses_nothing(service: Service) -> None:
    """Calls without an answer are made again, with the same key."""
    first, (port,) = Service(), free_ports(1)  # one that nobody is given in between
    async with first.served(port=port):
        sent = Sent(first, list(range(300)), at_once=5)
        run = sent.topology.run()
        running = await run.__aenter__()
        async with asyncio.timeout(60):
            while len(first.calls) < 20:  # noqa: ASYNC110 - far less than there are
                await asyncio.sleep(0.001)
    await until(lambda: running.health().connections["tell[0]"].state.value == "reconnecting")
    async with first.served(port=port):
        async with asyncio.timeout(60):
            await running.finished()
        counts = running.statistics().components["orders"]
        await run.__aexit__(None, None, None)
    assert (counts.acked, counts.failed) == (300, 0)
    keys = {(body, headers["Idempotency-Key"]) for body, headers in first.calls}
    assert len(keys) == 300


async def test_a_key_is_the_same_in_each_attempt(service: Service) -> None:
    """And another one for each value; the user's own comes first."""
    service.answer = lambda body, time: 200 if time == 3 else 500
    await Sent(service, ["a", "b"]).done()
    keys = {(body, headers["Idempotency-Key"]) for body, headers in service.calls}
    assert (len(service.calls), len(keys)) == (6, 2)
    service.calls.clear()
    await Sent(service, ["c"], headers=lambda value: {"Idempotency-Key": value}).done()
    assert service.calls[0][1]["Idempotency-Key"] == "c"


async def test_keys_differ_by_origin_and_body() -> None:
    """Two outputs of one message are two calls; without an origin only the tries of one attempt have the same."""
    assert len({key_of(origin, body) for origin in ("m1", "m2", 1) for body in (b"a", b"b")}) == 6
    assert key_of(None, b"a") is None


async def test_paths_and_options_are_kept(service: Service) -> None:
    """``path`` is appended; what stands behind the question mark stays."""
    sink = http.Post[str](f"{service.url}?shop=a%20b", path=lambda value: f"/{value}/paid", method="PUT")
    await Sent(service, ["7"], sink).done()
    assert service.calls[0][1][":path"] == "/orders/7/paid?shop=a%20b"


async def test_a_value_that_makes_no_request_is_a_dead_letter(service: Service) -> None:
    """At once."""
    sent = await Sent(service, [object()]).done()
    assert len(sent.letters) == 1
    assert service.calls == []


@pytest.mark.parametrize(
    ("url", "password", "header"),
    [
        ("http://shop:{}@127.0.0.1:{}/", None, "Basic c2hvcDpodW50ZXIy"),
        ("http://127.0.0.1:{1}/", Secret("hunter2"), "Bearer hunter2"),
    ],
)
async def test_a_secret_is_sent_and_never_shown(
    service: Service, url: str, password: Secret | None, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the service refuses it, for ``give_up`` seconds, by which the topology crashes."""
    caplog.set_level(logging.DEBUG)
    service.answer = lambda body, time: 401
    sink = http.Post[int](
        url.format("hunter2", service.port), password=password, give_up=2.0, reconnects=SOON
    )
    sent = Sent(service, [1], sink)
    seen = [repr(sink), repr(sent.topology.describe())]
    with pytest.raises(TopologyCrashed, match="answers 401") as crashed:  # noqa: PT012 - the block is the run
        async with sent.topology.run(dead_letters=sent.letters.append) as running:
            await until(lambda: "answers 401" in running.health().connections["tell[0]"].error)
            seen += [repr(running.health()), repr(running.statistics())]
            await asyncio.sleep(60)
    seen += [repr(running.failures()), repr(running.health()), *traceback.format_exception(crashed.value)]
    assert service.calls[0][1]["Authorization"] == header
    seen += [caplog.text, *map(repr, sent.letters)]
    assert "hunter2" not in "\n".join(seen)


@pytest.mark.parametrize("before", [0, 280, 295])
@pytest.mark.parametrize(
    ("url", "password"),
    [("http://shop:{}@127.0.0.1:{}/", None), ("http://127.0.0.1:{1}/", Secret("hunter2-hunter2"))],
    ids=["user", "token"],
)
async def test_a_service_that_repeats_the_secret_is_not_quoted_with_it(
    service: Service, url: str, password: Secret | None, before: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As one does that answers with the headers of a request that it does not like; nor with the begin of it, where the
    quotation ends."""

    def repeat(body: str, time: int) -> web.Response:
        sent = service.calls[-1][1]["Authorization"]
        return web.Response(status=400, text=f"{'x' * before}{sent} is not what I like")

    service.answer = repeat
    sink = http.Post[int](url.format("hunter2-hunter2", service.port), password=password)
    sent = await Sent(service, [1], sink).done()
    said = f"{sent.letters!r} {caplog.text}"
    assert "answers 400 Bad Request" in said
    assert "hunter" not in said
    assert "c2hvcDpodW50" not in said


async def test_a_service_that_says_nothing_fails_the_start() -> None:
    """A black hole accepts connections, too."""
    kept = list[asyncio.StreamWriter]()
    async with await asyncio.start_server(lambda _, writer: kept.append(writer), "127.0.0.1", 0) as silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/orders"
        with pytest.raises(StartFailed, match=r"/orders does not answer within 0.2 s$"):
            await Sent(Service(), ["a"], http.Post[str](url, timeout=0.2)).done()
        for writer in kept:
            writer.close()


async def test_the_url_is_used_as_it_is_written(service: Service) -> None:
    """An encoded slash is no slash, and an option may be there twice."""
    url = service.url + "/a%2Fb%3Fc?tag=1&tag=2%2B2&flag"
    await Sent(service, ["a"], http.Post[str](url)).done()
    await Sent(service, ["b"], http.Post[str](url, path=lambda _: "more")).done()
    assert [headers[":path"] for _, headers in service.calls] == [
        "/orders/a%2Fb%3Fc?tag=1&tag=2%2B2&flag",
        "/orders/a%2Fb%3Fc/more?tag=1&tag=2%2B2&flag",
    ]


async def test_an_answer_without_an_end_is_an_answer(service: Service) -> None:
    """The status says that it is done: its body is not kept in memory, and nothing is called again."""

    async def endless(request: web.Request) -> web.StreamResponse:
        if request.method == "HEAD":
            return web.Response()
        await service.handle(request)
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
                await asyncio.sleep(0)
        return response

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", endless)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/orders"
        async with asyncio.timeout(60):
            await Sent(service, ["a", "b"], http.Post[str](url, timeout=5.0)).done()
    finally:
        await runner.cleanup()
    assert sorted(service.bodies) == ["a", "b"]


async def test_a_start_without_the_service_fails(service: Service) -> None:
    """And names it, with no secret."""
    for url, why in [
        (
            "http://shop:hunter2@127.0.0.1:9/orders",
            "http://shop:\\*\\*\\*@127.0.0.1:9/orders does not answer",
        ),
        ("ftp://127.0.0.1/orders", "'ftp' is no scheme of http.Post"),
        (f"https://127.0.0.1:{service.port}/", "does not speak TLS"),
    ]:
        with pytest.raises(StartFailed, match=why) as failed:
            await Sent(service, [1], http.Post[int](url)).done()
        assert "hunter2" not in str(failed.value)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for this host that has signed itself, and its key."""
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key", "-out", "cert"]
    subprocess.run(["openssl", "req", "-x509", *key, *name], cwd=tmp_path, check=True, capture_output=True)
    return str(tmp_path / "cert"), str(tmp_path / "key")


async def test_certificates_are_verified(certificate: tuple[str, str]) -> None:
    """By the authorities that are trusted, or by ``ca_file``; ``insecure`` is for tests."""
    tls, service = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), Service()
    tls.load_cert_chain(*certificate)
    async with service.served(tls):
        url = service.url.replace("http", "https")
        with pytest.raises(StartFailed, match="certificate is not valid"):
            await Sent(service, [1], http.Post[int](url)).done()
        await Sent(service, [1], http.Post[int](url, ca_file=certificate[0])).done()
        await Sent(service, [2], http.Post[int](url, insecure=True)).done()
    assert service.bodies == ["1", "2"]


async def test_meanings_of_statuses() -> None:
    """Those of all, of the caller, of the request, and the rest."""
    expected = {
        200: "done",
        204: "done",
        302: "never",
        400: "never",
        401: "refused",
        408: "later",
        425: "later",
    }
    expected |= {429: "limited", 500: "later", 501: "never", 503: "away", 505: "later", 507: "later"}
    assert {status: meaning_of(status).value for status in expected} == expected
    assert meaning_of(410) is Meaning.NEVER


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("7", 7),
        ("999999", LONGEST_WAIT),
        ("-1", 0),
        ("nonsense", 0),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
    ],
)
async def test_retry_after_has_seconds_or_a_date(header: str | None, seconds: float) -> None:
    """It is bounded, and nonsense is none."""
    assert seconds_of(header, now=10.0) == seconds
