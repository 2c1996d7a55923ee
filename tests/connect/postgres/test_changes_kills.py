"""Processes that read changes and are killed at any moment: every committed one is seen, in its order.

``TESTS_KILLS=20 pytest -rP tests/connect/postgres/test_changes_kills.py`` kills more of them, and prints the counts.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import asyncpg
import pytest

from stormlet.connect.postgres.slot import PEEK
from tests.connect.kills import KILLS, ROOT, process
from tests.connect.postgres import counted_changes, mortal_changes
from tests.connect.postgres.kit import PUBLICATION, SLOT, Place
from tests.connect.sessions import soon

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]

LARGEST: Final = 40
"""Rows of a transaction."""
ALL_WITHIN: Final = 300.0
"""Seconds for the last process: the slower the others began, the more rows were written meanwhile."""
IN_AN_INTERVAL: Final = 200
"""Changes that a process has noted before the server knows of the first of them."""


class Reader:
    """Processes one after another, who note what they have seen in one file."""

    def __init__(self, url: str, notes: Path) -> None:
        self._url = url
        self._notes = notes
        notes.touch()

    @property
    def runs(self) -> list[list[int]]:
        """The ids that each of them has seen, in its order."""
        _, *runs = self._notes.read_text("utf-8").split("-\n")
        return [[int(line) for line in run.splitlines()] for run in runs]

    def one(self) -> AbstractAsyncContextManager[Process]:
        """A process that has begun to work."""
        return process(
            mortal_changes.__file__, [self._url, str(self._notes)], lambda: sum(map(len, self.runs))
        )


async def write(place: Place, seed: int, over: asyncio.Event) -> list[int]:
    """Insert rows by transactions of all sizes, one in four of which is rolled back; return those that are there, in
    the order of their commits."""
    random, numbers, there = Random(seed), count(), list[int]()
    while not over.is_set():
        some = [next(numbers) for _ in range(random.choice([1, 1, 3, LARGEST]))]
        transaction = place.client.transaction()
        await transaction.start()
        await place.client.execute("INSERT INTO orders SELECT unnest($1::int[])", some)
        if random.random() < 0.25:
            await transaction.rollback()
        else:
            await transaction.commit()
            there += some
        await asyncio.sleep(0.01)
    return there


async def nothing_comes_again(place: Place) -> bool:
    """True if the slot, which nobody reads any more, has no row left: all of them are confirmed."""
    try:
        left = await place.client.fetch(PEEK, SLOT, None, f'"{PUBLICATION}"')
    except asyncpg.ObjectInUseError:
        return False
    return not any(row["data"].startswith(b"I") for row in left)


async def test_killed_processes_miss_nothing(shop: Place, tmp_path: Path) -> None:
    """Each goes on, in order, at or before the first change that the one before had not seen."""
    await shop.client.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    await shop.client.execute(f'CREATE PUBLICATION "{PUBLICATION}" FOR TABLE orders')
    await shop.client.execute("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", SLOT)
    reader, over, random = Reader(shop.url, tmp_path / "notes"), asyncio.Event(), Random(1)
    async with Place(shop.url) as writer:
        writing = asyncio.ensure_future(write(writer, 2, over))
        for _ in range(KILLS):
            async with reader.one() as process:
                await asyncio.sleep(random.uniform(0, 0.6))
                process.kill()
                assert await process.wait() == -signal.SIGKILL
        over.set()
        there = await writing

    async def seen() -> bool:
        return reader.runs[-1][-1:] == there[-1:]

    async with reader.one() as process:
        await soon(seen, ALL_WITHIN)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    reached, again = 0, 0
    for run in reader.runs:
        if run:
            begin = there.index(run[0])
            assert begin <= reached
            assert run == there[begin : begin + len(run)]
            again, reached = again + max(0, reached - begin), max(reached, begin + len(run))
    print(f"{KILLS} kills, {len(there)} changes, {again} twice")
    assert reached == len(there)
    assert again <= KILLS * (mortal_changes.PENDING + LARGEST + IN_AN_INTERVAL)
    await soon(lambda: nothing_comes_again(shop))


async def test_killed_processes_with_a_state_count_each_change_once(shop: Place, tmp_path: Path) -> None:
    """Whatever of the state the slot knows of."""
    await shop.client.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    await shop.client.execute(f'CREATE PUBLICATION "{PUBLICATION}" FOR TABLE orders')
    await shop.client.execute("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", SLOT)
    state, over, random = str(tmp_path / "counts.state"), asyncio.Event(), Random(3)
    program = [sys.executable, counted_changes.__file__, shop.url, state]
    async with Place(shop.url) as writer:
        writing = asyncio.ensure_future(write(writer, 4, over))
        for _ in range(KILLS):
            counting = await asyncio.create_subprocess_exec(
                *program, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE
            )
            assert counting.stdout is not None
            assert await counting.stdout.readline() == b"ready\n"
            await asyncio.sleep(random.uniform(0, 0.6))
            counting.kill()
            await counting.communicate()
        over.set()
        there = await writing

    async with counted_changes.counting(shop.url, state).run() as running:

        async def all_are_counted() -> bool:
            return len(running.state("count")) == len(there)

        await soon(all_are_counted, ALL_WITHIN)
        assert dict(running.state("count")) == dict.fromkeys(there, 1)
    print(f"{KILLS} kills, {len(there)} changes, each counted once")
    await soon(lambda: nothing_comes_again(shop))
