"""Every answer of the REST against the OpenAPI document, and what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from stormlet import Running, Topology, ui
from stormlet.ui.answers import encoded
from stormlet.ui.openapi import document
from stormlet.ui.storm.words import in_url, pretty, sanitized
from stormlet.ui.windows import storms_name, window_named
from tests.cast import Hold
from tests.helpers import until
from tests.ui.kit import EVIL, TOKEN, asked, busy, until_busy

HEADERS = {"authorization": f"Bearer {TOKEN}", "sec-fetch-site": "same-origin"}
WINDOWS = ["60", "600", "3600", ":all-time", "1m", "10m", "1h", "all"]
in_a_loop = pytest.mark.asyncio


@pytest_asyncio.fixture
async def running() -> AsyncGenerator[Running]:
    async with busy().run(dead_letters=lambda letter: None, seed=1) as running:
        await until_busy(running)
        yield running
        running.stop()
        running.stop()


@pytest_asyncio.fixture
async def client(running: Running) -> AsyncGenerator[httpx.AsyncClient]:
    async with asked(ui.app(running, token=TOKEN, changes=True), headers=HEADERS) as client:
        yield client


def validate(answer: Any, path: str, method: str = "get", status: str = "200") -> None:
    """Raise if the answer is not what the document says."""
    said = document()["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]
    Draft202012Validator({**said, "components": document()["components"]}).validate(answer)


def addresses() -> Iterator[tuple[str, str]]:
    """Each path of the document that can be asked for, and an address of it for each of its windows and views."""
    for path, methods in document()["paths"].items():
        if "get" in methods:
            queries = {
                each["name"]: each["schema"] for each in methods["get"]["parameters"] if each["in"] == "query"
            }
            for component in ("source", "look-up", EVIL, "__acker") if "{component}" in path else ("",):
                address = path.replace("{id}", "busy").replace("{component}", in_url(component))
                yield path, address
                for name in queries.keys() & {"window", "view", "sys"}:
                    for value in queries[name]["enum"]:
                        yield path, f"{address}?component=check&{name}={value}"


@in_a_loop
async def test_every_answer_is_as_described(client: httpx.AsyncClient) -> None:
    """Of each path, for each window, view and kind of component."""
    asked_for = list(addresses())
    assert len(asked_for) > 80
    for path, address in asked_for:
        response = await client.get(address)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        validate(response.json(), path)


@in_a_loop
async def test_errors_are_as_described(client: httpx.AsyncClient) -> None:
    """What is missing, what is wrong, and what may not be."""
    for path, address in {
        "/api/v1/topology/{id}": "/api/v1/topology/none",
        "/api/v1/topology/{id}/component/{component}": "/api/v1/topology/busy/component/none",
        "/api/v1/pages/{id}/changes": "/api/v1/pages/busy/changes?view=none",
        "/api/v1/cluster/summary": "/api/v1/cluster/nothing",
    }.items():
        response = await client.get(address)
        assert response.status_code in (400, 404)
        validate(response.json(), path, status="default")


def test_the_document_is_one_of_openapi() -> None:
    """Its references lead somewhere, and its schemas are valid ones."""
    parts = document()["components"]["schemas"]
    for name, schema in parts.items():
        Draft202012Validator.check_schema(schema)
        assert name in parts
    assert document()["openapi"] == "3.1.0"
    text = str(document())
    for name in {each.split("'")[0] for each in text.split("#/components/schemas/")[1:]}:
        assert name in parts


@in_a_loop
async def test_the_numbers_are_those_of_the_run(client: httpx.AsyncClient, running: Running) -> None:
    """Since the start, they are its statistics."""
    running.deactivate()
    await until(lambda: not running.statistics().components["source"].pending)
    await asyncio.sleep(0.6)  # figures are given again for half a second
    page = (await client.get("/api/v1/topology/busy?sys=true")).json()
    counted = running.statistics().components
    (source,) = page["spouts"]
    assert (source["spoutId"], source["acked"]) == ("source", counted["source"].acked)
    assert [each["boltId"] for each in page["bolts"]] == ["check", "look-up", EVIL, "__acker"]
    assert page["bolts"][0]["executed"] == counted["check"].executed
    assert (page["status"], page["name"], page["configuration"]["queue_capacity"]) == ("INACTIVE", "busy", 20)
    total = page["topologyStats"][-1]
    assert (total["window"], total["windowPretty"], total["acked"]) == (
        ":all-time",
        "All time",
        source["acked"],
    )
    without = (await client.get("/api/v1/topology/busy")).json()
    assert "__acker" not in [each["boltId"] for each in without["bolts"]]


def test_windows_have_storms_names_too() -> None:
    """In seconds, and all of the time; anything else is no window."""
    named = {text: window_named(text) for text in ("60", "600", "3600", ":all-time", "1m", "all", "59", "")}
    assert list(named.values()) == ["1m", "10m", "1h", "all", "1m", "all", None, None]
    assert all(window_named(storms_name(window)) == window for window in ("1m", "10m", "1h", "all"))


@in_a_loop
async def test_a_component_has_its_errors(client: httpx.AsyncClient) -> None:
    """With the traceback of the first one and the number of all."""
    page = (await client.get("/api/v1/topology/busy/component/check")).json()
    (error,) = page["componentErrors"]
    assert "in sometimes\n" in error["error"]
    assert error["count"] >= 1
    assert 0 <= error["errorLapsedSecs"] < 60
    assert [each["id"] for each in page["executorStats"]] == ["[3-3]", "[4-4]"]
    assert page["inputStats"][0]["component"] == "source"


@in_a_loop
@pytest.mark.parametrize("name", ["two\nlines", "end\n", "a/b", "ü \u2028"])
async def test_any_name_has_its_page(name: str) -> None:
    """Also one of several lines."""
    topology = Topology("names")
    topology.bolt(name, str, topology.spout("source", [1]).shuffle())
    async with topology.run() as running, asked(ui.app(running)) as client:
        page = (await client.get(f"/api/v1/topology/names/component/{in_url(name)}")).json()
        assert page["id"] == name


@in_a_loop
async def test_any_name_comes_back_as_it_is(client: httpx.AsyncClient) -> None:
    """In addresses it is encoded."""
    page = (await client.get(f"/api/v1/topology/busy/component/{in_url(EVIL)}")).json()
    assert (page["id"], page["encodedId"]) == (EVIL, in_url(EVIL))
    picture = (await client.get("/api/v1/topology/busy/visualization")).json()
    assert picture[EVIL][":inputs"] == [
        {":component": "look-up", ":stream": "default", ":sani-stream": "default", ":grouping": "fields"}
    ]


def test_a_text_that_is_not_in_utf_8_is_shown_by_its_escape() -> None:
    """A lone surrogate is legal in a text, such as that of an exception."""
    assert encoded({"odd \ud800": ["\ud800", 1]}) == b'{"odd \\\\ud800":["\\\\ud800",1]}'


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.9, "0s"), (62, "1m 2s"), (3723, "1h 2m 3s"), (86_400, "1d 0h 0m 0s")]
)
def test_times_are_written_as_storm_does(seconds: float, words: str) -> None:
    """From the largest unit that there is down to seconds."""
    assert pretty(seconds) == words


@pytest.mark.parametrize(
    ("stream", "plain"),
    [("my-stream:with.all_characterClasses1/\\2", "my-stream_with.all_characterClasses____"), ("3foo", "_s_foo"),
     ("", "_s")],
)  # fmt: skip
def test_streams_are_sanitized_as_storm_does(stream: str, plain: str) -> None:
    """Digits too."""
    assert sanitized(stream) == plain


@in_a_loop
async def test_timelines_are_as_described() -> None:
    """Of messages whose edges are recorded, with a span for each execution."""
    topology = Topology("held", record_edges=1, drain_timeout=0)
    topology.bolt("hold", Hold, topology.spout("source", [1]).shuffle())
    async with topology.run() as running, asked(ui.app(running)) as client:
        await until(lambda: running.statistics().components["hold"].executed)
        answer = (await client.get("/api/v1/pages/held/trees")).json()
        validate(answer, "/api/v1/pages/{id}/trees")
        (span,) = answer["trees"][0]["attempts"][0]["spans"]
        assert (span["task"], span["state"], answer["trees"][0]["message_id"]) == ("hold[0]", "held", "0")
