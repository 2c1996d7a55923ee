"""The page "Why is it stuck?": what the log says of old trees."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from stormlet import EndOfStream, Failure, Spout, SpoutCollector, Topology
from tests.cast import Hold

LOGGER = "stormlet.runtime.explain.stuck"

Told = Callable[[], list[str]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    """The first lines of what the log has said since."""

    def take() -> list[str]:
        found = [record.getMessage().splitlines()[0] for record in caplog.records if record.name == LOGGER]
        caplog.clear()
        return [re.sub(r"root \d+", "root", line) for line in found]

    return take


async def run(source: Any, seconds: float, bolt: Any = Hold, **options: Any) -> None:
    topology = Topology("stuck", drain_timeout=0, explain_stuck=10)
    topology.bolt("bolt", bolt, topology.spout("source", source).shuffle())
    async with topology.run(**{"message_timeout": None, **options}):
        await asyncio.sleep(seconds)


@pytest.mark.simulated_time
async def test_once(told: Told) -> None:
    """`--explain-stuck SECONDS` explains each tree that is open for longer once, at half of these seconds later at the
    latest.
    """
    for begins in (0, 0.1, 1, 2.4, 2.6, 5):

        async def late(begins: float = begins) -> AsyncIterator[int]:
            await asyncio.sleep(begins)
            yield 1
            await asyncio.sleep(1000)

        await run(late, 9.9 + begins)
        assert told() == []
        await run(late, 15 + begins)
        assert len(told()) == 1
        await run(late, 500)
        assert len(told()) == 1


@pytest.mark.simulated_time
async def test_three_at_once(told: Told) -> None:
    """At one look three trees are explained and the others counted, and fifty in one run, so that a slow consumer does
    not fill the log.
    """
    await run(range(40), 100)
    lines = told()
    assert len(lines) == 4
    assert lines[-1] == "37 more trees are open for at least 10 s"

    async def slowly() -> AsyncIterator[int]:
        for number in range(100):
            yield number
            await asyncio.sleep(5)

    await run(slowly, 600)
    lines = told()
    assert sum(line.startswith("message") for line in lines) == 50


async def refuse_later(number: int) -> None:
    await asyncio.sleep(6)
    raise LookupError(number)


class Again(Spout[int]):
    """Replays by itself, five times in all."""

    left, due = 5, True

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        if self.due:
            self.left, self.due = self.left - 1, False
            out.emit(1, message_id=1)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.due = True


@pytest.mark.simulated_time
async def test_attempts(told: Told) -> None:
    """The attempts at a message that the engine replays are added up. What is not replayed, or by a `Spout` class
    itself, times out before it is explained unless the seconds are less than `message_timeout`; where they are not, a
    warning says so.
    """
    await run([1], 100, refuse_later)
    assert len(told()) == 1
    warning = "explain_stuck=10 is not below message_timeout=5: a tree times out before it is explained"
    for source, explained in (([1], 1), (Again, 0)):
        await run(source, 100, message_timeout=5)
        first, *others = told()
        assert first.startswith(warning)
        assert len(others) == explained
    await run([1], 100, message_timeout=5, max_attempts=1)
    assert len(told()) == 1
    await run(Again, 200, message_timeout=20)
    assert len(told()) == 5


@pytest.mark.simulated_time
async def test_the_log(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    """For topologies in a host, the option `explain_stuck=SECONDS` does the same; the log is that of
    `stormlet.runtime.explain.stuck`, at the level WARNING.
    """
    await run([1], 100)
    (record,) = [each for each in caplog.records if "is open for" in each.getMessage()]
    assert (record.name, record.levelno) == (LOGGER, logging.WARNING)
    assert len(told()) == 1
