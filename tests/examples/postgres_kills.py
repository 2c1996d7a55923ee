"""Kills runs of the recipe for Postgres, over and over, and compares what is there in the end:
``python -m tests.examples.postgres_kills --kills 100 --seed 1``."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, TypeVar

import asyncpg

from examples.recipes.postgres import TABLES, transfers
from stormlet.state.sqlite.reading import StateReader
from tests.examples.postgres_server import Server, binaries

ROOT = Path(__file__).parents[2]
LIVES = 8
"""Kills, until a new database is begun."""
ENTRIES = 10_000
T = TypeVar("T")

SLOW_COMMITS = f"""
{TABLES};
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.number % 500 = 499) EXECUTE FUNCTION wait();
"""
"""Each 500th entry holds up the commit of its transaction, for long enough to be seen on a machine with other work."""
COMMITTING = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COMMIT%'"
OTHERS = """
SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
"""
NOTED = "SELECT coalesce(max(epoch), 0) FROM stormlet_epochs"


def expected(number: int = ENTRIES) -> Counter[tuple[Any, ...]]:
    """Direct computation."""
    balances: Counter[str] = Counter()
    found: Counter[tuple[Any, ...]] = Counter()
    for each in transfers(number):
        balances[each.account] += each.cents
        found[each.number, each.account, each.cents, balances[each.account]] += 1
    return found


async def connected(dsn: str, ask: Callable[[Any], Awaitable[T]]) -> T:
    """What a connection of its own answers."""
    connection = await asyncpg.connect(dsn)
    try:
        return await ask(connection)
    finally:
        await connection.close()


def ask(dsn: str, query: str, *arguments: object) -> Any:
    return asyncio.run(connected(dsn, lambda db: db.fetchval(query, *arguments)))


def execute(dsn: str, statements: str) -> None:
    asyncio.run(connected(dsn, lambda db: db.execute(statements)))


def rows(dsn: str) -> Counter[tuple[Any, ...]]:
    """The table."""
    found = asyncio.run(connected(dsn, lambda db: db.fetch("SELECT * FROM entries")))
    return Counter(tuple(row) for row in found)


class Life:
    """A run in a process of its own."""

    def __init__(self, dsn: str, path: Path) -> None:
        run = [sys.executable, "-m", "stormlet", "run", "examples/recipes/postgres.py"]
        given = ["--arg", f"dsn={dsn}", "--arg", f"count={ENTRIES}", "--set", "epoch_messages=500"]
        self.dsn = dsn
        self.process = subprocess.Popen(
            [*run, *given, "--state", str(path)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> int:
        """Let it come to its end."""
        try:
            return self.process.wait(300)
        finally:
            self.process.kill()

    def kill_when(self, is_time: Callable[[Any], Awaitable[bool]]) -> None:
        """Kill it as soon as that is true of the database; all that it has begun there ends by itself."""
        asyncio.run(connected(self.dsn, lambda db: self._kill_when(db, is_time)))

    async def _kill_when(self, db: Any, is_time: Callable[[Any], Awaitable[bool]]) -> None:
        deadline = monotonic() + 120
        try:
            while self.process.poll() is None and not await is_time(db):
                assert monotonic() < deadline, "that has never come"
                await asyncio.sleep(0.001)
        finally:
            self.process.kill()
            self.process.wait()
        while await db.fetchval(OTHERS):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def is_committing(db: Any) -> bool:
    """A transaction has begun to commit."""
    return bool(await db.fetchval(COMMITTING))


def at_random(random: Random) -> Callable[[Any], Awaitable[bool]]:
    """Some time after the first epoch of this life."""
    began: list[int] = []

    async def is_time(db: Any) -> bool:
        noted = await db.fetchval(NOTED)
        began.append(noted)
        if noted == began[0]:
            return False
        await asyncio.sleep(random.uniform(0, 0.15))
        return True

    return is_time


def comes_again(dsn: str, path: Path) -> bool:
    """True if Postgres has an epoch that the state does not know to be delivered."""
    reader = StateReader(path)
    try:
        return ask(dsn, NOTED) in {waiting.epoch for waiting in reader.load().outbox}
    finally:
        reader.close()


def killed_often(dsn: str, path: Path, moments: Callable[[int], Callable[[Any], Awaitable[bool]]]) -> int:
    """Kill some lives, and let the last one come to its end. Returns how many epochs came again of those that Postgres
    had."""
    execute(dsn, SLOW_COMMITS)
    again = 0
    for number in range(LIVES):
        Life(dsn, path).kill_when(moments(number))
        again += comes_again(dsn, path)
    assert Life(dsn, path).end() == 0
    return again


def main() -> None:
    """Go on until something is wrong, or there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        sys.exit("Postgres is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as states, tempfile.TemporaryDirectory() as folder:
        server = Server(programs, Path(folder))
        try:
            campaign(server, Path(states), options.kills, Random(options.seed))
        finally:
            server.stop()


def campaign(server: Server, states: Path, kills: int, random: Random) -> None:
    """Kill so many runs, at random moments and while Postgres commits, as chance has it."""
    again = 0
    for number in range(-(-kills // LIVES)):
        dsn = server.database(f"ledger_{number}")
        again += killed_often(
            dsn, states / f"{number}.state", lambda _: random.choice([is_committing, at_random(random)])
        )
        if rows(dsn) != expected():
            sys.exit(f"database {number} differs")
        print(f"{(number + 1) * LIVES} kills, {again} epochs came again, each entry once", flush=True)


if __name__ == "__main__":
    main()
