"""Processes that end at any moment, at a real NATS: nothing is lost, and little comes twice.

``STORMLET_KILLS=20 pytest -rP tests/connect/nats/test_kills.py`` kills more of them, and prints the counts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.connect.nats import mortal
from tests.connect.nats.kit import Server, numbered

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

KILLS: Final = int(os.environ.get("STORMLET_KILLS", "4"))
COUNT: Final = 600 * KILLS
"""Messages, more than they do before the last of them is killed."""
ROOT = Path(__file__).parents[3]


class Mortals:
    """Processes one after another, who note what they have done in one file."""

    def __init__(self, server: Server, notes: Path, sink: str = "") -> None:
        self._server = server
        self._arguments = [server.url, server.stream, str(notes), sink]
        self._notes = notes
        self._notes.touch()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Process]:
        """A process that has begun to work."""
        before = len(self.noted)
        program = [sys.executable, mortal.__file__, *self._arguments]
        process = await asyncio.create_subprocess_exec(*program, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
        try:
            while len(self.noted) == before:
                assert process.returncode is None
                await asyncio.sleep(0.01)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @property
    def noted(self) -> list[str]:
        """The messages that were done, in their order."""
        return self._notes.read_text("utf-8").split()

    async def end(self) -> None:
        """A last process that does the rest and is asked to end: nothing is left."""
        if await self.undone():
            async with self.one() as process, asyncio.timeout(120):
                while await self.undone():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        assert set(self.noted) == set(numbered(COUNT))

    async def undone(self) -> int:
        """The messages that the server does not know to be done."""
        info = await self._server.js.consumer_info(self._server.stream, "mortal")
        return (info.num_pending or 0) + (info.num_ack_pending or 0)


async def test_killed_processes_lose_nothing(server: Server, tmp_path: Path) -> None:
    """What was pending comes again when its lease is over."""
    random = Random(1)
    await server.publish(*numbered(COUNT))
    mortals = Mortals(server, tmp_path / "notes")
    for _ in range(KILLS):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.kill()
    await mortals.end()
    doubled = len(mortals.noted) - COUNT
    print(f"{KILLS} kills, {COUNT} messages, {doubled} twice")
    assert doubled <= KILLS * mortal.PENDING


async def test_a_process_that_is_asked_to_end_repeats_nothing(server: Server, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    random = Random(2)
    await server.publish(*numbered(COUNT))
    mortals = Mortals(server, tmp_path / "notes")
    for _ in range(KILLS):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    await mortals.end()
    assert sorted(mortals.noted, key=int) == numbered(COUNT)


async def test_what_a_killed_process_publishes_is_there_once(server: Server, tmp_path: Path) -> None:
    """From stream to stream: with a message id, each output is kept once."""
    random = Random(3)
    await server.make("outputs")
    await server.publish(*numbered(COUNT))
    mortals = Mortals(server, tmp_path / "notes", "outputs.new")
    for _ in range(KILLS):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.kill()
    await mortals.end()
    print(f"stream to stream: {KILLS} kills, {COUNT} messages, {len(mortals.noted) - COUNT} done twice")
    assert sorted(await server.bodies("outputs"), key=int) == numbered(COUNT)
    await server.js.delete_stream("outputs")
