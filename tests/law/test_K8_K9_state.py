"""State as those outside see it, and state that is lost with the process (law K8, K9)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stormlet import Collector, InvalidTopology, KeyedBolt, MapOf, Running, Topology, Tuple, Value
from stormlet.cli import main
from stormlet.core.state import rounds
from stormlet.core.state.commits import Commit
from stormlet.errors import StateUnusable, TopologyCrashed
from stormlet.report.statistics import StateStatistics
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile
from stormlet.state.sqlite.reading import StateReader


class Count(KeyedBolt[str, str, None]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.total += 1


def counting(**options: object) -> tuple[Topology, object]:
    """A word count that is fed by the host."""
    topology = Topology("count", **options)  # type: ignore[arg-type]
    words = topology.spout("words", outputs=str)
    topology.bolt("count", Count, words.fields(), parallelism=2)
    return topology, words


class Slow(MemoryStore):
    """A store whose commit takes as long as the test likes."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.fails = False

    def commit(self, commit: Commit) -> None:
        self.begun.set()
        assert self.may_end.wait(20)
        if self.fails:
            raise StateUnusable("the disk is full")
        super().commit(commit)


@pytest.mark.simulated_time
async def test_K8_the_host_sees_what_is_durable() -> None:
    """What it has awaited, by key."""
    topology, words = counting()
    async with topology.run() as running:
        seen = running.state("count")
        assert dict(seen) == {}
        for word in ("moon", "sun", "moon"):
            await (await running.emit(words, word))  # type: ignore[call-overload]
        assert (dict(seen), seen["moon"], len(seen), "x" in seen) == ({"moon": 2, "sun": 1}, 2, 2, False)
    assert seen["moon"] == 2


@pytest.mark.parametrize("place", [None, "count.state"])
def test_K8_what_is_durable_can_be_asked_for_after_the_end_of_the_loop(
    place: str | None, tmp_path: Path
) -> None:
    """As by a program that has no loop of its own."""

    async def count() -> Running:
        topology, words = counting(state=None if place is None else tmp_path / place)
        async with topology.run() as running:
            await (await running.emit(words, "moon"))  # type: ignore[call-overload]
        return running

    assert dict(asyncio.run(count()).state("count")) == {"moon": 1}


@pytest.mark.asyncio
async def test_K8_an_epoch_that_is_being_written_is_not_seen() -> None:
    """Nobody outside hears of it before it is durable (law X3)."""
    topology, words = counting()
    store = Slow()
    async with topology.run(state=store) as running:
        seen = running.state("count")
        tree = await running.emit(words, "moon")  # type: ignore[call-overload]
        waiting = asyncio.ensure_future(tree)
        assert await asyncio.to_thread(store.begun.wait, 20)
        assert (dict(seen), running.health().epoch, waiting.done()) == ({}, 0, False)
        store.may_end.set()
        await waiting
        assert (dict(seen), running.health().epoch) == ({"moon": 1}, 1)


@pytest.mark.asyncio
async def test_K8_who_first_looks_while_an_epoch_is_written_sees_it_durable() -> None:
    """The look waits for the write."""
    topology, words = counting()
    store = Slow()
    async with topology.run(state=store) as running:
        tree = await running.emit(words, "moon")  # type: ignore[call-overload]
        waiting = asyncio.ensure_future(tree)
        assert await asyncio.to_thread(store.begun.wait, 20)
        threading.Timer(0.1, store.may_end.set).start()
        assert dict(running.state("count")) == {"moon": 1}
        assert store.load().epoch == 1
        await waiting


