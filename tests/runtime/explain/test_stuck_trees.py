"""``explain_stuck``: trees that are open for long are explained in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from stormlet import Collector, Topology, Tuple
from stormlet.runtime.explain import stuck as stuck_trees
from stormlet.runtime.explain.stuck import StuckTrees
from tests.cast import Hold, ignore
from tests.helpers import now

pytestmark = pytest.mark.simulated_time

LOGGER = "stormlet.runtime.explain.stuck"


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def run(bolt: Any, messages: int, seconds: float, **options: Any) -> None:
    topology = Topology("stuck", drain_timeout=0, message_timeout=None, explain_stuck=10)
    source = topology.spout("source")
    topology.bolt("bolt", bolt, source.shuffle())
    async with topology.run(**options) as running:
        running.record_edges(options.get("record_edges", 1.0))
        for number in range(messages):
            await running.emit(source, number)
        await asyncio.sleep(seconds)


async def test_a_tree_is_explained_once(caplog: pytest.LogCaptureFixture) -> None:
    """After so many seconds, and a quarter of them later at most; not again, however long it stays open."""
    await run(Hold, 1, 9.9)
    assert told(caplog) == []
    await run(Hold, 1, 100)
    (text,) = told(caplog)
    assert text.startswith("message of 'source', 0, is open for 12.5 s (root")
    assert "0 is held by bolt[0], delivered 12.5 s ago" in text


async def test_without_a_recorder_it_is_as_old_as_it_was_seen(caplog: pytest.LogCaptureFixture) -> None:
    """The text says that it may be older."""
    await run(Hold, 1, 100, record_edges=0.0)
    assert "is open for at least 10 s (root" in told(caplog)[0]


async def test_trees_that_are_settled_in_time_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """A topology that is never stuck logs nothing."""
    await run(ignore, 100, 100)
    assert told(caplog) == []


async def test_many_stuck_trees_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first three of them are explained, so that a slow consumer does not fill the log."""
    await run(Hold, 40, 100)
    texts = told(caplog)
    assert len(texts) == 4
    assert texts[-1] == "37 more trees are open for at least 10 s"


async def test_a_run_explains_so_many_and_then_only_counts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that is stuck each day does not fill its log with explanations; and none of what is over is kept."""
    monkeypatch.setattr(stuck_trees, "IN_ALL", 5)
    watchers: list[StuckTrees] = []
    monkeypatch.setattr(StuckTrees, "_warn", lambda watcher, timeout: watchers.append(watcher))
    topology = Topology("stuck", drain_timeout=0, message_timeout=9.0, explain_stuck=10)
    source = topology.spout("source")
    topology.bolt("bolt", Hold, source.shuffle())
    async with topology.run() as running:
        for day in range(20):
            await running.emit(source, day, attempts=3)
            await asyncio.sleep(100)
        (watcher,) = watchers
        assert not watcher._seen  # pyright: ignore[reportPrivateUsage] - memory has no public face
    texts = told(caplog)
    assert sum(text.startswith("message of 'source'") for text in texts) == 5
    assert texts[5:] == ["one more tree is open for at least 10 s"] * 15


async def test_the_records_have_the_fields_of_all_others(caplog: pytest.LogCaptureFixture) -> None:
    """Topology and component can be filtered by."""
    await run(Hold, 1, 100)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert (record.__dict__["topology"], record.__dict__["component"]) == ("stuck", "source")
    assert record.levelno == logging.WARNING


async def test_the_attempts_at_a_message_are_added_up(caplog: pytest.LogCaptureFixture) -> None:
    """A message that times out and is replayed, again and again, is told once, with its running attempt and with what
    went wrong before."""
    topology = Topology("again", drain_timeout=0, message_timeout=4, max_attempts=1000, explain_stuck=10)
    topology.bolt("keep", Hold, topology.spout("numbers", [7]).shuffle())
    async with topology.run():
        await asyncio.sleep(100)
    _, text = told(caplog)
    head, *rest = text.splitlines()
    assert head.startswith("message 0 of 'numbers', 7, is open for at least 10 s (root ")
    assert ", attempt 3 for " in head
    assert sum("timeout, held by 'keep'" in line for line in rest) == 2


async def test_a_replay_that_waits_is_not_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """The time between two attempts counts; what is told is told when there is a tree to look at."""

    class Second(Hold):
        async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:  # type: ignore[override]
            await asyncio.sleep(3)
            if tup.attempt == 1:
                raise LookupError
            super().execute(tup, out)

    topology = Topology("waits", drain_timeout=0, message_timeout=None, explain_stuck=10, replay_delay=8)
    topology.bolt("second", Second, topology.spout("numbers", [7]).shuffle())
    async with topology.run():
        await asyncio.sleep(16)
    (text,) = told(caplog)
    assert "7 is held by second[0]" in text or "7 is executed by second[0]" in text
    assert "attempt 1 failed after 3 s" in text


async def test_what_fails_too_early_to_be_told(caplog: pytest.LogCaptureFixture) -> None:
    """Where trees time out before, a warning at the start says so."""

    for timeout, warnings in ((10.5, 0), (10, 1), (None, 0)):
        caplog.clear()
        topology = Topology("early", drain_timeout=0, message_timeout=timeout, explain_stuck=10)
        topology.bolt("ignore", ignore, topology.spout("source").shuffle())
        async with topology.run():
            await asyncio.sleep(1)
        assert len(told(caplog)) == warnings, timeout
        if warnings:
            assert told(caplog)[0] == (
                "explain_stuck=10 is not below message_timeout=10: a tree times out before it is explained, unless it "
                "is one of the later attempts at a message that the engine replays"
            )


async def test_a_tree_that_is_put_off_is_not_told_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``reset_timeout`` puts it behind others, so that it is not among those that time out first for a while."""
    monkeypatch.setattr(stuck_trees, "WATCHED", 1)

    class PutOff(Hold):
        def tick(self, out: Collector[None]) -> None:
            out.reset_timeout(self.held[int(now() // 20) % 2])

    topology = Topology("put off", drain_timeout=0, message_timeout=60, explain_stuck=10, tick=1.0)
    source = topology.spout("source")
    topology.bolt("put_off", PutOff, source.shuffle())
    async with topology.run() as running:
        for number in range(2):
            await running.emit(source, number)
        await asyncio.sleep(200)
    assert sorted(text.splitlines()[0].split(",")[1] for text in told(caplog)) == [" 0", " 1"]
