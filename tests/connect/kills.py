"""Processes that end at any moment, one after another, at a real broker: nothing is lost, and little comes twice.

``TESTS_KILLS=20 pytest -rP tests/connect/nats/test_kills.py`` kills more of them, and prints the counts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

from tests.connect import mortal
from tests.connect.place import Place
from tests.connect.sessions import numbered, soon

KILLS: Final = int(os.environ.get("TESTS_KILLS", "4"))
COUNT: Final = 600 * KILLS
"""Messages, more than they do before the last of them is killed."""
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def process(program: str, arguments: Sequence[str], count: Callable[[], int]) -> AsyncIterator[Process]:
    """A process that has begun to work, by the count of what was noted, and is gone in the end."""
    before = count()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(sys.executable, program, *arguments, cwd=ROOT, env=env)
    try:
        async with asyncio.timeout(120):
            while count() == before:
                assert process.returncode is None
                await asyncio.sleep(0.01)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Mortals:
    """Processes one after another, who note what they have done in one file."""

    def __init__(self, place: Place, folder: Path, *, lease: float = 5.0, sink: bool = False) -> None:
        self._place = place
        self._notes = folder / "notes"
        kind = f"{type(place).__module__}:{type(place).__qualname__}"
        self._arguments = [kind, place.url, place.name, str(self._notes), str(lease), "sink" if sink else ""]
        self._notes.touch()

    @property
    def noted(self) -> list[str]:
        """The messages that were done, in their order."""
        return self._notes.read_text("utf-8").split()

    def one(self) -> AbstractAsyncContextManager[Process]:
        """One of them."""
        return process(mortal.__file__, self._arguments, lambda: len(self.noted))

    async def end(self, seed: int, number: signal.Signals) -> int:
        """End one after another at a random moment, and have a last one do the rest: nothing is lost. Return how many
        messages were done twice."""
        random = Random(seed)
        await self._place.fill(*numbered(COUNT))
        for _ in range(KILLS):
            if set(self.noted) == set(numbered(COUNT)):
                break  # this process stood still while the last one did all the rest
            async with self.one() as process:
                await asyncio.sleep(random.uniform(0, 0.3))
                process.send_signal(number)
                assert await process.wait() == (0 if number is signal.SIGTERM else -number)
        if not await self.is_over():
            async with self.one() as last:
                await soon(self.is_over, 120)
                last.send_signal(signal.SIGTERM)
                assert await last.wait() == 0
        assert await self.is_over()
        return len(self.noted) - COUNT

    async def is_over(self) -> bool:
        """True if all are done, and the broker knows it."""
        return not await self._place.undone() and set(self.noted) == set(numbered(COUNT))


async def kill_readers(place: Place, folder: Path, what: str) -> None:
    """Kill processes: what comes twice was pending, or done and not yet settled."""
    doubled = await Mortals(place, folder).end(1, signal.SIGKILL)
    print(f"{what}: {KILLS} kills, {COUNT} messages, {doubled} twice")
    assert doubled <= KILLS * mortal.PENDING


async def ask_readers_to_end(place: Place, folder: Path) -> None:
    """Ask processes to end: they finish what is under way, and give back the rest, as no lease ends in the test."""
    assert await Mortals(place, folder, lease=600.0).end(2, signal.SIGTERM) == 0


async def kill_writers(place: Place, folder: Path, what: str) -> None:
    """Kill processes that write what they have read: it is all there, and nothing twice that has an id or a key."""
    await place.make_outputs()
    doubled = await Mortals(place, folder, sink=True).end(3, signal.SIGKILL)
    outputs = await place.outputs()
    again = len(outputs) - COUNT
    print(f"{what}: {KILLS} kills, {COUNT} messages, {doubled} done twice, {again} there twice")
    assert set(outputs) == set(numbered(COUNT))
    assert again <= (0 if place.keeps_once else KILLS * mortal.PENDING)
