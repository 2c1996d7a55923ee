"""The application behind its gate: headers, routes, errors, topologies that come and go."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Mount

from stormlet import Running, ui
from stormlet.ui.assets import assets
from stormlet.ui.guard import POLICY
from tests.ui.kit import TOKEN, asked, busy, until_busy

pytestmark = pytest.mark.asyncio
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest_asyncio.fixture
async def running() -> AsyncGenerator[Running]:
    async with busy().run(dead_letters=lambda letter: None, seed=1) as running:
        await until_busy(running, 10)
        yield running
        running.stop()
        running.stop()


@pytest_asyncio.fixture
async def client(running: Running) -> AsyncGenerator[httpx.AsyncClient]:
    async with asked(ui.app(running)) as client:
        yield client


async def test_every_answer_binds_the_browser(client: httpx.AsyncClient) -> None:
    """The page, its files, data, errors and refusals: no foreign script, no frame, no guess of a type."""
    for path in ("/", f"/static/{assets().digest}/main.js", "/api/v1/pages", "/nothing", "/healthz"):
        headers = (await client.get(path)).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert not {"set-cookie", "access-control-allow-origin"} & headers.keys()
    directives = dict(each.strip().split(" ", 1) for each in POLICY.split(";"))
    assert {directives[each] for each in ("default-src", "frame-ancestors", "base-uri", "form-action")} == {
        "'none'"
    }
    assert (directives["script-src"], directives["connect-src"]) == ("'self'", "'self'")
    refused = await client.get("/", headers={"host": "evil.example"})
    assert (refused.status_code, refused.headers["content-security-policy"]) == (421, POLICY)


async def test_only_what_never_changes_is_kept_by_browsers(client: httpx.AsyncClient) -> None:
    """Files below the digest of their contents are; the page and all data are asked for again."""
    static = await client.get(f"/static/{assets().digest}/main.js")
    assert "immutable" in static.headers["cache-control"]
    for path in ("/", "/api/v1/pages"):
        assert (await client.get(path)).headers["cache-control"] == "no-store"
    other = await client.get("/static/0123/main.js")
    assert (other.status_code, other.json()["errorMessage"]) == (
        404,
        "this file is of another version of the page; load the page again",
    )


async def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    """Its files name no address, and none that begins at a root."""
    for text in (assets().html, *(each.content for each in assets().files.values())):
        assert b"://" not in text.replace(b"http://www.w3.org/2000/svg", b"")
        assert b'="/' not in text


async def test_what_is_not_there_says_what_there_is(client: httpx.AsyncClient) -> None:
    """In JSON, in Storm's form."""
    for path, words in {
        "/nothing": "there is nothing at /nothing; see api/v1/openapi.json for what there is",
        "/api/v1/topology/other": "there is no topology 'other'; there are busy",
        "/api/v1/topology/busy/component/x": "topology 'busy' has no component 'x'; it has source, check",
    }.items():
        response = await client.get(path)
        assert (response.status_code, response.json()["error"]) == (404, "404 Not Found")
        assert response.json()["errorMessage"].startswith(words)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("topology/busy?window=5", "there is no window '5'; there are 60, 600, 3600, :all-time"),
        ("pages/busy/changes?window=x", "there is no window 'x'; there are 1m, 10m, 1h, all"),
        ("pages/busy/changes?view=x", "there is no view 'x'; there are overview, component"),
    ],
)
async def test_what_makes_no_sense_says_what_would(client: httpx.AsyncClient, path: str, words: str) -> None:
    """A wrong window, a wrong view."""
    response = await client.get(f"/api/v1/{path}")
    assert (response.status_code, response.json()["error"]) == (400, "400 Bad Request")
    assert response.json()["errorMessage"].startswith(words)


async def test_a_wrong_method_says_the_right_one(client: httpx.AsyncClient) -> None:
    """As HTTP has it."""
    response = await client.get("/api/v1/topology/busy/activate")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


async def test_the_page_is_free_and_its_data_needs_the_token(running: Running) -> None:
    """A browser sends no header for a page that is typed in; the page itself tells nothing."""
    async with asked(ui.app(running, token=TOKEN), peer=("10.0.0.7", 1)) as client:
        assert (await client.get("/")).status_code == 200
        for path in ("pages", "topology/summary", "snapshot.json", "openapi.json"):
            assert (await client.get(f"/api/v1/{path}")).status_code == 401
            assert (await client.get(f"/api/v1/{path}", headers=BEARER)).status_code == 200


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/openapi.json"])
@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, GZIP ; q=0.5", True),
        ("*", True),
        ("br, *;q=0.1, x;q", True),
        ("gzip;q=0", False),
        ("br, gzip; q=0.000, *", False),
        ("gzip;q=none", False),
        ("notgzip", False),
        ("identity", False),
        ("", False),
    ],
)
async def test_answers_are_compressed_for_those_who_take_that(
    client: httpx.AsyncClient, path: str, accepted: str, compressed: bool
) -> None:
    """A weight of 0 refuses it. Caches on the way are told that answers differ by what is taken."""
    found = await client.get(path, headers={"accept-encoding": accepted})
    assert found.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert found.headers["vary"] == "Accept-Encoding"
    assert found.text[:2] in ("# ", '{"')


