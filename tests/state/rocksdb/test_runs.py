"""Topologies whose state is in RocksDB."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormlet import (
    Collector,
    Committer,
    DeadLetter,
    Epoch,
    KeyedBolt,
    MapOf,
    SqliteTable,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.state.commits import StateId
from stormlet.core.state.committed import Committed
from stormlet.errors import StartFailed, StateUnusable
from stormlet.runtime.epochs.states import KeptState
from stormlet.runtime.run.entry import Run
from stormlet.state.memory import MemoryStore
from stormlet.state.rocksdb.database import Database
from stormlet.state.stores import reader
from tests.helpers import run_to_end
from tests.law import test_X8_redeliveries as redelivering
from tests.state.test_full_disk import largest_file

WORDS = [f"word {number * 7 % 23}" for number in range(400)]
PLACE = Path("counts.rocksdb")

pytestmark = pytest.mark.simulated_time


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Count(KeyedBolt[str, str, str]):
    """Counts words, and the epochs that have brought them."""

    total = Value(int, 0)
    seen = MapOf(float, int)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1
        self.seen[self.now] = self.seen.get(self.now, 0) + 1
        out.emit(tup.value)


class Keep(Committer[str]):
    """Has rows of epochs."""

    def __init__(self, had: list[tuple[int, Sequence[str]]]) -> None:
        self._had = had

    def commit(self, epoch: Epoch, rows: Sequence[str]) -> None:
        self._had.append((epoch.number, rows))


def counting(words: Sequence[str], *, parallelism: int = 2, **options: Any) -> Topology:
    def source() -> Iterator[str]:
        yield from words

    topology = Topology("counts", state=PLACE, epoch_messages=50, **options)
    counted = topology.bolt("count", Count, topology.spout("words", source).fields(), parallelism=parallelism)
    topology.bolt("keep", partial(Keep, HAD), counted.global_())
    return topology


async def without_room(run: Run) -> None:
    """Have a run whose directory may not grow."""
    async with run as running:
        with largest_file(size_of_log() + 1000):
            await running.finished()


def size_of_log() -> int:
    """The bytes of what RocksDB adds to at each commit."""
    return max(each.stat().st_size for each in PLACE.glob("*.log"))


HAD: list[tuple[int, Sequence[str]]] = []


TOTAL, SEEN = StateId("count", "total"), StateId("count", "seen")


def kept(topology: Topology, id: StateId = TOTAL) -> dict[Any, Any]:
    """What is durable, as the next run would find it."""
    with closing(reader(PLACE)) as found:
        states = KeptState(MemoryStore(), found.load(), topology.describe()).states
        (wanted,) = [each for each in states if each.id == id]
        return dict(Committed(wanted))


async def test_runs_go_on_from_each_other() -> None:
    """Each word counts once, also with another parallelism in each run, and each row is delivered once."""
    HAD.clear()
    for length, parallelism in ((120, 1), (121, 3), (400, 2)):
        topology = counting(WORDS[:length], parallelism=parallelism)
        await run_to_end(topology)
        assert kept(topology) == Counter(WORDS[:length])
        seen = kept(topology, SEEN)
        assert {key: sum(each.values()) for key, each in seen.items()} == Counter(WORDS[:length])
    assert Counter(row for _, rows in HAD for row in rows) == Counter(WORDS)
    assert [number for number, _ in HAD] == list(range(1, len(HAD) + 1))


async def test_nothing_is_in_memory_but_what_two_epochs_have_touched() -> None:
    """However many keys there are."""
    await run_to_end(counting([f"word {number}" for number in range(400)]))
    topology = counting([*[f"word {number}" for number in range(400)], "word 3", "word 7"])
    async with topology.run() as running:
        await running.finished()
        seen: Any = running.state("count", "total")
        assert len(seen) == seen._state.size == 400
        assert sum(len(table.live) + len(table.former) for table in seen._state.tables) <= 2


async def test_statistics_say_how_many_entries_there_are() -> None:
    """Those of earlier runs, too."""
    await run_to_end(counting(WORDS[:100]))
    async with counting(WORDS).run() as running:
        await running.finished()
        states = running.statistics().epoch.states  # type: ignore[union-attr]
    assert states["count.total"].entries == 23
    assert 23 * 5 < states["count.total"].bytes < 23 * 30


@pytest.mark.parametrize("fails_at", [1, 15])
async def test_what_cannot_be_read_crashes_the_run(fails_at: int) -> None:
    """It is no fault of the message, which is neither given up nor passed over (law X4)."""
    await run_to_end(counting(WORDS[:100]))
    get, calls, letters = Database.get, [0], list[DeadLetter]()

    def fail(self: Database, key: bytes) -> bytes | None:
        calls[0] += key.startswith(b"s")
        if calls[0] == fails_at:
            raise StateUnusable("counts.rocksdb is damaged (block checksum mismatch); put a saved copy")
        return get(self, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "get", fail)
        with pytest.raises(TopologyCrashed, match=r"is damaged \(block checksum mismatch"):
            await run_to_end(counting(WORDS), dead_letters=letters.append)
    assert letters == []
    await run_to_end(counting(WORDS))
    assert kept(counting(WORDS)) == Counter(WORDS)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
async def test_a_run_that_had_no_room_has_let_go_of_its_directory() -> None:
    """The same process can run it again, also while it keeps what it had of the first run."""
    run = counting(WORDS).run()
    with pytest.raises(TopologyCrashed, match=r"counts\.rocksdb cannot be read or written"):
        await without_room(run)
    await run_to_end(counting(WORDS))
    assert kept(counting(WORDS)) == Counter(WORDS)
    assert run.crashed


async def test_a_table_in_the_states_own_file_is_refused() -> None:
    """Before anything runs, with the way out."""
    topology = counting(WORDS)
    words = topology.spout("rows", ["a"])
    topology.bolt("write", SqliteTable("rows", str), words.global_())
    with pytest.raises(
        (StateUnusable, StartFailed), match=r"committer 'write' writes the table 'rows' .* path= of"
    ):
        await run_to_end(topology)


async def test_a_history_is_refused() -> None:
    """Before anything runs, with the way out."""
    with pytest.raises(
        StateUnusable, match=r"counts\.rocksdb cannot keep a history, .* name does not end with"
    ):
        await run_to_end(counting(WORDS, history=60.0))


@pytest.mark.simulated_time(allow_leaks=True)
async def test_what_a_broker_gives_again_is_acked_and_not_executed() -> None:
    """Its ids are in the store until they were acked (law X8)."""
    place: Any = PLACE
    broker, again = redelivering.Broker("aab"), redelivering.Broker("aabc")
    cut, _ = redelivering.counting(broker, redelivering.Cut, max_restarts=0)
    with pytest.raises(TopologyCrashed):
        await redelivering.whole(cut, broker, place)
    topology, _ = redelivering.counting(again)
    ids = StateId("words", "redelivered")
    assert [*kept(topology, ids)] == [0, 1, 2]
    await redelivering.whole(topology, again, place)
    assert kept(topology) == {"a": 2, "b": 1, "c": 1}
    assert (sorted(again.acked), kept(topology, ids)) == ([0, 1, 2, 3], {})
