"""What there is to tell of a run while it lasts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stormlet.cli.running import endings
from stormlet.cli.running.endings import Ending, Stage
from stormlet.cli.running.meter import Meter
from stormlet.cli.running.observation import Observation
from stormlet.report.bottleneck import Bottleneck, BottleneckKind
from stormlet.report.statistics import ComponentStatistics, Statistics
from tests.cli.running.test_meter import topology

BUSY = Statistics(
    {
        "__acker": ComponentStatistics(pending=9),
        "numbers": ComponentStatistics(pending=1234),
        "print": ComponentStatistics(pending=15, queued=12),
    }
)
IDLE = Statistics({"numbers": ComponentStatistics(), "print": ComponentStatistics()})


def observe(
    statistics: Statistics,
    ending: Ending,
    closing: Sequence[str] = (),
    bottleneck: Callable[[], Bottleneck | None] = lambda: None,
) -> Observation:
    running: Any = SimpleNamespace(
        statistics=lambda: statistics,
        failures=list,
        health=lambda: SimpleNamespace(closing=closing),
        bottleneck=bottleneck,
    )
    return Observation(running, Meter(topology().describe(), {}, 100), ending, {"print[0]"})


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Ending:
    """Of a loop that never runs, at a time that stands still."""
    monkeypatch.setattr(endings, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    loop: Any = SimpleNamespace(call_soon_threadsafe=lambda *arguments: None)
    made = Ending(loop)
    made.stop = asyncio.Event().set
    return made


def ask(ending: Ending, stage: Stage, ago: float) -> None:
    ending.request(stage)
    assert ending.since is not None
    ending.since -= ago


def test_the_bottleneck_is_looked_for_now_and_then(ending: Ending) -> None:
    """Not in the first seconds, then every two seconds; it is told as long as it is there, and not while it drains."""
    limit = Bottleneck(component="ask", kind=BottleneckKind.AWAITS, sentence="'ask' awaits")
    looks: list[Bottleneck | None] = [limit, None, limit]
    observation = observe(IDLE, ending, bottleneck=lambda: looks.pop(0))
    told = {}
    for seconds in (1.0, 4.9, 5.1, 6.0, 7.2, 9.3):
        observation._began = time.monotonic() - seconds
        told[seconds] = observation.frame().bottleneck
    assert told == {1.0: "", 4.9: "", 5.1: "'ask' awaits", 6.0: "'ask' awaits", 7.2: "", 9.3: "'ask' awaits"}
    ask(ending, Stage.DRAINING, 0.0)
    assert observation.frame().bottleneck == ""


def test_a_drain_is_told_from_its_first_second_on(ending: Ending) -> None:
    """Most are shorter, and need no words."""
    assert observe(BUSY, ending).drain() == ""
    ask(ending, Stage.DRAINING, 0.5)
    assert observe(BUSY, ending).drain() == ""
    ask(ending, Stage.DRAINING, 3.6)
    assert observe(BUSY, ending).drain() == (
        "draining for 4.1 s: waits for numbers: 1,234 pending; print: 12 queued, 3 in hand or held"
    )
    assert observe(IDLE, ending).drain() == "draining for 4.1 s: waits for tasks to end"
    evil = Statistics({"\x1b[2J\n": ComponentStatistics(pending=1)})
    assert observe(evil, ending).drain() == "draining for 4.1 s: waits for \\x1b[2J\\n: 1 in hand or held"


def test_what_is_cancelled_waits_for_user_code(ending: Ending) -> None:
    """In threads, where it cannot be cancelled; these are named."""
    ask(ending, Stage.CANCELLED, 2.0)
    assert observe(IDLE, ending).drain() == "cancelled: waits for user code to return"
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="print[0]_1")
    thread.start()
    assert observe(IDLE, ending).drain() == "cancelled: waits for user code in the threads of print[0]"
    done.set()
    thread.join()


@pytest.mark.parametrize(
    ("closing", "named"),
    [
        (["a[0]"], "close or cleanup of a[0]"),
        ([f"a[{number}]" for number in range(7)], "close or cleanup of a[0], a[1], a[2], a[3] and 3 more"),
    ],
)
def test_tasks_that_do_not_come_to_their_end_are_named(
    ending: Ending, closing: Sequence[str], named: str
) -> None:
    """When nothing else is left to be done; also where the run has ended by itself, and where it was cancelled."""
    ending.begin()
    assert ending.since is not None
    ending.since -= 4.1
    assert observe(IDLE, ending, closing).drain() == f"draining for 4.1 s: waits for {named}"
    assert "pending" in observe(BUSY, ending, closing).drain()
    ask(ending, Stage.CANCELLED, 0.0)
    assert observe(IDLE, ending, closing).drain() == f"cancelled: waits for {named}"


def test_while_it_drains_there_is_no_telling_how_much_would_have_come(ending: Ending) -> None:
    """The sources have ended before their last value."""
    assert observe(BUSY, ending).frame().progress is not None
    ask(ending, Stage.DRAINING, 0.0)
    assert observe(BUSY, ending).frame().progress is None


def test_a_later_request_to_drain_does_not_undo_a_cancellation(ending: Ending) -> None:
    """As when ``--duration`` is over after a second Ctrl-C."""
    ending.request(Stage.CANCELLED)
    ending.request(Stage.DRAINING)
    assert ending.stage is Stage.CANCELLED
