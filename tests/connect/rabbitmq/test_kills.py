"""Processes that end at any moment, at a real RabbitMQ: nothing is lost, and little comes twice.

``STORMLET_KILLS=20 pytest -rP tests/connect/rabbitmq/test_kills.py`` kills more of them, and prints the counts.
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

from tests.connect.rabbitmq import mortal
from tests.connect.rabbitmq.kit import Rabbit, numbered

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

KILLS: Final = int(os.environ.get("STORMLET_KILLS", "4"))
COUNT: Final = 600 * KILLS
"""Messages, more than they do before the last of them is killed."""
ROOT = Path(__file__).parents[3]


class Mortals:
    """Processes one after another, who note what they have done in one file."""

    def __init__(self, rabbit: Rabbit, notes: Path, sink: str = "") -> None:
        self._arguments = [rabbit.url, rabbit.queue, str(notes), sink]
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
        """All that they have noted."""
        return self._notes.read_text().split()

    async def end(self, rabbit: Rabbit) -> None:
        """Have one of them do the rest."""
        async with self.one() as process:
            while set(self.noted) != set(numbered(COUNT)):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert await rabbit.ready() == 0


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_process_that_is_killed_loses_nothing(rabbit: Rabbit, kind: str, tmp_path: Path) -> None:
    """At random moments, several times. What comes twice was pending, or done and not yet settled."""
    kills, random = KILLS, Random(1)
    await rabbit.declare(x_queue_type=kind)
    await rabbit.publish_many(numbered(COUNT))
    mortals = Mortals(rabbit, tmp_path / "notes")
    for _ in range(kills):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.kill()
    await mortals.end(rabbit)
    doubled = len(mortals.noted) - COUNT
    print(f"{kind}: {kills} kills, {COUNT} messages, {doubled} twice")
    assert doubled <= kills * mortal.PENDING


async def test_a_process_that_is_asked_to_end_repeats_nothing(rabbit: Rabbit, tmp_path: Path) -> None:
    """It finishes what is under way, and gives back the rest."""
    random = Random(2)
    await rabbit.declare()
    await rabbit.publish_many(numbered(COUNT))
    mortals = Mortals(rabbit, tmp_path / "notes")
    for _ in range(KILLS):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    await mortals.end(rabbit)
    assert sorted(mortals.noted, key=int) == numbered(COUNT)


async def test_what_a_killed_process_publishes_is_all_there(rabbit: Rabbit, tmp_path: Path) -> None:
    """From queue to queue at least once: an input is acked when its output is confirmed."""
    kills, random = KILLS, Random(3)
    await rabbit.declare()
    done = await rabbit.declare(f"{rabbit.queue} done")
    await rabbit.publish_many(numbered(COUNT))
    mortals = Mortals(rabbit, tmp_path / "notes", done)
    for _ in range(kills):
        async with mortals.one() as process:
            await asyncio.sleep(random.uniform(0, 0.3))
            process.kill()
    await mortals.end(rabbit)
    published = await rabbit.bodies(done)
    assert set(published) == set(numbered(COUNT))
    doubled = len(published) - COUNT
    print(f"queue to queue: {kills} kills, {COUNT} messages, {doubled} published twice")
    assert doubled <= kills * mortal.PENDING
