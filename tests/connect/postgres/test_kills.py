"""Processes that end at any moment, at a real Postgres: nothing is lost, and little comes twice.

``STORMLET_KILLS=20 pytest -rP tests/connect/postgres/test_kills.py`` kills more of them, and prints the counts.
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

from stormlet.connect.postgres import Put
from tests.connect.postgres import mortal
from tests.connect.postgres.kit import Place, numbered

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

KILLS: Final = int(os.environ.get("STORMLET_KILLS", "4"))
COUNT: Final = 600 * KILLS
"""Rows, more than they do before the last of them is killed."""
ROOT = Path(__file__).parents[3]


class Mortals:
    """Processes one after another, who note what they have done in one file."""

    def __init__(self, place: Place, notes: Path, sink: str = "") -> None:
        self._place = place
        self._arguments = [place.url, str(notes), sink]
        self._notes = notes
        self._notes.touch()

    async def begin(self) -> None:
        """Have rows."""
        await self._place.write(Put[str](self._place.url, "orders", create=True), *numbered(COUNT))

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

    async def ended(self, seed: int, number: signal.Signals) -> None:
        """End one after another at a random moment, and then have one do the rest."""
        random = Random(seed)
        for _ in range(KILLS):
            async with self.one() as process:
                await asyncio.sleep(random.uniform(0, 0.3))
                process.send_signal(number)
                assert await process.wait() == (0 if number is signal.SIGTERM else -number)
        if await self._place.rows():
            async with self.one() as process, asyncio.timeout(120):
                while await self._place.rows():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        assert set(self.noted) == set(numbered(COUNT))

    @property
    def noted(self) -> list[str]:
        """The rows that were done, in their order."""
        return self._notes.read_text("utf-8").split()


async def test_killed_processes_lose_nothing(place: Place, tmp_path: Path) -> None:
    """What was pending comes again when its lease is over."""
    mortals = Mortals(place, tmp_path / "notes")
    await mortals.begin()
    await mortals.ended(1, signal.SIGKILL)
    doubled = len(mortals.noted) - COUNT
    print(f"{KILLS} kills, {COUNT} rows, {doubled} twice")
    assert doubled <= KILLS * mortal.PENDING


async def test_a_process_that_is_asked_to_end_repeats_nothing(place: Place, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    mortals = Mortals(place, tmp_path / "notes")
    await mortals.begin()
    await mortals.ended(2, signal.SIGTERM)
    assert sorted(mortals.noted, key=int) == numbered(COUNT)


async def test_what_a_killed_process_writes_is_there_once(place: Place, tmp_path: Path) -> None:
    """By the key of the rows."""
    await place.client.execute("CREATE TABLE done (id int PRIMARY KEY)")
    mortals = Mortals(place, tmp_path / "notes", "done")
    await mortals.begin()
    await mortals.ended(3, signal.SIGKILL)
    print(f"queue to table: {KILLS} kills, {COUNT} rows, {len(mortals.noted) - COUNT} done twice")
    assert await place.rows("id", "done") == list(range(COUNT))