async def test_what_is_asked_for_twice_is_taken_once(client: httpx.AsyncClient) -> None:
    """Two headers of one name are one list."""
    twice = [("accept-encoding", "br"), ("accept-encoding", "gzip")]
    found = await client.get("/metrics", headers=twice)
    assert found.headers["content-encoding"] == "gzip"


async def test_prometheus_gets_the_metrics_of_all_topologies_by_the_token(running: Running) -> None:
    """In its own text, which its own parser reads; nobody else gets them."""
    async with asked(ui.app(running, token=TOKEN), peer=("10.0.0.7", 1)) as client:
        assert (await client.get("/metrics")).status_code == 401
        found = await client.get("/metrics", headers=BEARER)
    assert found.headers["content-type"].startswith("text/plain; version=")
    families = {each.name: each for each in text_string_to_metric_families(found.text)}
    acked = sum(sample.value for sample in families["stormlet_acked"].samples)
    assert {sample.labels["topology"] for sample in families["stormlet_acked"].samples} == {"busy"}
    assert acked >= 10


async def test_metrics_of_topologies_of_one_name_are_told_apart(running: Running) -> None:
    """Each keeps its label, also when the other goes: a series never goes on as that of another topology."""
    page = ui.app()
    async with busy().run(dead_letters=lambda letter: None) as other, asked(page) as client:

        async def labels() -> set[str]:
            families = text_string_to_metric_families((await client.get("/metrics")).text)
            samples = {each.name: each.samples for each in families}["stormlet_pending_messages"]
            return {each.labels["topology"] for each in samples}

        with page.showing(other):
            page.show(running)
            assert await labels() == {"busy", "busy-2"}
        assert await labels() == {"busy-2"}
        other.stop()
        other.stop()


async def test_it_is_mounted_under_any_prefix(running: Running) -> None:
    """With and without a slash at the end; its answers name nothing outside."""
    host = Starlette(routes=[Mount("/a/b", ui.app(running))])
    async with asked(host) as client:
        assert (await client.get("/a/b/")).text == assets().html.decode()
        assert (await client.get("/a/b", follow_redirects=True)).text == assets().html.decode()
        assert (await client.get("/a/b/api/v1/pages")).json()[0]["name"] == "busy"
        refused = await client.get("/a/b/api/v1/pages", headers={"host": "evil.example"})
        assert refused.status_code == 421


async def test_a_probe_may_come_from_anywhere(running: Running) -> None:
    """An orchestrator asks by an address; it hears yes or no."""
    async with asked(ui.app(running), peer=("10.0.0.7", 1), base_url="http://pod.example") as client:
        assert (await client.get("/healthz")).json() == {"healthy": True}
        assert (await client.get("/ready")).json() == {"ready": True}
        assert (await client.get("/")).status_code == 421


async def test_topologies_come_and_go(running: Running) -> None:
    """Two of one name have two ids; without any it is not ready."""
    page = ui.app()
    async with asked(page) as client:
        assert (await client.get("/ready")).status_code == 503
        with page.showing(running):
            page.show(running)
            ids = [each["id"] for each in (await client.get("/api/v1/pages")).json()]
            assert ids == ["busy", "busy-2"]
        gone = await client.get("/api/v1/pages/busy/changes")
        assert (gone.status_code, "there are busy-2" in gone.json()["errorMessage"]) == (404, True)


async def test_it_is_changed_by_the_page_itself(running: Running) -> None:
    """Deactivated, activated, drained; what is no operation says which there are."""
    own = {**BEARER, "sec-fetch-site": "same-origin"}
    async with asked(ui.app(running, token=TOKEN, changes=True), headers=own) as client:
        states = []
        for operation in ("deactivate", "activate"):
            done = await client.post(f"/api/v1/topology/busy/{operation}")
            assert done.json() == {"topologyOperation": operation, "topologyId": "busy", "status": "success"}
            states.append(running.health().state.value)
        assert states == ["inactive", "running"]
        wrong = await client.post("/api/v1/topology/busy/explode")
        assert (wrong.status_code, "activate, deactivate, drain" in wrong.text) == (404, True)
        assert (
            await client.post("/api/v1/topology/busy/drain", headers={"sec-fetch-site": "x"})
        ).status_code == 403
        await client.post("/api/v1/topology/busy/drain")
        await running.finished()


async def test_other_protocols_are_closed() -> None:
    """The page has no use for a websocket."""
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {}

    await ui.app()({"type": "websocket", "path": "/"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]
