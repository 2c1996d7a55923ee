"""User code that holds up the start or the end of a topology, or a restart, is named by the log meanwhile."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any

import pytest

from stormlet import Bolt, Collector, Spout, SpoutCollector, TaskContext, Topology, Tuple
from stormlet.runtime import slow_code
from tests.cast import Ack, Silent, ignore
from tests.epochs.stores import Kept
from tests.helpers import now

LOGGER = "stormlet.runtime.slow_code"
LATE = 60.0


async def swallow_everything() -> None:
    """Go on until a minute is over, however often it is cancelled."""
    while now() < LATE:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(LATE - now())


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Without the line numbers of files."""
    return [
        re.sub(r"\.py:\d+", ".py", record.getMessage()) for record in caplog.records if record.name == LOGGER
    ]


class Stubborn(Bolt[object, None]):
    async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        await swallow_everything()


class SlowToCleanUp(Ack):
    async def cleanup(self) -> None:
        await swallow_everything()


async def leave(bolt: Any, source: Any, **options: Any) -> float:
    """Run for a second, and leave; returns when that was done."""
    topology = Topology("stubborn", drain_timeout=0)
    topology.bolt("bolt", bolt, topology.spout("source", source).shuffle(), **options)
    async with topology.run():
        await asyncio.sleep(1)
    return now()


