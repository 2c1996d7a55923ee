"""Spouts and bolts that note their calls, and crash in one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    Failure,
    Running,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Endless
from tests.helpers import now

Log = list[str]


def logged_spout(log: Log, failing: str = "") -> type[Spout[int]]:
    """A spout that notes its calls and fails in one of them."""

    class Logged(Endless):
        def note(self, call: str) -> None:
            log.append(f"spout {call}")
            if call == failing:
                raise ZeroDivisionError(call)

        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.note("open")

        def activate(self) -> None:
            self.note("activate")

        def deactivate(self) -> None:
            self.note("deactivate")

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            self.note("next_tuple")
            super().next_tuple(out)

        def close(self) -> None:
            self.note("close")

    return Logged


def logged_bolt(log: Log, name: str = "bolt", failing: str = "", seconds: float = 0) -> type[Bolt[int, int]]:
    """A bolt that takes its time to prepare, notes its calls and fails in one of them."""

    class Logged(Bolt[int, int]):
        async def prepare(self, context: TaskContext) -> None:
            await asyncio.sleep(seconds)
            log.append(f"{name} prepare")
            if failing == "prepare":
                raise ZeroDivisionError(failing)

        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            await asyncio.sleep(0.1)
            out.ack(tup)

        def cleanup(self) -> None:
            log.append(f"{name} cleanup")
            if failing == "cleanup":
                raise ZeroDivisionError(failing)

    return Logged


class Finishing(BasicBolt[object, object]):
    """Forwards what it gets; its ``finish`` takes a second, is noted and emits one value more."""

    log: list[tuple[str, float]]

    def prepare(self, context: TaskContext) -> None:
        self.name = context.component

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.log.append((f"{self.name} gets {tup.value}", now()))
        out.emit(tup.value)

    async def finish(self, out: Collector[object]) -> None:
        await asyncio.sleep(1)
        self.log.append((f"{self.name} finishes", now()))
        out.emit(f"end of {self.name}")


def finishing(log: list[tuple[str, float]]) -> type[Finishing]:
    """A class of its own, with its own log."""
    return type("Finishing", (Finishing,), {"log": log})


class HoldAll(Bolt[int, int]):
    """Holds every input, and emits their sum at the end."""

    anchored = True

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.held.append(tup)

    def finish(self, out: Collector[int]) -> None:
        if self.held:
            out.emit(sum(each.value for each in self.held), anchors=self.held if self.anchored else ())
        for tup in self.held:
            out.ack(tup)
        self.held = []


def crashing_spout(method: str, after: float = 1.0) -> type[Spout[int]]:
    """A spout that emits one message, and raises in one of its methods a little later."""

    class Crashing(Spout[int]):
        emitted = False

        def raise_in(self, name: str) -> None:
            if name == method:
                raise ZeroDivisionError(name)

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.emitted:
                self.emitted = True
                out.emit(1, message_id=1)
                return
            await asyncio.sleep(after)
            self.raise_in("next_tuple")

        def ack(self, message_id: object) -> None:
            self.raise_in("ack")

        def fail(self, message_id: object, failure: Failure) -> None:
            self.raise_in("fail")

        def activate(self) -> None:
            self.raise_in("activate")

    return Crashing


async def crash_in(topology: Topology, body: Callable[[Running], Awaitable[None]]) -> TopologyCrashed:
    """Run with this body; give the crash that the block raises."""

    async def run() -> None:
        async with topology.run() as running:
            await body(running)

    with pytest.raises(TopologyCrashed) as crash:
        await run()
    return crash.value
