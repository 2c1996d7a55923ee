"""The recipe of batched writes to a database."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from examples.recipes import database as recipe
from examples.recipes.database import Reading, Write, measure, stored
from stormlet import Collector, Topology, Tuple
from tests.examples.runs import RunExample
from tests.helpers import run_to_end

EXPECTED = sorted((each.station, each.hour, each.celsius) for each in measure(100, 100))


def rows(path: Path) -> list[tuple[int, int, float]]:
    """All that the file holds."""
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.execute("SELECT * FROM readings"))


def test_it_writes_to_a_temporary_file(
    run_example: RunExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path 10,000 readings are written in few transactions, and no file stays."""
    monkeypatch.chdir(tmp_path)
    outcome = run_example("recipes/database.py")
    count, transactions = outcome.lines[0].split(" readings after ")
    assert (count, outcome.code) == ("10,000", 0)
    assert 20 <= int(transactions.removesuffix(" transactions")) <= 40
    assert list(tmp_path.iterdir()) == []


def test_it_writes_to_a_file(run_example: RunExample, tmp_path: Path) -> None:
    """With a path exactly the readings are in the file; a second run over it changes nothing."""
    for _ in range(2):
        outcome = run_example("recipes/database.py", "--arg", f"path={tmp_path / 'readings.db'}")
        assert outcome.code == 0
        assert rows(tmp_path / "readings.db") == EXPECTED


class Failing(Write):
    """Of the first thirty batches every third fails in the middle, every fifth after its commit."""

    calls = halves = kept_halves = 0

    def execute_batch(self, tups: Sequence[Tuple[Reading]], out: Collector[None]) -> None:
        """Write, or fail."""
        Failing.calls += 1
        if Failing.calls <= 30 and Failing.calls % 3 == 0:
            self.fail_in_the_middle(tups, out)
        super().execute_batch(tups, out)
        if Failing.calls <= 30 and Failing.calls % 5 == 0:
            raise ConnectionError("lost after the commit")

    def fail_in_the_middle(self, tups: Sequence[Tuple[Reading]], out: Collector[None]) -> None:
        before = list(self.db.execute("SELECT * FROM readings"))
        self.db.set_progress_handler(lambda: 1, 1000)  # interrupts after a thousand instructions
        try:
            super().execute_batch(tups, out)
        except sqlite3.OperationalError:
            self.db.set_progress_handler(None, 0)
            Failing.halves += 1
            Failing.kept_halves += list(self.db.execute("SELECT * FROM readings")) != before
            raise
        self.db.set_progress_handler(None, 0)  # the batch was too small to be interrupted


@pytest.mark.simulated_time
async def test_batches_that_fail_are_written_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures before and after the commit lose nothing and double nothing, and every message is acked."""
    monkeypatch.setattr(recipe, "Write", Failing)
    path = tmp_path / "readings.db"
    running = await run_to_end(stored(str(path)), seed=1, max_attempts=50, replay_delay=0)
    assert rows(path) == EXPECTED
    counts = running.statistics().components["measure"]
    assert (counts.acked, counts.dead_letters) == (10_000, 0)
    assert counts.replayed >= 1000
    assert Failing.halves >= 3
    assert Failing.kept_halves == 0


def test_the_driver_runs_in_one_thread_of_its_own(tmp_path: Path) -> None:
    """Connecting, writing and closing happen in one thread, which is not that of the loop and ends with the run."""
    seen: list[str] = []

    class Watched(Write):
        def prepare(self, context: object) -> None:
            seen.append(threading.current_thread().name)
            super().prepare(context)  # type: ignore[arg-type]

        def execute_batch(self, tups: Sequence[Tuple[Reading]], out: Collector[None]) -> None:
            seen.append(threading.current_thread().name)
            super().execute_batch(tups, out)

        def cleanup(self) -> None:
            seen.append(threading.current_thread().name)
            super().cleanup()

    topology = Topology("watched")
    readings = topology.spout("measure", partial(measure, 10, 100))
    topology.bolt("write", lambda: Watched(str(tmp_path / "x.db")), readings.global_(), executor="thread")
    asyncio.run(run_to_end(topology))
    assert len(seen) >= 4
    assert set(seen) == {"write[0]_0"}
    for thread in threading.enumerate():
        if thread.name.startswith("write"):
            thread.join(5)
            assert not thread.is_alive()
