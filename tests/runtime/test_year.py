"""A service that runs for a year: its bolts die, its sources go away and come back, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    Health,
    Running,
    RunState,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    Tuple,
    TupleFailed,
)
from stormlet.core.retries import JITTER, KEPT_EXACTLY, ReplayPolicy, Restarts
from stormlet.report.failures import MOST_KINDS
from stormlet.testing import run_simulated
from tests.helpers import now

pytestmark = pytest.mark.untraced

HOUR, DAY, YEAR = 3600.0, 86400.0, 365 * 86400.0
LONGEST_RESTART, LONGEST_REPLAY = 1800.0, 200.0
MOST: Mapping[str, int] = {
    "restarts kept": 2 * KEPT_EXACTLY + 1,
    "failures told apart": MOST_KINDS + 20,
    "dead letters kept": 1000,
    "open trees": 100,
    "roots without a message": 10,
    "outcomes to be told": 10,
    "replays": 100,
    "tuples queued, in hand or held": 100,
    "waits for room": 10,
    "exceptions that the log has": 10,
    "values collected": 0,
    "waits for the end": 0,
    "timers": 20,
    "coroutines": 30,
}
"""What may be there at noon of any day."""


def is_away(period: float, length: float) -> bool:
    """Whether it is the last part of a period, in which something is away."""
    return now() % period >= period - length


class Broker:
    """Has an order every six hours, and gives each out until it is acked; of five days it is away for half of one."""

    def __init__(self) -> None:
        self.made = 0
        self.acked = 0
        self.waiting: list[int] = []

    def take(self) -> int | None:
        """The next one, if there is any."""
        if is_away(5 * DAY, 12 * HOUR):
            raise ConnectionError("the broker is away")
        while self.made < now() / (6 * HOUR):
            self.waiting.append(self.made)
            self.made += 1
        return self.waiting.pop(0) if self.waiting else None


class Orders(Spout[int]):
    """Takes them from the broker, and tells it what became of them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        order = self.broker.take()
        if order is not None:
            out.emit(order, message_id=order)

    def ack(self, message_id: Any) -> None:
        self.broker.acked += 1

    def fail(self, message_id: Any, failure: Failure) -> None:
        self.broker.waiting.append(message_id)


class Price(Bolt[int, int]):
    """Dies at some orders, each time of the same exception, and of itself now and then."""

    broken = ValueError("no price")

    def __init__(self, random: Random) -> None:
        self.random = random

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if self.random.random() < 0.05:
            raise self.broken
        out.emit(tup.value, anchors=tup)
        out.ack(tup)

    def tick(self, out: Collector[int]) -> None:
        if self.random.random() < 0.3:
            raise self.broken


class Ship(BatchBolt[int, None]):
    """Writes batches to what is away for half a day each month, and cannot be prepared then."""

    size, within, resets_timeouts = 10, 2 * HOUR, True

    def prepare(self, context: TaskContext) -> None:
        self.tick(None)

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        self.tick(None)

    def tick(self, out: object) -> None:
        if is_away(30 * DAY, 12 * HOUR):
            raise OSError("the disk is away")


def check(random: Random, value: int) -> None:
    """Fails now and then, each time by an exception class that was made for it; at some values always."""
    if value % 500 == 0:
        raise ValueError(value)
    if random.random() < 0.1:
        raise type(f"Error{random.random()}", (Exception,), {})(value)


class Service:
    """The topology, and what it is to be measured by."""

    def __init__(self) -> None:
        self.random = Random(5)
        self.broker = Broker()
        self.read = 0
        self.letters: list[int] = []
        self.asked = self.answered = 0
        self.topology = topology = Topology(
            "year",
            message_timeout=HOUR,
            max_attempts=4,
            replay_delay=60.0,
            replay_delay_max=LONGEST_REPLAY,
            max_restarts=1_000_000,
            restart_window=YEAR,
            restart_delay_max=LONGEST_RESTART,
            drain_timeout=None,
        )
        orders = topology.spout("orders", lambda: Orders(self.broker), idle_max=HOUR)
        prices = topology.bolt(
            "price", lambda: Price(self.random), orders.shuffle(), tick=12 * HOUR, on_error="restart"
        )
        topology.bolt("ship", Ship, prices.shuffle(), tick=6 * HOUR)
        readings = topology.spout("readings", self.readings)
        self.questions: Stream[int] = topology.spout("questions", outputs=int)
        self.answers = topology.bolt("same", int, self.questions.shuffle(), outputs=int)
        topology.bolt(
            "check", lambda value: check(self.random, value), readings.shuffle(), self.answers.shuffle()
        )

    async def readings(self, resume: object = None) -> AsyncIterator[int]:
        """One every two hours; of a week the line is dead for a day, and it breaks now and then."""
        while True:
            if is_away(7 * DAY, DAY) or self.random.random() < 0.01:
                raise ConnectionResetError("the line is dead")
            self.read += 1
            yield self.read
            await asyncio.sleep(2 * HOUR)

    def keep(self, letter: DeadLetter) -> None:
        """As ``dead_letters=``."""
        self.letters.append(letter.message_id)

    async def ask_daily(self, running: Running) -> None:
        """As a host does: it awaits an outcome, and gives up to wait for the end."""
        while True:
            self.asked += 1
            tree = await running.emit(self.questions, self.asked, collect=self.answers)
            try:
                self.answered += len(await tree)
            except TupleFailed:
                self.answered += 1
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.finished(), HOUR)
            await asyncio.sleep(DAY - (now() - 6 * HOUR) % DAY)


