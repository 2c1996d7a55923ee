"""The page in a real browser: what it shows, and that its console stays silent under the policy."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from stormlet import Running, Topology, ui
from stormlet.ui.app import recorded_app
from stormlet.ui.guard import Asgi
from stormlet.ui.snapshot import Recorded, Snapshot
from stormlet.ui.views.numbers import COLUMNS
from tests.cast import Hold, ignore
from tests.helpers import until
from tests.ui.browser import Look, check, launched, looking
from tests.ui.kit import EVIL, TOKEN, busy, numbers, served, until_busy

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTRAST = Path(__file__).with_name("contrast.js")
APART = Path(__file__).with_name("apart.js")
LOOK_UP = '[data-id="look-up"]'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncGenerator[Any]:
    check()
    async with launched() as browser:
        yield browser


@asynccontextmanager
async def at(app: Asgi) -> AsyncGenerator[str]:
    async with served(app) as server:
        yield f"http://127.0.0.1:{server.port}/"


@asynccontextmanager
async def run(topology: Topology, acked: int = 0) -> AsyncGenerator[Running]:
    async with topology.run(dead_letters=lambda letter: None) as running:
        if acked:
            await until_busy(running, acked)
        yield running
        running.stop()
        running.stop()


@asynccontextmanager
async def shown(browser: Any, path: str = "", **options: Any) -> AsyncGenerator[tuple[Look, Running]]:
    """The page of the busy topology."""
    async with (
        run(busy(), 20) as running,
        at(ui.app(running)) as address,
        looking(browser, address + path, **options) as look,
    ):
        await look.page.wait_for_selector("tbody tr")
        yield look, running


async def test_the_graph_is_there_and_its_numbers_move(browser: Any) -> None:
    """A node for each component, a line for each subscription; counts and rates of a second ago are others now."""
    async with shown(browser) as (look, _):
        ids = await look.page.locator(".node").evaluate_all("all => all.map(each => each.dataset.id)")
        assert ids == ["source", "check", "look-up", EVIL]
        assert await look.page.locator("path.edge[data-id]").count() == 3
        before = await look.text('tr[data-id="look-up"]')
        await look.until(f"document.querySelector('tr{LOOK_UP}').innerText !== {json.dumps(before)}")
        assert "/s" in await look.text(f".node{LOOK_UP} .number")
        assert await look.text("#header .state") == "● running"


async def test_a_bolt_that_fails_is_red_and_its_traceback_can_be_read(browser: Any) -> None:
    """By colour, by a sign and in words; one click on it, one on the error."""
    async with shown(browser) as (look, _):
        await look.until("document.querySelector('.node[data-id=check]').classList.contains('failing')")
        assert await look.text('.node[data-id="check"] .sign') == "✕"
        await look.page.click('.node[data-id="check"]')
        await look.page.click(".failure summary")
        traceback = await look.text(".failure pre")
        assert "in sometimes\n" in traceback
        assert "ValueError: no 0" in traceback
        assert int((await look.text(".failure .count"))[:-1]) > 0


async def test_more_kinds_of_errors_than_are_shown_are_counted(browser: Any) -> None:
    """The last ones are shown; dead letters are kinds of their own."""

    def refuse(number: int) -> None:
        raise type(f"Error{number}", (Exception,), {})

    topology = Topology("kinds", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("source", range(60)).shuffle())
    async with topology.run(dead_letters=ignore) as running:
        await running.finished()
    async with at(ui.app(running)) as address, looking(browser, f"{address}?view=errors") as look:
        await look.page.wait_for_selector(".failure")
        assert await look.text("main .note") == "The last 50 of 120 kinds are here."


async def test_a_slow_bolt_fills_its_queue(browser: Any) -> None:
    """The level stands high, its pattern changes, and the line that leads there is marked."""
    async with shown(browser) as (look, _):
        await look.until(
            f"document.querySelector('.node{LOOK_UP} .gauge').classList.contains('full')"
            f" && document.querySelector('.node{LOOK_UP} text.full')?.textContent === 'full'"
            " && document.querySelector('path.edge.held[data-id=\"check > look-up, shuffle\"]') !== null"
        )


async def test_the_sentence_names_the_bottleneck(browser: Any) -> None:
    """It stands above the picture, says what to turn, and leads to the component that it is about."""

    async def slow(number: int) -> None:
        await asyncio.sleep(0.01)

    topology = Topology("slow", queue_capacity=10, max_spout_pending=50, drain_timeout=0)
    topology.bolt("look-up", slow, topology.spout("source", numbers).shuffle())
    async with run(topology) as running, at(ui.app(running)) as address, looking(browser, address) as look:
        await look.until("document.getElementById('sentence').innerText.includes(\"'look-up' awaits\")")
        assert "raise its concurrency" in await look.text("#sentence")
        await look.page.click("#sentence button")
        await look.until("document.querySelector('h1')?.innerText === 'look-up'")


async def test_a_link_restores_what_was_seen(browser: Any) -> None:
    """Window, component, sort and filter are in the address; so go back and forward, and a reload."""
    async with shown(browser) as (look, _):
        await look.page.click('[data-window="1h"]')
        await look.page.click('th[data-column="executed"] button')
        await look.page.fill("#filter", "e")
        await look.page.check("#system")
        address = look.page.url
        async with looking(look.page.context.browser, address) as other:
            await other.page.wait_for_selector("tbody tr")
            assert await other.page.get_attribute('[data-window="1h"]', "aria-pressed") == "true"
            assert await other.page.get_attribute('th[data-column="executed"]', "aria-sort") == "descending"
            assert await other.page.input_value("#filter") == "e"
            assert await other.page.locator("tr[data-id]").evaluate_all("all => all.map(each => each.dataset.id)") == [
                "source", "__acker", "check", EVIL,
            ]  # fmt: skip
        await look.page.click('tr[data-id="check"] a')
        await look.page.wait_for_selector(".component h1")
        assert "component=check" in look.page.url
        await look.page.go_back()
        await look.page.wait_for_selector("#filter")
        await look.page.go_forward()
        await look.page.wait_for_selector(".component h1")


async def test_a_view_that_there_is_not_is_the_first_one(browser: Any) -> None:
    """As in a link that was cut off; so is a window."""
    async with shown(browser, "?view=zzz&window=5") as (look, _):
        assert await look.page.get_attribute('[data-tab="overview"]', "aria-current") == "page"
        assert await look.page.get_attribute('[data-window="10m"]', "aria-pressed") == "true"
        assert await look.text("#notice") == ""


async def test_its_end_is_said_and_the_last_picture_stays(browser: Any) -> None:
    """The server is gone, with the process; what was there last is still to be seen."""
    async with run(busy(), 20) as running:
        async with at(ui.app(running)) as address:
            opened = looking(browser, address, quiet=False)
            look = await opened.__aenter__()
            await look.page.wait_for_selector("tbody tr")
        await look.until("document.getElementById('notice').innerText.includes('This is the last picture')")
        assert (await look.text("#notice")).startswith("No answer from the server")
        assert await look.page.locator(".node").count() == 4
        assert all("ERR_CONNECTION_REFUSED" in each for each in look.console)
        await opened.__aexit__(None, None, None)


async def test_a_topology_that_is_gone_is_said_to_be(browser: Any) -> None:
    """Its host goes on without it, and may show another one later."""
    page = ui.app()
    async with run(busy(), 20) as running, at(page) as address:
        with page.showing(running):
            opened = looking(browser, address, quiet=False)
            look = await opened.__aenter__()
            await look.page.wait_for_selector("tbody tr")
        await look.until("document.getElementById('notice').innerText.includes('The topology is gone')")
        assert await look.page.locator(".node").count() == 4
        with page.showing(running):
            await look.until("!document.getElementById('notice').innerText")
        await opened.__aexit__(None, None, None)


def other() -> Topology:
    topology = Topology("other")
    topology.bolt("print", ignore, topology.spout("feed", numbers).shuffle())
    return topology


async def test_a_topology_that_ends_beside_others_stays_chosen(browser: Any) -> None:
    """With its last picture, under its name; the others are there to be chosen, and are chosen by nobody else."""
    page = ui.app()
    async with run(busy(), 20) as running, run(other()) as second, at(page) as address:
        with page.showing(running):
            page.show(second)
            opened = looking(browser, address, quiet=False)
            look = await opened.__aenter__()
            await look.page.wait_for_selector("tbody tr")
        await look.until("document.getElementById('notice').innerText.includes('The topology is gone')")
        assert "there is no topology 'busy'; there are other. This is the last" in await look.text("#notice")
        choice = "document.querySelector('#header select').selectedOptions[0].innerText"
        await look.until(f"{choice} === 'busy (gone)'")
        assert await look.page.locator(".node").count() == 4
        with page.showing(running):
            await look.until("!document.getElementById('notice').innerText")
            await look.until(f"{choice} === 'busy'")
        await look.until("document.getElementById('notice').innerText.includes('The topology is gone')")
        await look.page.select_option("#header select", "other")
        await look.page.wait_for_selector(".node[data-id=feed]")
        await look.page.go_back()
        await look.until("document.getElementById('notice').innerText.includes('The topology is gone')")
        assert await look.page.locator(".node:visible, tbody tr").count() == 0
        await opened.__aexit__(None, None, None)


async def test_a_link_to_a_topology_that_is_gone_shows_no_other(browser: Any) -> None:
    """It says so, and what there is can be chosen."""
    async with (
        run(other()) as running,
        at(ui.app(running)) as address,
        looking(browser, f"{address}?topology=three", quiet=False) as look,
    ):
        await look.until("document.getElementById('notice').innerText.includes('The topology is gone')")
        assert "there is no topology 'three'; there are other." in await look.text("#notice")
        assert await look.page.locator("tbody tr").count() == 0
        assert "topology=three" in look.page.url
        await look.page.select_option("#header select", "other")
        await look.page.wait_for_selector(".node[data-id=feed]")


async def test_a_topology_that_has_ended_says_so(browser: Any) -> None:
    """While its host still shows it."""
    topology = Topology("short")
    topology.bolt("b", str, topology.spout("source", [1]).shuffle())
    async with topology.run() as running:
        pass
    async with at(ui.app(running)) as address, looking(browser, address) as look:
        await look.until("document.getElementById('notice').innerText === 'The topology has ended.'")


async def test_any_name_and_value_is_text(browser: Any) -> None:
    """A component named as a script, a value with markup and escapes: shown, never run."""
    value = '<img src=x onerror=alert(1)> \x1b[31m "quoted" \u202e'

    def refuse(given: str) -> None:
        raise ValueError(given)

    topology = Topology("<b>bold</b>", max_attempts=1)
    topology.bolt(EVIL, refuse, topology.spout("source", [value] * 3).shuffle())
    async with (
        topology.run(dead_letters=lambda letter: None) as running,
        at(ui.app(running, show_values=True)) as address,
    ):
        while running.statistics().dead_letters < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async with looking(browser, f"{address}?view=letters") as look:
            await look.page.click(".letter summary")
            assert "<img src=x onerror=alert(1)>" in await look.text(".letter code")
            assert await look.text("#header .name") == "<b>bold</b>"
            await look.page.click('[data-tab="overview"]')
            await look.page.click(f"tbody a >> text={EVIL}")
            assert await look.text("h1") == EVIL
            assert await look.page.locator("img, b:has-text('bold'), body script").count() == 0


async def test_five_thousand_components(browser: Any) -> None:
    """The table has the first two hundred and finds all; there is no picture, and the page stays quick."""
    rows = {f"c/bolt {number}": [f"bolt {number}", "bolt", 1, "well", *[0] * 30] for number in range(5000)}
    values = {"columns": COLUMNS, "about": {"name": "large", "began": "2026-01-01T00:00:00Z"}, **rows}
    topology = {"id": "large", "name": "large", "state": "running", "graph": {"missing": "too many"},
                "views": {"overview 10m": values}}  # fmt: skip
    snapshot = {"snapshot": 1, "taken": "2026-01-01T00:00:00Z", "topologies": [topology]}
    recorded = recorded_app(Recorded(msgspec.convert(snapshot, Snapshot)))
    async with at(recorded) as address, looking(browser, address) as look:
        await look.page.wait_for_selector("tbody tr")
        assert await look.page.locator("tbody tr").count() == 200
        assert await look.text("#graph") == "too many"
        await look.page.fill("#filter", "bolt 4998")
        await look.until("document.querySelectorAll('tbody tr').length === 1")


async def test_two_hundred_and_forty_tasks(browser: Any) -> None:
    """All tasks of a component have a row of their own."""
    topology = Topology("many")
    topology.bolt("many", str, topology.spout("source", [1]).shuffle(), parallelism=240)
    async with (
        run(topology) as running,
        at(ui.app(running)) as address,
        looking(browser, f"{address}?view=component&component=many") as look,
    ):
        await look.page.wait_for_selector('tr[data-id="many[199]"]')
        assert "200 of 240 shown" in await look.text(".component")


async def test_behind_a_proxy_under_a_prefix(browser: Any) -> None:
    """A proxy cuts the prefix off, and the host has mounted the page under another one: all addresses are relative."""
    async with run(busy(), 20) as running:
        host = Starlette(routes=[Mount("/inner", ui.app(running, token=TOKEN))])
        async with (
            at(host) as inner,
            httpx.AsyncClient(trust_env=False) as client,
            at(_proxy("/outer/deep", f"{inner}inner", client)) as outer,
            looking(browser, f"{outer}outer/deep/#token={TOKEN}") as look,
        ):
            await look.page.wait_for_selector(".node")
            await look.page.click('tr[data-id="check"] a')
            await look.page.wait_for_selector(".component h1")
            await look.page.reload()
            await look.page.wait_for_selector(".component h1")
            assert look.page.url == f"{outer}outer/deep/?topology=busy&view=component&component=check"


def _proxy(prefix: str, target: str, client: httpx.AsyncClient) -> Starlette:
    async def forward(request: Request) -> Response:
        headers = {"x-forwarded-for": "10.0.0.7", "authorization": request.headers.get("authorization", "")}
        address = f"{target}{request.url.path.removeprefix(prefix)}"
        found = await client.request(request.method, address, params=request.query_params, headers=headers)
        kept = {each: found.headers[each] for each in ("content-type", "content-security-policy")}
        return Response(found.content, found.status_code, kept)

    return Starlette(routes=[Route("/{path:path}", forward)])


async def test_a_wrong_token_is_asked_for_again(browser: Any) -> None:
    """It is said to be wrong, where none is asked for. The right one opens the page; it is in no address."""
    async with (
        run(busy(), 20) as running,
        at(ui.app(running, token=TOKEN)) as address,
        looking(browser, address, quiet=False) as look,
    ):
        await look.page.wait_for_selector("#notice form")
        assert (await look.text("#notice")).startswith("This page needs its token.")
        assert not await look.page.is_visible("#sentence")
        await look.page.fill("#notice input", "wrong")
        await look.page.click("#notice button")
        await look.until("document.getElementById('notice').innerText.startsWith('The token is wrong.')")
        assert await look.page.locator(".node").count() == 0
        await look.page.fill("#notice input", "wrong again ключ")  # which no header has
        await look.page.keyboard.press("Enter")
        await look.until("document.querySelector('#notice input')?.value === ''")  # asked for anew
        await look.page.keyboard.type("nor this")  # it is where one writes
        assert await look.page.input_value("#notice input") == "nor this"
        await look.page.fill("#notice input", TOKEN)
        await look.page.click("#notice button")
        await look.page.wait_for_selector(".node")
        assert "token" not in look.page.url
        assert all("401" in each for each in look.console)


async def test_a_foreign_name_gets_nothing(browser: Any) -> None:
    """A name that somebody has bound to this machine."""
    async with run(busy(), 5) as running, served(ui.app(running)) as server:
        page = await browser.new_page()
        answer = await page.goto(f"http://evil.example:{server.port}/api/v1/pages")
        assert (answer.status, "no name of it" in await answer.text()) == (421, True)
        await page.close()


async def test_buttons_are_there_only_where_something_may_be_changed(browser: Any) -> None:
    """Deactivate and activate; a dead letter is emitted again."""
    async with run(busy(), 60) as running:
        async with (
            at(ui.app(running, token=TOKEN)) as address,
            looking(browser, f"{address}#token={TOKEN}") as look,
        ):
            await look.page.wait_for_selector(".node")
            assert await look.page.locator(".control:visible").count() == 0
        async with (
            at(ui.app(running, token=TOKEN, changes=True)) as address,
            looking(browser, f"{address}?view=letters#token={TOKEN}") as look,
        ):
            await look.page.click(".letter >> nth=-1 >> summary")
            await look.page.click(".letter >> nth=-1 >> .again")
            await look.until("[...document.querySelectorAll('.fate')].at(-1).innerText !== ''")
            await look.page.click('[data-operation="deactivate"]')
            await look.page.wait_for_selector('[data-operation="activate"]:visible')
            assert running.health().state.value == "inactive"
            await look.page.click('[data-operation="activate"]')
            await look.page.wait_for_selector('[data-operation="deactivate"]:visible')


def orders() -> Topology:
    """A message that fails once, and is executed for long then; its tuples are acked, fail, run, are held and wait."""
    tries: list[int] = []

    def lines(order: int) -> Iterator[int]:
        tries.append(order)
        yield from range(6)

    async def price(line: int) -> int:
        await asyncio.sleep(0.02)
        if line == 2 and len(tries) == 1:
            raise ValueError(line)
        await asyncio.sleep(600 if line == 3 and len(tries) == 2 else 0)
        return line

    topology = Topology("orders", record_edges=1, replay_delay=0.3, message_timeout=None, drain_timeout=0)
    split = topology.bolt("split", lines, topology.spout("source", [1]).shuffle())
    topology.bolt("hold", Hold, topology.bolt("a-long-name-of-a-bolt", price, split.shuffle()).shuffle())
    return topology


async def until_it_is_executed_for_long(running: Running) -> None:
    """Wait until its second attempt is, with three tuples held before that."""

    def there() -> bool:
        told = str(next(iter(running.explain_oldest()), ""))
        return (
            "attempt 1 failed" in told and told.count("is held by hold[0]") == 3 and "is executed by" in told
        )

    await until(there)


@asynccontextmanager
async def timeline(browser: Any, **options: Any) -> AsyncGenerator[Look]:
    """That of the message, open."""
    async with run(orders()) as running, at(ui.app(running)) as address:
        await until_it_is_executed_for_long(running)
        async with looking(browser, f"{address}?view=trees", **options) as look:
            await look.page.click(".tree summary")
            await look.until("document.querySelectorAll('.tree .attempt').length === 2")
            yield look


async def test_pending_trees_are_explained_on_a_timeline(browser: Any) -> None:
    """In words; with a row for each attempt, and a bar for each execution with its name and its figures."""
    async with timeline(browser) as look:
        assert re.search(r"attempt 1 failed after \d+\.\d", await look.text(".tree pre"))
        assert "✕ after " in await look.text(".attempt >> nth=0")
        names = await look.page.locator(".attempt >> nth=1 >> .bar").all_text_contents()
        assert (names[0], names.count("◧ hold[0]"), names.count("▶ a-long-name-of-a-bolt[0]")) == (
            "✓ split[0]",
            3,
            1,
        )
        assert names.count("… a-long-name-of-a-bolt[0]") == 2
        assert (
            "✕ a-long-name-of-a-bolt[0]"
            in await look.page.locator(".attempt >> nth=0 >> .bar").all_text_contents()
        )
        await look.page.hover('.attempt >> nth=0 >> [data-state="failed"] .bar')
        told = await look.text("#tip")
        assert told.startswith("a-long-name-of-a-bolt[0]: failed; began at ")
        assert "; waited for " in told
        assert re.search(r"; took \d+(\.\d+)? m?s", told)


async def test_a_timeline_is_walked_through_by_keyboard(browser: Any) -> None:
    """It is one stop of the tabulator; arrows lead from bar to bar, and what has the focus keeps it. What comes into
    view by that has its figures beside it all the same."""
    async with timeline(browser, viewport={"width": 1400, "height": 300}) as look:
        await look.page.focus(".tree pre")
        await look.page.keyboard.press("Tab")
        assert await look.page.evaluate("document.activeElement.innerText") == "✓ split[0]"
        for key in ("ArrowRight", "End", "ArrowRight", "ArrowLeft", "Home", "ArrowRight"):
            await look.page.keyboard.press(key)
        assert await look.page.evaluate("document.activeElement.innerText") == "✓ a-long-name-of-a-bolt[0]"
        await look.until("document.querySelector('#tip:not([hidden])')?.innerText.includes('took')")
        await look.page.evaluate("window.focused = document.activeElement")
        age = await look.text(".tree .age")
        await look.until(f"document.querySelector('.tree .age').innerText !== '{age}'")
        assert await look.page.evaluate("document.activeElement === window.focused")
        await look.page.keyboard.press("Tab")
        assert await look.page.evaluate("document.activeElement.closest('.timeline')") is None


async def test_a_tree_stays_open_when_its_message_is_replayed(browser: Any) -> None:
    """Although the next attempt is another tree."""
    timing = {"message_timeout": 0.4, "replay_delay": 0.05, "replay_delay_max": 0.05, "drain_timeout": 0}
    topology = Topology("held", record_edges=1, max_attempts=1000, **timing)
    topology.bolt("hold", Hold, topology.spout("source", [1]).shuffle())
    async with (
        run(topology) as running,
        at(ui.app(running)) as address,
        looking(browser, f"{address}?view=trees") as look,
    ):
        await look.page.click(".tree summary")
        await look.until("document.querySelectorAll('.tree[open] .attempt').length > 2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
async def test_a_timeline_fits_and_can_be_read(browser: Any, scheme: str, width: int) -> None:
    """No name stands on another one or sticks out; colours have enough contrast, and nothing moves."""
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    async with timeline(browser, reduced_motion="reduce", **options) as look:
        assert await look.page.evaluate("document.documentElement.scrollWidth") <= width
        assert await look.page.evaluate("document.getAnimations().length") == 0
        assert await look.page.evaluate(CONTRAST.read_text("utf-8")) == []
        assert await look.page.evaluate(APART.read_text("utf-8")) == []
        ends = "all => all.map(each => each.getBoundingClientRect().right)"
        assert max(await look.page.locator(".bar > span").evaluate_all(ends)) <= width


async def test_a_keyboard_is_enough(browser: Any) -> None:
    """A component is opened by Enter, and left by Escape; a slash leads to the filter, a heading explains itself."""
    async with shown(browser) as (look, _):
        await look.page.focus('.node[data-id="check"]')
        await look.page.keyboard.press("Enter")
        await look.page.wait_for_selector(".component h1")
        await look.page.keyboard.press("Escape")
        await look.page.wait_for_selector("#filter")
        await look.page.keyboard.press("/")
        assert await look.page.evaluate("document.activeElement.id") == "filter"
        await look.page.focus('th[data-column="capacity"] button')
        assert "Storm's capacity" in await look.text("#tip")


async def test_enter_in_the_filter_opens_what_it_has_found(browser: Any) -> None:
    """The first component of those that are shown; with nothing typed, none."""
    async with shown(browser) as (look, _):
        await look.page.keyboard.press("/")
        await look.page.keyboard.press("Enter")
        await look.page.keyboard.type("look")
        assert "component=" not in look.page.url
        await look.page.keyboard.press("Enter")
        await look.until("document.querySelector('h1')?.innerText === 'look-up'")
        await look.page.keyboard.press("Escape")
        await look.page.wait_for_selector("#filter")
        await look.page.focus("#filter")
        await look.page.keyboard.press("Control+a")
        await look.page.keyboard.type("nowhere")
        await look.page.keyboard.press("Enter")
        assert "component=" not in look.page.url


async def test_the_name_that_was_typed_goes_before_longer_ones(browser: Any) -> None:
    """Else the one behind could not be opened."""
    topology = Topology("names")
    stream = topology.spout("numbers", numbers)
    topology.bolt("counted", ignore, stream.shuffle())
    topology.bolt("count", ignore, stream.shuffle())
    async with run(topology) as running, at(ui.app(running)) as address, looking(browser, address) as look:
        await look.page.wait_for_selector("tbody tr")
        await look.page.fill("#filter", "count")
        await look.page.press("#filter", "Enter")
        await look.until("document.querySelector('h1')?.innerText === 'count'")


async def test_every_heading_explains_itself(browser: Any) -> None:
    """As whole blogs exist to explain those of Storm's UI."""
    async with shown(browser) as (look, _):
        helps = await look.page.locator("thead button").evaluate_all(
            "all => all.map(each => each.dataset.help ?? '')"
        )
        assert len(helps) > 20
        assert all(len(each) > 20 for each in helps)


