"""A page in another event loop than that of the topology, as of a server in another thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import httpx
import pytest
import pytest_asyncio

from stormlet import Explanation, Running, RunState, Topology, ui
from tests.cast import refuse
from tests.helpers import until
from tests.ui.kit import TOKEN, asked

HEADERS = {"authorization": f"Bearer {TOKEN}", "sec-fetch-site": "same-origin"}
ADDRESS = "/api/v1/topology/apart"
PAGE = "/api/v1/pages/apart"

pytestmark = pytest.mark.asyncio


class Apart:
    """A topology that gives up one message, in the loop of a thread of its own."""

    def __init__(self) -> None:
        self.running: Running
        self._runs = threading.Event()
        self._leave = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        self._runs.wait(60)

    async def _main(self) -> None:
        topology = Topology("apart", max_attempts=1)
        topology.bolt("refuse", refuse, topology.spout("numbers", [7]).shuffle())
        async with topology.run(dead_letters=lambda letter: None) as self.running:
            self._runs.set()
            await self._leave.wait()

    @property
    def thread(self) -> int | None:
        """The number of its thread."""
        return self._thread.ident

    def end(self) -> None:
        if self._thread.is_alive():
            self.running.loop.call_soon_threadsafe(self._leave.set)
            self._thread.join()


@pytest_asyncio.fixture
async def apart() -> AsyncGenerator[Apart]:
    apart = Apart()
    yield apart
    await asyncio.to_thread(apart.end)


@pytest_asyncio.fixture
async def client(apart: Apart) -> AsyncGenerator[httpx.AsyncClient]:
    async with asked(ui.app(apart.running, token=TOKEN, changes=True), headers=HEADERS) as client:
        yield client


async def test_changes_are_made_in_the_loop_of_the_topology(apart: Apart, client: httpx.AsyncClient) -> None:
    """Those that the buttons ask for."""
    for change, state in (
        ("deactivate", RunState.INACTIVE),
        ("activate", RunState.RUNNING),
        ("drain", RunState.DRAINING),
    ):
        assert (await client.post(f"{ADDRESS}/{change}")).status_code == 200
        assert apart.running.health().state is state


async def test_a_dead_letter_is_emitted_in_the_loop_of_the_topology(
    apart: Apart, client: httpx.AsyncClient
) -> None:
    """And only once, also from there."""
    await until(lambda: bool(apart.running.dead_letters))
    replay = f"{ADDRESS}/dead-letters/1/replay"
    assert (await client.post(replay)).status_code == 200
    await until(lambda: apart.running.statistics().components["numbers"].messages == 2)
    again = await client.post(replay)
    assert (again.status_code, "emitted again already" in again.text) == (404, True)


async def test_what_is_pending_is_read_in_the_loop_of_the_topology(
    apart: Apart, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing of it changes meanwhile. Once that loop is closed, nothing changes any more."""
    threads = list[int]()

    def explain_oldest(self: Running, most: int) -> list[Explanation]:
        threads.append(threading.get_ident())
        return []

    monkeypatch.setattr(Running, "explain_oldest", explain_oldest)
    for page in (f"{PAGE}/trees", f"{PAGE}/changes?view=trees"):
        assert (await client.get(page)).status_code == 200
    await asyncio.to_thread(apart.end)
    assert (await client.get(f"{PAGE}/trees")).status_code == 200
    assert threads == [apart.thread, apart.thread, threading.get_ident()]


async def test_a_loop_that_is_closed_is_named(apart: Apart, client: httpx.AsyncClient) -> None:
    """Nothing can be changed any more; what it has done can be looked at."""
    await asyncio.to_thread(apart.end)
    for change in ("deactivate", "drain", "dead-letters/1/replay"):
        answer = await client.post(f"{ADDRESS}/{change}")
        assert answer.status_code == 503
        assert answer.json()["errorMessage"] == "topology 'apart' is over, and its event loop is closed"
    assert (await client.get(ADDRESS)).status_code == 200


async def test_a_loop_that_is_held_up_is_named(
    apart: Apart,
    client: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody waits for ever, and what was answered so is not done later."""
    monkeypatch.setattr("stormlet.ui.loops.PATIENCE", 0.01)
    held = threading.Event()
    apart.running.loop.call_soon_threadsafe(held.wait, 60)
    answer = await client.post(f"{ADDRESS}/deactivate")
    held.set()
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01), apart.running.loop))
    assert apart.running.health().state is RunState.RUNNING
    assert not [each for each in caplog.records if each.name == "asyncio"]
    assert answer.status_code == 503
    assert "the event loop of topology 'apart' has not answered for 0.01 s" in answer.text
