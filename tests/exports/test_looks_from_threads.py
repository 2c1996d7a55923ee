"""Looks at topologies by the threads of exporters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from stormlet import Topology, ui
from stormlet.exports import look
from stormlet.exports.look import Look
from stormlet.exports.prometheus import TopologyCollector, metrics_app
from stormlet.runtime.run import sliced
from stormlet.runtime.run.counting import Counting
from tests.cast import same


class Turns:
    """The turns of the loop, and those in which a component was counted."""

    def __init__(self) -> None:
        self.now = 0
        self.used: list[int] = []

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        counting = asyncio.create_task(self._count())
        yield
        counting.cancel()

    async def _count(self) -> None:
        while True:
            self.now += 1
            await asyncio.sleep(0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """With slices that are over after one step."""
    turns, component = Turns(), Counting._component

    def noted(self: Counting, tasks: Any) -> Any:
        turns.used.append(turns.now)
        return component(self, tasks)

    monkeypatch.setattr(Counting, "_component", noted)
    monkeypatch.setattr(sliced, "SLICE", 0.0)
    return turns


def wide(bolts: int) -> Topology:
    topology = Topology("wide")
    spout = topology.spout("spout")
    for number in range(bolts):
        topology.bolt(f"bolt-{number}", same, spout.shuffle())
    return topology


@pytest.mark.asyncio
async def test_another_thread_sees_what_there_is_now() -> None:
    """A look from a thread is taken on the loop, between two steps of the topology."""
    topology = Topology("seen")
    spout = topology.spout("spout")
    topology.bolt("first", same, spout.shuffle())
    async with topology.run() as running:
        taken = Look(running, "watched")
        await (await running.emit(spout, 1))
        statistics, health = await asyncio.to_thread(taken.take)
    assert (statistics.components["spout"].acked, health.state.value) == (1, "running")


@pytest.mark.asyncio
async def test_everything_else_runs_between_the_slices_of_a_look(turns: Turns) -> None:
    """However large the topology is: a slice is one component at least, and here no more; on the loop itself there is
    but one turn."""
    async with wide(20).run() as running:
        taken = Look(running, "wide")
        async with turns.counted():
            await asyncio.to_thread(taken.take)
            taken.take()
        one_by_one, at_once = turns.used[:22], turns.used[22:]
    assert len(set(one_by_one)) == 22
    assert len(set(at_once)) == 1


@pytest.mark.asyncio
async def test_the_page_has_metrics_put_together_beside_the_loop(turns: Turns) -> None:
    """By a thread, which looks likewise; so does the application for a page of the host's. That of the page is
    compressed there, too."""
    async with wide(20).run() as running:
        for app, path in ((ui.app(running), "/metrics"), (metrics_app(TopologyCollector(running)), "/")):
            turns.used.clear()
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
            client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
            async with client, turns.counted():
                answer = await client.get(path)
            assert answer.headers.get("content-encoding") == ("gzip" if path == "/metrics" else None)
            assert len(set(turns.used)) == len(turns.used) == 22
            assert 'component="bolt-19"' in answer.text


@pytest.mark.asyncio
async def test_a_loop_that_is_held_up_holds_up_no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """While user code holds the loop a thread gets what was seen last."""
    monkeypatch.setattr(look, "PATIENCE", 0.05)
    topology, seen = Topology("held"), list[str]()
    topology.bolt("first", same, topology.spout("spout").shuffle())
    async with topology.run() as running:
        taken = Look(running, "watched")
        taken.take()
        thread = threading.Thread(target=lambda: seen.append(taken.take()[1].state.value))
        thread.start()
        thread.join()  # and so holds the loop
    assert seen == ["running"]


def test_a_loop_that_is_closed_leaves_its_last_word() -> None:
    """When the loop is gone, it is as the topology has ended."""

    async def run() -> Look:
        topology = Topology("gone")
        topology.bolt("first", same, topology.spout("spout").shuffle())
        async with topology.run() as running:
            return Look(running, "watched")

    taken = asyncio.run(run())
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(taken.take()[1].state.value))
    thread.start()
    thread.join()
    assert seen == ["stopped"]


@pytest.mark.asyncio
async def test_a_look_that_takes_long_has_what_there_was_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, turns: Turns
) -> None:
    """A thread does not wait for all of it but the first time, and has new numbers when they are there."""
    monkeypatch.setattr(look, "PATIENCE", 0.0)
    async with wide(5).run() as running:
        watched = Look(running, "wide")
        seen = [await asyncio.to_thread(watched.take)]
        async with asyncio.timeout(60):  # a thread that is slow to look twice finds the look done
            while not 1 < len({id(each) for each in seen}) < len(seen):
                seen.append(await asyncio.to_thread(watched.take))
    assert all(len(statistics.components) >= 6 for statistics, _ in seen)