async def test_the_complete_latency_says_of_how_many_messages_it_is(browser: Any) -> None:
    """The heading says that it is of samples, the cell has their number."""
    async with shown(browser) as (look, _):
        for column in ("complete_mean", "complete_p99"):
            place = list(
                await look.page.locator("th").evaluate_all("all => all.map(each => each.dataset.column)")
            )
            await look.page.hover(f'th[data-column="{column}"] button')
            assert "at a time" in await look.text("#tip")
            await look.page.hover(f'tr[data-id="source"] > :nth-child({place.index(column) + 1})')
            await look.until("/^of \\d+ samples?$/.test(document.getElementById('tip').innerText)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
async def test_it_fits_and_can_be_read(browser: Any, scheme: str, width: int) -> None:
    """Nothing wide sticks out, by day and by night; text has enough contrast; nothing moves for those who want that."""
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    async with shown(browser, reduced_motion="reduce", **options) as (look, _):
        for view in ("", "?view=component&component=check", "?view=settings"):
            await look.page.goto(f"{look.page.url.partition('?')[0]}{view}")
            await look.page.wait_for_selector("tbody tr")
            assert await look.page.evaluate("document.documentElement.scrollWidth") <= width
            assert await look.page.evaluate("document.getAnimations().length") == 0
            assert await look.page.evaluate(CONTRAST.read_text("utf-8")) == []


async def test_a_snapshot_opens_as_the_page_was(browser: Any) -> None:
    """With the time when it was taken, and without asking again."""
    async with (
        run(busy(), 60) as running,
        at(ui.app(running)) as address,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        text = (await client.get(f"{address}api/v1/snapshot.json")).content
    recorded = recorded_app(Recorded(msgspec.json.decode(text, type=Snapshot)))
    async with at(recorded) as address, looking(browser, f"{address}?view=component&component=check") as look:
        await look.page.wait_for_selector(".failure")
        assert (await look.text(".fresh")).startswith("snapshot of")
        await look.page.click('[data-tab="settings"]')
        await look.page.wait_for_selector(".settings")


async def test_a_snapshot_of_a_short_run_has_its_charts_and_no_buttons(browser: Any) -> None:
    """They begin when the run has, not when the file is opened; what is over cannot be changed."""
    async with (
        run(busy(), 20) as running,
        at(ui.app(running, token=TOKEN, changes=True)) as address,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        headers = {"authorization": f"Bearer {TOKEN}"}
        text = (await client.get(f"{address}api/v1/snapshot.json", headers=headers)).content
    snapshot = msgspec.json.decode(text, type=Snapshot)
    then = [1_795_800_000_000, 1_795_800_010_000]
    series = {"at": then, "throughput": [1.0, 2.0], "latency": [0.1, 0.2], "pending": [3, 4]}
    snapshot.topologies[0].views["overview 10m"]["series"] = series
    async with at(recorded_app(Recorded(snapshot))) as address, looking(browser, address) as look:
        await look.page.wait_for_selector("tbody tr")
        lines = await look.page.locator("#charts path").evaluate_all(
            "all => all.map(each => each.getAttribute('d'))"
        )
        assert all(lines)
        assert await look.page.locator(".control:visible").count() == 0


async def test_a_snapshot_has_the_timelines(browser: Any) -> None:
    """As they were when it was taken; also of what has begun at the very end, whose name stands before it."""
    async with (
        run(orders()) as running,
        at(ui.app(running)) as address,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await until_it_is_executed_for_long(running)
        text = (await client.get(f"{address}api/v1/snapshot.json")).content
    snapshot = msgspec.json.decode(text, type=Snapshot)
    for window in ("1m", "10m", "1h", "all"):
        attempt = snapshot.topologies[0].views[f"trees {window}"]["trees"]["trees"][0]["attempts"][1]
        ends = attempt["began"] + attempt["seconds"]
        last = {
            "task": "last[0]",
            "delivered": ends,
            "began": ends,
            "ended": ends,
            "state": "acked",
            "more": "",
        }
        attempt["spans"].append(last)
    phone = {"width": 390, "height": 800}
    async with (
        at(recorded_app(Recorded(snapshot))) as address,
        looking(browser, f"{address}?view=trees", viewport=phone) as look,
    ):
        await look.page.click(".tree summary")
        assert await look.page.locator(".attempt").count() == 2
        assert "▶ a-long-name-of-a-bolt[0]" in await look.page.locator(".bar").all_text_contents()
        assert await look.page.evaluate(APART.read_text("utf-8")) == []
        ends = "all => all.map(each => each.getBoundingClientRect().right)"
        assert max(await look.page.locator(".bar > span").evaluate_all(ends)) <= 390
