"""Looks at topologies by the threads of exporters."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stormlet import Topology
from stormlet.exports import look
from stormlet.exports.look import Look
from tests.cast import same


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
async def test_a_loop_that_is_held_up_holds_up_no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """While user code holds the loop a thread gets what was seen last."""
    monkeypatch.setattr(look, "PATIENCE", 0.05)
    topology, seen = Topology("held"), list[str]()
    topology.bolt("first", same, topology.spout("spout").shuffle())
    async with topology.run() as running:
        taken = Look(running, "watched")
        thread = threading.Thread(target=lambda: seen.append(taken.take()[1].state.value))
        thread.start()
        thread.join()  # and so holds the loop
    assert seen == ["running"]


def test_a_loop_that_is_closed_leaves_its_last_word() -> None:
    """When the loop is gone, what was seen last is given."""

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
    assert seen == ["running"]