def sizes(running: Running) -> dict[str, int]:
    """How large everything is that could grow."""
    tasks: Any = running._tasks  # pyright: ignore[reportPrivateUsage] - memory has no public face
    conductor: Any = running._conductor  # pyright: ignore[reportPrivateUsage]
    engine: Any = running._engine  # pyright: ignore[reportPrivateUsage]
    loop: Any = asyncio.get_running_loop()
    everyone = [*tasks.all_spouts, *tasks.all_bolts, *tasks.ackers]
    found = {
        "restarts kept": max(len(task.restarts._recent) for task in everyone),
        "failures told apart": len(running.failures()),
        "dead letters kept": len(running.dead_letters),
        "open trees": sum(len(task.ledger) for task in tasks.ackers),
        "roots without a message": sum(task.ledger.orphans for task in tasks.ackers),
        "outcomes to be told": sum(len(task.outcomes) for task in tasks.all_spouts),
        "replays": sum(len(task.tracker.replays) for task in tasks.all_spouts),
        "tuples queued, in hand or held": sum(len(list(task.tuples())) for task in tasks.all_bolts),
        "waits for room": sum(len(task.inbox._waiting) for task in tasks.all_bolts),
        "exceptions that the log has": sum(len(task._told) for task in everyone),
        "values collected": sum(map(len, engine.collected.values())),
        "waits for the end": len(conductor._waiting),
        "timers": len(loop._scheduled),
        "coroutines": len(asyncio.all_tasks()),
    }
    assert found.keys() == MOST.keys()
    return found


class Year:
    """What was seen of it."""

    def __init__(self) -> None:
        self.service = Service()
        self.running: Running
        self.most: dict[str, int] = dict.fromkeys(MOST, 0)
        self.longest: dict[str, float] = {}
        """The longest pause of each kind."""
        self.objects: list[int] = []
        """That the garbage collector knows of, every 30 days."""
        self.restarting_at_noon = 0
        self.at_the_end: Health

    async def pass_by(self) -> None:
        """All of it."""
        service = self.service
        async with service.topology.run(seed=1, dead_letters=service.keep) as running:
            self.running = running
            asking = asyncio.create_task(service.ask_daily(running))
            await self.look_daily()
            await asyncio.sleep(YEAR + HOUR - now())  # when everything is there again
            self.at_the_end = running.health()
            asking.cancel()
            await asyncio.wait([asking])

    async def look_daily(self) -> None:
        """At noon."""
        for day in range(1, 366):
            await asyncio.sleep((day - 0.5) * DAY - now())
            for name, size in sizes(self.running).items():
                self.most[name] = max(self.most[name], size)
            self.restarting_at_noon += bool(self.running.health().restarting)
            if day % 30 == 0:
                gc.collect()
                self.objects.append(len(gc.get_objects()))

    def noting(self, what: str, pause: Callable[..., float | None]) -> Callable[..., float | None]:
        """The same, which notes the longest."""

        def noted(*arguments: object) -> float | None:
            seconds = pause(*arguments)
            self.longest[what] = max(self.longest.get(what, 0.0), seconds or 0.0)
            return seconds

        return noted


@pytest.fixture(scope="module")
def year() -> Year:
    """It is lived through once for all tests."""
    seen = Year()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Restarts, "pause", seen.noting("restart", Restarts.pause))
        patch.setattr(ReplayPolicy, "pause", seen.noting("replay", ReplayPolicy.pause))
        logging.disable(logging.CRITICAL)  # pytest would keep every record
        try:
            run_simulated(seen.pass_by())
        finally:
            logging.disable(logging.NOTSET)
    return seen


def test_every_message_of_the_year_has_its_outcome(year: Year) -> None:
    """Those that the engine keeps are acked or dead letters, and those of the broker are acked or there again."""
    service, counts = year.service, year.running.statistics().components
    readings = counts["readings"]
    assert readings.acked + readings.dead_letters + readings.left_over == service.read > 3500
    assert (readings.pending, readings.left_over, readings.dead_letters) == (0, 0, len(service.letters))
    assert service.broker.made == service.broker.acked + len(service.broker.waiting) > 1400
    assert counts["orders"].acked == service.broker.acked
    assert service.asked == service.answered >= 365


def test_no_pause_of_the_year_is_longer_than_it_may_be(year: Year) -> None:
    """Sources were restarted more than a thousand times, and messages replayed, each after the longest at most."""
    restarts = {id: each.restarts for id, each in year.running.statistics().components.items()}
    assert min(restarts["orders"], restarts["readings"]) > 1024
    assert year.longest["restart"] == LONGEST_RESTART
    assert LONGEST_REPLAY < year.longest["replay"] <= LONGEST_REPLAY * (1 + JITTER)


def test_nothing_has_grown_in_a_year(year: Year) -> None:
    """No table, ring, queue or list is larger than it may be, nor are there more objects in all."""
    assert {name: size for name, size in year.most.items() if size > MOST[name]} == {}
    assert year.most["restarts kept"] > KEPT_EXACTLY
    assert max(year.objects[3:]) < year.objects[2] + 500


def test_no_task_is_stuck_after_a_year(year: Year) -> None:
    """All of them have come back, as they did a hundred times, and the drain has found nothing that waits."""
    assert 50 < year.restarting_at_noon < 200
    assert (year.at_the_end.state, year.at_the_end.restarting) == (RunState.RUNNING, ())
    assert year.running.health() == Health(RunState.STOPPED, pending=0, full=(), crash=None)
