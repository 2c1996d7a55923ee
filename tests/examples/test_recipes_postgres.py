"""The recipe of rows that are in Postgres exactly once, on a real server."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from examples.recipes.postgres import Entry, Ledger, ledger
from stormlet import Epoch, Running
from tests.connect.sessions import until
from tests.examples.postgres_kills import (
    ENTRIES,
    SLOW_COMMITS,
    ask,
    at_random,
    connected,
    execute,
    expected,
    is_committing,
    killed_often,
    rows,
)
from tests.examples.postgres_server import Server, binaries
from tests.examples.runs import RunExample

NAMES = count()
CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE state = 'active' AND query LIKE $1 AND pid <> pg_backend_pid()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server. Where Postgres is not installed the test is skipped, in CI it fails."""
    programs = binaries()
    if programs is None:
        skip_or_fail = pytest.fail if "CI" in os.environ else pytest.skip
        skip_or_fail("Postgres is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="stormlet-postgres-") as folder:
        started = Server(programs, Path(folder))
        yield started
        started.stop()


@pytest.fixture
def dsn(server: Server) -> str:
    """An empty database."""
    return server.database(f"ledger_{next(NAMES)}")


def test_each_entry_is_written_once(run_example: RunExample, dsn: str, tmp_path: Path) -> None:
    """A second run finds that all is done."""
    for _ in range(2):
        outcome = run_example(
            "recipes/postgres.py", "--arg", f"dsn={dsn}", "--state", str(tmp_path / "ledger.state")
        )
        assert outcome.code == 0, outcome.summary
        assert rows(dsn) == expected(10_000)


@pytest.mark.untraced
@pytest.mark.timeout(600)
def test_runs_that_are_killed_leave_each_entry_once(dsn: str, tmp_path: Path) -> None:
    """Two are killed at random moments, six while Postgres commits, which it goes on to do: those epochs come again,
    and are passed over."""
    random = Random(16)
    again = killed_often(
        dsn,
        tmp_path / "ledger.state",
        lambda number: at_random(random) if number % 3 == 2 else is_committing,
    )
    assert again >= 2
    assert rows(dsn) == expected()


async def to_its_end(dsn: str, path: Path, meanwhile: Callable[[Running], Awaitable[None]]) -> None:
    """Run the recipe in this process, beside what happens to it."""
    async with ledger(dsn, ENTRIES).run(state=path, epoch_messages=250) as running:
        await meanwhile(running)
        await running.finished()


@pytest.mark.parametrize("query", ["COMMIT%", "%INSERT INTO entries%"])
def test_connections_that_are_cut_leave_each_entry_once(dsn: str, tmp_path: Path, query: str) -> None:
    """In the middle of a commit, and of the inserts before it."""
    execute(dsn, SLOW_COMMITS)
    cuts: list[int] = []

    async def cut(running: Running) -> None:
        async def often(db: Any) -> None:
            deadline = monotonic() + 120
            while sum(cuts) < 5 and monotonic() < deadline:
                cuts.append(await db.fetchval(CUT, query))
                await asyncio.sleep(0.05 if cuts[-1] else 0)

        await connected(dsn, often)

    asyncio.run(to_its_end(dsn, tmp_path / "ledger.state", cut))
    assert sum(cuts) >= 5
    assert rows(dsn) == expected()


def test_a_server_that_is_away_has_the_run_wait(server: Server, dsn: str, tmp_path: Path) -> None:
    """It goes on when the server is back, and each entry is there once."""
    execute(dsn, SLOW_COMMITS)

    async def fail_for_a_second(running: Running) -> None:
        while not running.statistics().components["balance"].acked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.stop)
        await until(lambda: running.health().restarting)
        await asyncio.to_thread(server.start)

    asyncio.run(to_its_end(dsn, tmp_path / "ledger.state", fail_for_a_second))
    assert rows(dsn) == expected()


def test_two_that_bring_one_epoch_write_it_once(dsn: str) -> None:
    """As when a run was killed whose transaction goes on; also with the very first epoch."""
    entries = [Entry(number, "one", 1, number + 1) for number in range(500)]
    execute(dsn, SLOW_COMMITS)

    async def bring_at_once() -> None:
        writers = [Ledger(dsn), Ledger(dsn)]
        for each in writers:
            await each.prepare(context)
        await asyncio.gather(*(each.commit(Epoch(1, "line"), entries) for each in writers))
        for each in writers:
            await each.cleanup()

    context: Any = SimpleNamespace(topology="ledger", component="write")
    asyncio.run(bring_at_once())
    assert ask(dsn, "SELECT count(*) FROM entries") == len(entries)