STILL_RUNS = (
    "topology 'stubborn' cannot end: {} still runs 5 s after it was asked to end, in {} (test_slow_ends.py) > "
    "swallow_everything (test_slow_ends.py) > sleep (tasks.py)"
)


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("bolt", "options", "method"),
    [
        (Stubborn, {}, "Stubborn.execute"),
        (Stubborn, {"concurrency": 2}, "Stubborn.execute"),
        (SlowToCleanUp, {}, "SlowToCleanUp.cleanup"),
    ],
)
async def test_a_bolt_that_holds_up_the_end_is_named(
    bolt: Any, options: Any, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, after five seconds, with what it is in and where; the end waits for it all the same."""
    assert await leave(bolt, [1], **options) >= LATE
    assert told(caplog) == [STILL_RUNS.format("bolt[0]", method)]
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert (record.levelno, record.__dict__["component"]) == (logging.WARNING, "bolt")


class Source(Spout[int]):
    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        await swallow_everything()


async def generator() -> AsyncIterator[int]:
    await swallow_everything()
    yield 1


@pytest.mark.simulated_time
@pytest.mark.parametrize(("source", "name"), [(Source, "Source.next_tuple"), (generator, "generator")])
async def test_a_spout_that_holds_up_the_end_is_named(
    source: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its tasks end first, before those of the bolts are asked to."""
    assert await leave(ignore, source) >= LATE
    assert told(caplog) == [STILL_RUNS.format("source[0]", name)]


@pytest.mark.simulated_time
async def test_many_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Three are named, so that the log is not filled."""
    assert await leave(Stubborn, range(10), parallelism=8) >= LATE
    assert len(told(caplog)) == 4
    assert told(caplog)[-1] == "topology 'stubborn' waits for 5 more tasks"


@pytest.mark.simulated_time
async def test_who_ends_in_time_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    """A bolt may take some seconds to clean up."""

    class Brief(SlowToCleanUp):
        async def cleanup(self) -> None:
            await asyncio.sleep(4.9)

    await leave(Brief, [1])
    assert told(caplog) == []


class Hangs(Ack):
    """The first instance hangs in a method when it is closed, or the second one when it is prepared."""

    seconds = LATE

    def __init__(self, method: str, made: list[Any]) -> None:
        made.append(self)
        self.hangs = (method, len(made)) in (("cleanup", 1), ("prepare", 2))
        self.method = method

    async def prepare(self, context: TaskContext) -> None:
        await self._hang("prepare")

    async def cleanup(self) -> None:
        await self._hang("cleanup")

    async def _hang(self, method: str) -> None:
        if self.hangs and method == self.method:
            await asyncio.sleep(self.seconds)


class HangingSpout(Silent):
    """The second instance hangs when it is opened."""

    def __init__(self, made: list[Any]) -> None:
        made.append(self)
        self.hangs = len(made) == 2

    async def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        if self.hangs:
            await asyncio.sleep(LATE)


async def kill(component: str, bolt: Any, source: Any, **options: Any) -> list[tuple[str, ...]]:
    """Kill a task that hangs in its restart; returns who is being restarted before, meanwhile and after that."""
    topology = Topology("stubborn", drain_timeout=0)
    topology.bolt("bolt", bolt, topology.spout("source", source).shuffle(), **options)
    seen: list[tuple[str, ...]] = []
    async with topology.run() as running:
        await asyncio.sleep(1)
        seen.append(running.health().restarting)
        running.kill(component)
        for seconds in (LATE - 10, 20):
            await asyncio.sleep(seconds)
            seen.append(running.health().restarting)
    assert running.health().restarting == ()
    return seen


NOT_RESTARTED = (
    "{} of topology 'stubborn' is not restarted yet: for 5 s it has been in {} (test_slow_ends.py) > "
)


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["prepare", "cleanup"])
async def test_a_bolt_that_hangs_in_its_restart_is_named(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, after five seconds; and by health() for as long as that takes."""
    made: list[Any] = []
    seen = await kill("bolt", lambda: Hangs(method, made), [])
    assert seen == [(), ("bolt[0]",), ()]
    (line,) = told(caplog)
    assert line.startswith(NOT_RESTARTED.format("bolt[0]", f"Hangs.{method}"))


@pytest.mark.simulated_time
async def test_a_spout_that_hangs_in_its_restart_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """What it hangs in then is its ``open``."""
    made: list[Any] = []
    assert await kill("source", ignore, lambda: HangingSpout(made)) == [(), ("source[0]",), ()]
    (line,) = told(caplog)
    assert line.startswith(NOT_RESTARTED.format("source[0]", "HangingSpout.open"))


@pytest.mark.simulated_time
async def test_a_call_that_holds_up_a_restart_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A call beside others that goes on when it is cancelled has something in hand that must not be lost."""
    assert await kill("bolt", Stubborn, [1], concurrency=2) == [(), ("bolt[0]",), ()]
    (line,) = told(caplog)
    assert line.startswith(NOT_RESTARTED.format("bolt[0]", "Stubborn.execute"))


@pytest.mark.simulated_time
async def test_a_pause_before_a_restart_is_not_late(caplog: pytest.LogCaptureFixture) -> None:
    """It is the engine's own, and may be longer; only what user code does counts, each method by itself."""

    class Brief(Hangs):
        seconds = 4.9

    made: list[Any] = []
    seen = await kill("bolt", lambda: Brief("prepare", made), [], restart_delay=9.0)
    assert seen == [(), (), ()]
    assert len(made) == 2
    assert told(caplog) == []


@pytest.mark.asyncio
async def test_a_thread_that_holds_up_the_end_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the line in which it blocks. Real time: under simulated time such code runs inline (law B9)."""
    monkeypatch.setattr(slow_code, "PATIENCE", 0.05)
    begun, go_on = threading.Event(), threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: go_on.set()  # type: ignore[method-assign]
    handler.addFilter(lambda record: "block[0]" in record.getMessage())
    logging.getLogger(LOGGER).addHandler(handler)

    def block(value: int) -> None:
        begun.set()
        go_on.wait(30)

    topology = Topology("threads", drain_timeout=0)
    topology.bolt("block", block, topology.spout("source", [1]).shuffle(), executor="thread")
    try:
        async with topology.run():
            await asyncio.to_thread(begun.wait)
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)
    (line,) = [each for each in told(caplog) if "block[0]" in each]  # a slow machine may hold up others, too
    assert "block[0] still runs 0.05 s after it was asked to end, in block (test_slow_ends.py) > " in line


@pytest.mark.simulated_time
async def test_a_source_that_goes_through_what_is_durable_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """With the way to begin after it; a source that is fast enough is not."""

    async def paced(pause: float) -> AsyncIterator[int]:
        for number in range(12):
            await asyncio.sleep(pause)
            yield number

    store = Kept()
    for pause in (0.4, 0.4, 0.6):
        topology = Topology("paced")
        topology.bolt("ignore", ignore, topology.spout("numbers", partial(paced, pause)).shuffle())
        async with topology.run(state=store) as running:
            await running.finished()
    (line,) = told(caplog)
    assert line == (
        "numbers[0] of topology 'paced' goes through what is durable already: in 5 s it has passed over 8 of 12 "
        "values; a function with a parameter resume= is called with the last number, and can begin after it"
    )


@pytest.mark.asyncio
async def test_a_source_that_holds_the_loop_is_named_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop has its turns meanwhile, in real time."""
    monkeypatch.setattr(slow_code, "PATIENCE", 0.1)

    def paced(pause: float) -> Iterator[int]:
        for number in range(15):
            sleep(pause)
            yield number

    store = Kept()
    for pause in (0.0, 0.02):
        topology = Topology("paced")
        topology.bolt("ignore", ignore, topology.spout("numbers", partial(paced, pause)).shuffle())
        async with topology.run(state=store) as running:
            await running.finished()
    (line,) = told(caplog)
    assert re.search(r"in 0\.1 s it has passed over \d of 15 values", line)
