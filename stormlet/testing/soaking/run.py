"""One run of a soak: bursts, rests, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from stormlet.errors import InvalidTopology
from stormlet.runtime.run.handle import Running
from stormlet.testing.chaos.endings import check_settled
from stormlet.testing.soaking.memory import resident_bytes
from stormlet.testing.soaking.mischief import make_mischief
from stormlet.testing.soaking.parts import SoakedKit
from stormlet.testing.soaking.report import Reading, SoakReport, counted
from stormlet.topology import Topology

LOOK = 0.02
"""Seconds between two looks at whether all is at rest."""
PATIENCE = 30.0
"""Seconds beyond its timeout after which a message without an outcome is lost, whatever the machine has to do."""


@dataclass(frozen=True, slots=True)
class How:
    """How a soak is done; see :func:`~stormlet.testing.soak`."""

    burst: float
    every: float
    sources: Mapping[Any, Any] | None
    configuration: Mapping[str, Any]
    on_rest: Callable[[SoakReport], object]


class LawBroken(Exception):
    """The witness has seen it."""


class SoakedRun:
    """Runs a topology once, until it ends or a moment has come. To be made on the loop that has the parts."""

    def __init__(self, how: How, parts: SoakedKit, report: SoakReport) -> None:
        self._how = how
        self._parts = parts
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time() - report.seconds
        self._broken: asyncio.Future[None] = self._loop.create_future()
        parts.witness.on_violation = self._break
        self._before = report.counts, report.faults

    async def run(self, topology: Topology, seed: int, until: float) -> None:
        """Run, at most until so many seconds of the soak are over.

        Raises :class:`LawBroken`, and what the topology raises."""
        how = self._how
        changed: dict[str, Any] = {**how.configuration, "drain_timeout": None}
        async with topology.run(seed=seed, sources=how.sources, **changed) as running:
            self._begin(running)
            finished = asyncio.ensure_future(running.finished())
            try:
                await self._soak(running, finished, Random(f"{seed}/mischief"), until)
                self._settle()
            finally:
                finished.cancel()
                self._count(running)
            self._parts.witness.forget()
            self._report.runs += 1
            self._weigh()

    def _settle(self) -> None:
        witness = self._parts.witness
        witness.lost = len(witness.open)
        check_settled(witness, self._parts.tasks)
        self._raise_broken()

    def _begin(self, running: Running) -> None:
        parts, spouts = self._parts, self._parts.tasks.all_spouts
        if fed := [task.name for task in spouts if task.feed.passive]:
            raise InvalidTopology(f"{fed[0]} has no source: give it one with sources=")
        parts.running = running
        parts.witness.timeout = spouts[0].context.config.message_timeout

    async def _soak(
        self, running: Running, finished: asyncio.Future[None], random: Random, until: float
    ) -> None:
        while not finished.done() and self._seconds < until:
            async with self._mischief(running, random):
                await self._until(finished, min(self._how.burst, until - self._seconds))
            if not finished.done() and self._seconds < until:
                await self._rest(running)
        running.stop()
        if not await self._until(finished, self._longest_drain):
            self._parts.witness.violation("it has not drained after {} s", self._longest_drain)

    @property
    def _seconds(self) -> float:
        return self._loop.time() - self._began

    @asynccontextmanager
    async def _mischief(self, running: Running, random: Random) -> AsyncGenerator[None]:
        mischief = asyncio.ensure_future(make_mischief(running, self._parts, random, self._how.every))
        try:
            yield
        finally:
            mischief.cancel()
            await asyncio.wait([mischief])
            self._parts.leave_in_peace()

    async def _until(self, finished: asyncio.Future[None], seconds: float) -> bool:
        """Whether it has finished within this time."""
        waiting = [finished, self._broken]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self._raise_broken()
        return finished.done()

    # Rests.

    async def _rest(self, running: Running) -> None:
        """Have everything settled, look at the books and at the memory, and go on. A bolt that holds inputs may not let
        it come to rest before their timeout."""
        running.deactivate()
        latest = self._loop.time() + self._longest
        while not self._is_at_rest and self._loop.time() < latest:
            await asyncio.sleep(LOOK)
            self._parts.witness.check_age(self._longest)
            self._raise_broken()
        self._parts.check_books()
        if self._is_at_rest:
            self._count(running)
            self._weigh()
        running.activate()

    @property
    def _is_at_rest(self) -> bool:
        tasks = self._parts.tasks
        pending = any(spout.tracker.pending or spout.outbox.inits for spout in tasks.all_spouts)
        return not pending and not any(bolt.inbox.items for bolt in tasks.all_bolts)

    @property
    def _longest(self) -> float:
        """A timeout may come half of it later (law L12)."""
        return PATIENCE + 1.5 * (self._parts.witness.timeout or 0.0)

    @property
    def _longest_drain(self) -> float:
        """Each attempt of a message may time out."""
        configs = [spout.context.config for spout in self._parts.tasks.all_spouts]
        return self._longest * max(each.max_attempts for each in configs)

    def _count(self, running: Running) -> None:
        report, (counts, faults) = self._report, self._before
        report.seconds = self._seconds
        report.counts = counts + counted(running, self._parts)
        report.faults = faults + self._parts.met

    def _weigh(self) -> None:
        report = self._report
        if not report.readings or report.seconds - report.readings[-1].seconds >= self._how.burst:
            report.readings.append(Reading(report.seconds, resident_bytes()))
            self._how.on_rest(report)

    # The law.

    def _break(self) -> None:
        if not self._broken.done():
            self._broken.set_result(None)

    def _raise_broken(self) -> None:
        if self._broken.done():
            raise LawBroken
