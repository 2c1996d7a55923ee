"""A host program that watches its own surroundings while it imports, builds and runs topologies.

It runs in a process of its own, where nothing else changes them, and prints as JSON which aspects had changed at which
stage. With ``spoil`` instead of the name of a loop it changes every aspect by itself, to show that the watch sees it.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import locale
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from tests.runtime.surroundings import Snapshot, changed, take

Found = dict[str, list[str]]


async def watch(directory: Path) -> Found:
    """What has changed at each stage of using stormlet."""
    found: Found = {}
    before = take()
    import stormlet

    found["import"] = changed(before)
    topology, stream, done = build()
    found["building"] = changed(before)
    async with topology.run() as running:
        tree = await running.emit(stream, 1, collect=done)
        await asyncio.sleep(0.1)
        found["running"] = changed(before)
        await tree
        running.stop()
        await running.finished()
        found["drained"] = changed(before)
    found["left"] = changed(before)
    assert running.statistics().components["numbers"].acked >= 20

    records = collect_logs()
    found |= await trouble(directory, take())
    assert len(records) >= 3, "failures are logged, where the host wants them"
    try:
        stormlet.run(topology)
    except RuntimeError:
        found["refused"] = [name for name in changed(before) if name != "logs"]
    return found


def build() -> tuple[Any, Any, Any]:
    """A topology of every kind of component, in which nothing fails; it is busy for 0.2 seconds."""
    import stormlet

    class Polled(stormlet.Spout[int]):
        count = 0

        def next_tuple(self, out: stormlet.SpoutCollector[int]) -> None:
            if self.count == 20:
                raise stormlet.EndOfStream
            self.count += 1
            out.emit(self.count, message_id=self.count)

    async def slow_numbers() -> AsyncIterator[int]:
        for number in range(20):
            await asyncio.sleep(0.01)
            yield number

    def twice(number: int) -> Iterator[int]:
        yield number
        yield number

    class Count(stormlet.BasicBolt[int, int]):
        def tick(self, out: stormlet.Collector[int]) -> None:
            """Nothing."""

        def execute(self, tup: stormlet.Tuple[int], out: stormlet.Collector[int]) -> None:
            out.emit(tup.value)

    class Write(stormlet.BatchBolt[int, None]):
        size = 7
        within = 0.05

        def execute_batch(self, tups: Any, out: stormlet.Collector[None]) -> None:
            """Nothing."""

    async def sleep(number: int) -> None:
        await asyncio.sleep(0.01)

    topology = stormlet.Topology("watched", ackers=2, message_timeout=5.0, max_spout_pending=10)
    host = topology.spout("host")
    numbers = topology.spout("numbers", range(50))
    inputs = [each.shuffle() for each in (host, topology.spout("polled", Polled), numbers)]
    doubled = topology.bolt("twice", twice, *inputs, topology.spout("slow", slow_numbers).shuffle())
    counted = topology.bolt("count", Count, doubled.fields(), parallelism=2, tick=0.02)
    topology.bolt("write", Write, counted.global_())
    topology.bolt("sleep", sleep, counted.partial_key(), concurrency=10)
    return topology, host, counted


def collect_logs() -> list[logging.LogRecord]:
    """The host sets logging up; what it gets."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    return records


async def trouble(directory: Path, before: Snapshot) -> Found:
    """Runs in which messages fail, time out and are given up, and one that crashes."""
    import stormlet

    def fail(number: int) -> None:
        if number % 3 == 0:
            raise stormlet.Reject("no")
        if number % 5 == 0:
            raise ValueError(number)

    found: Found = {}
    letters = directory / "letters.jsonl"
    topology = stormlet.Topology("troubled", replay_delay=0.0, max_attempts=2, message_timeout=0.1)
    numbers = topology.spout("numbers", range(100))
    topology.bolt("fail", fail, numbers.shuffle())
    topology.bolt("late", lambda number: asyncio.sleep(0.2 * (number == 7)), numbers.shuffle())
    async with topology.run(dead_letters=letters) as running:
        await running.finished()
        found["troubled"] = changed(before)
    found["left after trouble"] = changed(before)
    assert letters.read_bytes().count(b"\n") == running.statistics().dead_letters > 30

    def crash(number: int) -> None:
        raise MemoryError(number)

    topology = stormlet.Topology("crashing")
    topology.bolt("crash", crash, topology.spout("numbers", range(100)).shuffle(), on_error="stop")
    try:
        async with topology.run() as running:
            await running.finished()
    except stormlet.TopologyCrashed:
        found["crashed"] = changed(before)
    return found


# Changing every aspect, one at a time.


def new_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def start_task() -> None:
    keep.append(asyncio.ensure_future(asyncio.sleep(60)))


keep: list[object] = []

SPOILERS: list[tuple[str, Callable[[], object]]] = [
    ("signals", lambda: signal.signal(signal.SIGTERM, lambda number, frame: None)),
    ("signals", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])),
    ("logs", lambda: logging.getLogger("stormlet").setLevel(logging.INFO)),
    ("logs", lambda: logging.getLogger("stormlet.runtime").addHandler(logging.StreamHandler())),
    ("logs", lambda: logging.getLogger().addHandler(logging.StreamHandler())),
    ("logs", lambda: logging.disable(logging.DEBUG)),
    ("event_loop_policy", lambda: asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())),
    ("garbage_collector", lambda: gc.set_threshold(10_000)),
    ("garbage_collector", lambda: gc.callbacks.append(lambda phase, info: None)),
    ("hooks", lambda: setattr(sys, "excepthook", print)),
    ("hooks", lambda: setattr(threading, "excepthook", print)),
    ("limits", lambda: sys.setswitchinterval(0.001)),
    ("limits", lambda: sys.setrecursionlimit(5000)),
    ("warning_filters", lambda: warnings.simplefilter("ignore")),
    ("locale_and_numbers", lambda: locale.setlocale(locale.LC_NUMERIC, "C.UTF-8")),
    ("locale_and_numbers", random.random),
    ("environment", lambda: os.environ.update(STORMLET="1")),
    ("environment", lambda: os.umask(0o077)),
    ("imports", lambda: sys.path.insert(0, "/nowhere")),
    ("streams", lambda: setattr(sys, "stdout", sys.stderr)),
    ("at_exit", lambda: atexit.register(print, end="")),
    ("event_loop", lambda: asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)),
    ("event_loop", lambda: setattr(asyncio.get_running_loop(), "slow_callback_duration", 1.0)),
    (
        "event_loop",
        lambda: asyncio.get_running_loop().set_task_factory(lambda loop, coro: asyncio.Task(coro)),
    ),
    ("threads", new_thread),
    ("descriptors", lambda: os.open(os.devnull, os.O_RDONLY)),
    ("tasks", start_task),
]


async def spoil() -> list[tuple[str, list[str]]]:
    """Which aspect each spoiler should change, and which ones the watch has seen."""
    found = []
    output = sys.stdout
    for aspect, change in SPOILERS:
        before = take()
        change()
        found.append((aspect, changed(before)))
    sys.stdout = output
    return found


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes the loop of that name."""
    if name == "uvloop":
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop


if __name__ == "__main__":
    chosen = sys.argv[1]
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=loop_factory(chosen)) as runner,
    ):
        body = spoil() if chosen == "spoil" else watch(Path(scratch))
        print(json.dumps(runner.run(body)), flush=True)
        if chosen == "spoil":
            os._exit(0)  # nothing is left in which this process could end well
