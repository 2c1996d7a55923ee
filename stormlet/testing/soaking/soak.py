"""``soak``: bursts at full load, between which everything must come to rest, be accounted for, and weigh no more than
before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

from stormlet.errors import InvalidTopology, StormletError
from stormlet.model.checks.numbers import check_finite, check_positive
from stormlet.runtime.run.handle import Running
from stormlet.testing.arguments import (
    IN_A_PLAIN_FUNCTION,
    check_sources,
    check_topology,
    refuse_in_a_loop,
)
from stormlet.testing.chaos.faults import FaultKind
from stormlet.testing.chaos.journal import silence
from stormlet.testing.soaking.kit import SoakedKit, SoakedRun
from stormlet.testing.soaking.report import (
    Reading,
    SoakFailed,
    SoakReport,
    counted,
    growth_of,
    resident_bytes,
)
from stormlet.testing.stores import in_memory
from stormlet.topology import Topology

LOOK = 0.02
"""Seconds between two looks at whether all is at rest."""
PATIENCE = 30.0
"""Seconds beyond its timeout after which a message without an outcome is lost, whatever the machine has to do."""


@dataclass(frozen=True, slots=True)
class How:
    """The choices of a soak; see :func:`~stormlet.testing.soak`."""

    burst: float
    every: float
    sources: Mapping[Any, Any] | None
    configuration: Mapping[str, Any]
    on_rest: Callable[[SoakReport], object]


class LawBroken(Exception):
    """The witness has seen it."""


class Soak:
    """Runs a topology once, until it ends or a moment has come. To be made on the loop that has the kit."""

    def __init__(self, how: How, run: SoakedRun, report: SoakReport) -> None:
        self._how = how
        self._run = run
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time() - report.seconds
        self._broken: asyncio.Future[None] = self._loop.create_future()
        run.witness.on_violation = self._break
        self._before = report.counts, report.faults

    async def run(self, topology: Topology, seed: int, until: float) -> None:
        """Run, at most until so many seconds of the soak are over.

        Raises :class:`LawBroken`, and what the topology raises."""
        how = self._how
        changed: dict[str, Any] = {**how.configuration, "drain_timeout": None}
        store = in_memory(topology, how.sources)  # so that each run begins with its first message
        async with topology.run(seed=seed, sources=how.sources, state=store, **changed) as running:
            self._begin()
            finished = asyncio.ensure_future(running.finished())
            try:
                await self._soak(running, finished, Random(f"{seed}/times"), until)
                self._settle()
            finally:
                finished.cancel()
                self._count(running)
            self._run.witness.forget()
            self._report.runs += 1
            self._weigh()

    def _settle(self) -> None:
        self._run.witness.lost = len(self._run.witness.open)
        self._run.check_settled()
        self._raise_broken()

    def _begin(self) -> None:
        spouts = self._run.tasks.all_spouts
        if fed := [task.name for task in spouts if task.feed.passive]:
            raise InvalidTopology(
                f"{fed[0]} has no source: declare it with one, or give it one with sources="
            )
        config = spouts[0].context.config
        self._run.witness.timeout = config.message_timeout
        if any(task.engine.epoch is not None for task in spouts):
            self._run.witness.expect_again(config.epoch_messages)

    async def _soak(
        self, running: Running, finished: asyncio.Future[None], random: Random, until: float
    ) -> None:
        while not finished.done() and self._seconds < until:
            async with self._faults_injected(random):
                await self._until(finished, min(self._how.burst, until - self._seconds))
            if not finished.done() and self._seconds < until:
                await self._rest(running)
        running.stop()
        if not await self._until(finished, self._longest_drain):
            self._run.witness.violation("it has not drained after {} s", self._longest_drain)

    @property
    def _seconds(self) -> float:
        return self._loop.time() - self._began

    @asynccontextmanager
    async def _faults_injected(self, random: Random) -> AsyncGenerator[None]:
        injecting = asyncio.ensure_future(inject_faults(self._run, random, self._how.every))
        try:
            yield
        finally:
            injecting.cancel()
            await asyncio.wait([injecting])
            self._run.drop_faults()

    async def _until(self, finished: asyncio.Future[None], seconds: float) -> bool:
        """True if it has finished within this time."""
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
            self._run.witness.check_age(self._longest)
            self._raise_broken()
        self._run.check_pending()
        if self._is_at_rest:
            self._count(running)
            self._weigh()
        running.activate()

    @property
    def _is_at_rest(self) -> bool:
        tasks = self._run.tasks
        pending = any(spout.tracker.pending or spout.outbox.inits for spout in tasks.all_spouts)
        return not pending and not any(bolt.inbox.items for bolt in tasks.all_bolts)

    @property
    def _longest(self) -> float:
        """A timeout may come half of it later (law L12)."""
        return PATIENCE + 1.5 * (self._run.witness.timeout or 0.0)

    @property
    def _longest_drain(self) -> float:
        """Each attempt of a message may time out."""
        configs = [spout.context.config for spout in self._run.tasks.all_spouts]
        return self._longest * max(each.max_attempts for each in configs)

    def _count(self, running: Running) -> None:
        report, (counts, faults) = self._report, self._before
        report.seconds = self._seconds
        report.counts = counts + counted(running, self._run)
        report.faults = faults + self._run.met

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


KINDS = {FaultKind.KILL: 2, FaultKind.ERROR: 2, FaultKind.SLOW: 1}
"""Kinds of faults, each with its weight."""


async def inject_faults(run: SoakedRun, random: Random, every: float) -> None:
    """Until it is cancelled, have something go wrong each ``every`` seconds, on the average."""
    while True:
        await asyncio.sleep(random.expovariate(1.0 / every))
        kind = random.choices([*KINDS], [*KINDS.values()])[0]
        if kind is FaultKind.KILL:
            _kill(run, random)
        elif run.tasks.all_bolts:
            run.let_suffer(random.choice(run.tasks.all_bolts), kind)


def _kill(run: SoakedRun, random: Random) -> None:
    tasks = [*run.tasks.ackers, *run.tasks.all_spouts, *run.tasks.all_bolts]
    if mortal := [task for task in tasks if task.mortal]:
        run.met[FaultKind.KILL] += 1
        run.kill(random.choice(mortal))


SHOWN_LINES = 60


class SoakLoop(asyncio.SelectorEventLoop):
    """An ordinary loop, on which the runtime finds another kit and uses it."""

    def __init__(self, run: SoakedRun) -> None:
        super().__init__()
        self.kit = SoakedKit(run)
        began = self.time()
        run.use(lambda: self.time() - began, _no_jump)


def soak(
    topology: Topology,
    *,
    minutes: float = 20.0,
    burst: float = 30.0,
    every: float = 0.5,
    growth: float = 16.0,
    seed: int | None = None,
    sources: Mapping[Any, Any] | None = None,
    configuration: Mapping[str, object] | None = None,
    on_rest: Callable[[SoakReport], object] = id,
) -> SoakReport:
    """Run the topology in real time for so many ``minutes`` while tasks are killed, bolts raise and inputs are slow,
    one of them each ``every`` seconds on the average, and judge it.

    After each ``burst`` of so many seconds the spouts pause until everything is settled; then the books must be
    balanced, and the memory is read. A topology that ends is run again. ``seed`` decides what goes wrong;
    ``sources`` and ``configuration`` are as for :meth:`~stormlet.Topology.run`. ``on_rest`` is called with the report
    so far, at each rest.

    Raises :class:`SoakFailed` when a message is lost, the law is broken otherwise, or the process takes ``growth`` MiB
    more at the end than after the warm-up, a quarter of the time, as far as the system reports it;
    :class:`~stormlet.errors.InvalidTopology` for a spout that nobody feeds.
    """
    for name, given in (("minutes", minutes), ("burst", burst), ("every", every)):
        check_positive("soak", name, given)
    check_finite("soak", "growth", growth)
    refuse_in_a_loop("soak", otherwise=IN_A_PLAIN_FUNCTION)
    check_topology("soak", topology)
    check_sources("soak", sources)
    report = SoakReport(topology.name, SystemRandom().getrandbits(32) if seed is None else seed)
    random = Random(report.seed)
    how = How(burst, every, sources, configuration or {}, on_rest)
    with silence():
        while report.seconds < minutes * 60.0:
            _soak_once(topology, how, random.getrandbits(32), report, minutes * 60.0)
    if (grown := growth_of(report, growth)) is not None:
        raise SoakFailed(report, [grown])
    return report


def _soak_once(topology: Topology, how: How, seed: int, report: SoakReport, until: float) -> None:
    run = SoakedRun(seed)
    try:
        with asyncio.Runner(loop_factory=lambda: SoakLoop(run)) as runner:
            runner.run(_soak(topology, how, seed, run, report, until))
    except InvalidTopology:
        raise
    except (LawBroken, StormletError) as error:
        violations = run.witness.violations or [str(error)]
        raise SoakFailed(report, violations, run.journal.lines()[-SHOWN_LINES:]) from error


async def _soak(
    topology: Topology, how: How, seed: int, run: SoakedRun, report: SoakReport, until: float
) -> None:
    await Soak(how, run, report).run(topology, seed, until)


def _no_jump(seconds: float) -> None:
    """Real time cannot be set."""