@pytest.mark.simulated_time
@pytest.mark.parametrize(("history", "first"), [(0.0, 29), (12.0, 17), (1e6, 0)])
async def test_K8_each_epoch_of_the_history_can_be_read(
    history: float, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the state is rewritten with each epoch."""
    monkeypatch.setattr(rounds, "LEAST_LOG", 1)
    topology, words = counting(state=tmp_path / "count.state", history=history)
    async with topology.run() as running:
        for number in range(30):
            await asyncio.sleep(1.0)
            await (await running.emit(words, f"word {number % 3}"))  # type: ignore[call-overload]
    with closing(StateReader(tmp_path / "count.state")) as reader:
        assert reader.epochs()[0].number == first
        for number in range(first, 31):
            assert reader.at(number).epoch == number


async def look_and_emit(topology: Topology, words: object, store: Slow, found: list[Any]) -> None:
    async with topology.run(state=store) as running:
        found += running, running.state("count")
        await (await running.emit(words, "moon"))  # type: ignore[call-overload]


@pytest.mark.asyncio
async def test_K8_sizes_in_statistics_have_an_epoch_that_is_written() -> None:
    """Also one that could not be; the number is that of the last durable one."""
    topology, words = counting()
    store = Slow()
    store.may_end.set()
    store.fails = True
    found: list[Any] = []
    with pytest.raises(TopologyCrashed):
        await look_and_emit(topology, words, store, found)
    now = found[0].statistics().epoch
    assert (now.number, now.states) == (0, {"count.total": StateStatistics(entries=1, bytes=6)})
    assert store.load().epoch == 0


@pytest.mark.asyncio
async def test_K8_what_could_not_be_written_is_never_seen() -> None:
    """Neither by who looked before nor by who looks after the crash."""
    topology, words = counting()
    store = Slow()
    store.may_end.set()
    store.fails = True
    found: list[Any] = []
    with pytest.raises(TopologyCrashed):
        await look_and_emit(topology, words, store, found)
    running, seen = found
    assert dict(seen) == {}
    with pytest.raises(StateUnusable, match="the disk is full"):
        running.state("count")


@pytest.mark.simulated_time
async def test_K8_a_state_that_does_not_exist_is_named_with_those_that_do() -> None:
    """By its bolt and its name; a stream of the bolt does as well."""

    class Two(Count):
        prices = MapOf(str, float)

    topology = Topology("count")
    two = topology.bolt("count", Two, topology.spout("words", ["a"]).fields())
    async with topology.run() as running:
        await running.finished()
        assert running.state(two, "total") == {"a": 1}
        with pytest.raises(InvalidTopology, match=r"has the states 'total' and 'prices'; name one of them"):
            running.state("count")
        with pytest.raises(
            InvalidTopology, match=r"no state 'x' of a bolt 'count'; it has \('count', 'total'\), "
        ):
            running.state("count", "x")
        with pytest.raises(InvalidTopology, match="no state of a bolt 'words'"):
            running.state("words")


@pytest.mark.simulated_time
async def test_K8_a_topology_without_state_says_so() -> None:
    """It has no epoch either."""
    topology = Topology("plain")
    topology.bolt("print", lambda value: None, topology.spout("words", ["a"]).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert (running.statistics().epoch, running.health().epoch) == (None, None)
        with pytest.raises(InvalidTopology, match="none of its bolts has any"):
            running.state("print")


@pytest.mark.simulated_time
async def test_K8_statistics_say_epoch_age_and_sizes() -> None:
    """Of what is durable, and the number of messages that are withheld until the next is."""
    topology = Topology("count", epoch_seconds=5.0)

    async def words() -> AsyncIterator[str]:
        for word in ("moon", "sun"):
            yield word
            await asyncio.sleep(7.0)

    topology.bolt("count", Count, topology.spout("words", words).fields())
    async with topology.run() as running:
        await asyncio.sleep(9.0)
        now = running.statistics().epoch
        assert now is not None
        assert (now.number, now.withheld, round(now.age or 0.0, 3)) == (1, 1, 4.0)
        assert now.states == {"count.total": StateStatistics(entries=1, bytes=6)}
        health = running.health()
        assert (health.epoch, health.epoch_age) == (1, now.age)


def test_K8_commands_see_whole_epochs_beside_a_run(tmp_path: Path) -> None:
    """Each epoch that is kept can be read."""
    from tests.state.programs import Program, differences

    with closing(StateFile(tmp_path / "words.state", "words")) as file:
        program = Program(file, seed=3)
        with closing(StateReader(tmp_path / "words.state")) as reader:
            for epoch in range(1, 20):
                program.commit()
                assert list(differences(reader.load(), 3)) == []
                first = reader.epochs()[0].number
                assert [list(differences(reader.at(each), 3, past=True)) for each in range(first, epoch)] == [
                    [] for _ in range(first, epoch)
                ]


@pytest.mark.simulated_time
async def test_K9_without_a_store_the_next_run_begins_anew() -> None:
    """All else holds, epochs among it (law K4)."""
    topology, words = counting()
    for _ in range(2):
        async with topology.run() as running:
            await (await running.emit(words, "moon"))  # type: ignore[call-overload]
            assert (running.state("count")["moon"], running.health().epoch) == (1, 1)


@pytest.mark.parametrize("command", ["check", "describe"])
def test_K9_commands_say_that_state_is_lost_with_the_process(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless the topology names a file."""
    from tests.cli.state.kept import FLOW, flow

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    flow(FLOW.replace(', state="counts.state"', ""))
    assert main([command, "flow.py"]) == 0
    assert "the state of count is lost with the process; keep it by state=" in capsys.readouterr().out
    flow()
    assert main([command, "flow.py"]) == 0
    assert "state and positions of sources are kept in counts.state" in capsys.readouterr().out
