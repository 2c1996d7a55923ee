"""``explain_stuck``: trees that are open for long are explained in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from stormlet import Bolt, Collector, Topology, Tuple
from tests.helpers import ignore

pytestmark = pytest.mark.simulated_time

LOGGER = "stormlet.runtime.explaining.stuck_trees"


class Keep(Bolt[object, None]):
    """Holds its inputs."""

    def __init__(self) -> None:
        self.held: list[Tuple[object]] = []

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Keep."""
        self.held.append(tup)


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
    await run(Keep, 1, 9.9)
    assert told(caplog) == []
    await run(Keep, 1, 100)
    (text,) = told(caplog)
    assert text.startswith("message of 'source', 0, is open for 12.5 s (root")
    assert "0 is held by bolt[0], delivered 12.5 s ago" in text


async def test_without_a_recorder_it_is_as_old_as_it_was_seen(caplog: pytest.LogCaptureFixture) -> None:
    """The text says that it may be older."""
    await run(Keep, 1, 100, record_edges=0.0)
    assert "is open for at least 10 s (root" in told(caplog)[0]


async def test_trees_that_are_settled_in_time_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """A topology that is never stuck logs nothing."""
    await run(ignore, 100, 100)
    assert told(caplog) == []


async def test_many_stuck_trees_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first three of them are explained, so that a slow consumer does not fill the log."""
    await run(Keep, 40, 100)
    texts = told(caplog)
    assert len(texts) == 4
    assert texts[-1] == "37 more trees are open for at least 10 s"


async def test_the_records_have_the_fields_of_all_others(caplog: pytest.LogCaptureFixture) -> None:
    """Topology and component can be filtered by."""
    await run(Keep, 1, 100)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert (record.__dict__["topology"], record.__dict__["component"]) == ("stuck", "source")
    assert record.levelno == logging.WARNING
