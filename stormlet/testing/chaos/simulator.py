"""One simulated run of a topology, under a seed and its faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stormlet.errors import InvalidConfiguration, InvalidTopology, StormletError, TopologyCrashed
from stormlet.model.configuration import Configuration
from stormlet.model.number_checks import check_seconds
from stormlet.report.explanation import Explanation
from stormlet.runtime.run.handle import Running
from stormlet.runtime.tasks import Tasks
from stormlet.testing.chaos.endings import check_counted, check_settled
from stormlet.testing.chaos.evidence import Evidence
from stormlet.testing.chaos.faults import Fault, FaultKind, Faults, Injector
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.judged_kit import JudgedKit, Way
from stormlet.testing.chaos.kit import DisturbedKit
from stormlet.testing.chaos.loop import SeededLoop
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import Deadlock, describe_task, pending_tasks
from stormlet.testing.watched_run import endless
from stormlet.topology import Topology

LONGEST = 20_000.0
"""Simulated seconds after which a run that has not finished is a failure."""
ROOM_AND_TIME: Mapping[str, Any] = {"message_timeout": None, "queue_capacity": 100_000}
"""For runs with one call at a time: they take long, and a call must not wait for room that another one would make."""

TopologyLike = Topology | Callable[[], Topology]


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One run."""

    seed: int
    faults: Sequence[Fault]
    """Those that happened, in order."""
    violations: Sequence[str]
    """The breaches; empty if all was well."""
    counts: Mapping[str, int]
    journal: Journal = field(repr=False)
    missed: Sequence[Fault] = ()
    """Those of an exact list that did not happen: the run went another way."""
    explanations: Sequence[Explanation] = ()
    """Of a failed seed, once it is shrunk: what kept the oldest trees open when the law was broken."""
    evidence: Evidence = field(default=Evidence(), repr=False)
    """For the comparison with other runs of the same input."""

    @property
    def log(self) -> Sequence[str]:
        """The events, a line each; the same for the same seed in every process."""
        return self.journal.lines()

    @property
    def exactly(self) -> str:
        """The faults, as ``simulate(..., faults=...)`` takes them."""
        return " ".join(map(str, self.faults)) or "none"

    @property
    def repeated(self) -> str:
        """The line that repeats it."""
        return f"repeat it with simulate(..., seeds=[{self.seed}], faults={self.exactly!r})"


Judged: TypeAlias = Callable[[SeedResult], SeedResult]
"""Gives the same result with a violation, if there is one that the run alone does not show."""


def _as_it_is(result: SeedResult) -> SeedResult:
    return result


class Simulator:
    """Runs one topology under any seed."""

    def __init__(
        self,
        topology: TopologyLike,
        sources: Mapping[Any, Any] | None = None,
        seconds: float | None = None,
        configuration: Mapping[str, object] | None = None,
        allowed: Collection[str] = (),
    ) -> None:
        if seconds is not None:
            check_seconds("simulate", "seconds", seconds)
        self.allowed = allowed
        """Kinds of doubts that are left aside."""
        self._topology = topology
        self._sources = sources
        self._seconds = seconds
        self._configuration: Mapping[str, Any] = configuration or {}
        self.name = ""
        """The topology's, once there was a run."""

    def run(
        self,
        seed: int,
        faults: Faults | Iterable[Fault],
        *,
        explains: bool = False,
        collects: bool = False,
        way: Way = Way.AS_DECLARED,
    ) -> SeedResult:
        """One run; ``explains`` has its edges recorded, so that it can say what was stuck if it fails, and
        ``collects`` its results."""
        topology = self._topology if isinstance(self._topology, Topology) else self._topology()
        self.name = topology.name
        kit = JudgedKit(
            Injector(seed, faults), explains=explains, allowed=self.allowed, collects=collects, way=way
        )
        counts: dict[str, int] = {}
        with asyncio.Runner(loop_factory=lambda: SeededLoop(seed, kit)) as runner:
            loop = runner.get_loop()
            assert isinstance(loop, SeededLoop)
            kit.use(loop.time, loop.jump)
            try:
                counts = runner.run(self._run(topology, seed, kit))
            except Deadlock as error:
                kit.witness.violation("it hangs: {}", str(error))
                kit.explain()
            except Livelock as error:
                known = error.knowing(endless(kit.tasks.all_spouts))
                if known.sources and loop.advances:
                    raise InvalidTopology(
                        f"topology {self.name!r} does not come to an end: {known}"
                    ) from None
                kit.witness.violation("it hangs: {}", str(known))
        witness, injector = kit.witness, kit.injector
        kit.forget()
        return SeedResult(
            seed,
            injector.injected,
            witness.violations,
            counts,
            kit.journal,
            injector.missed,
            kit.explanations,
            kit.evidence,
        )

    def explained(self, failed: SeedResult) -> SeedResult:
        """The same once more with a recorder, which the many seeds that do not fail can do without."""
        again = self.run(failed.seed, failed.faults, explains=True)
        return again if again.violations else failed

    def shrunk(self, failed: SeedResult, judged: Judged = _as_it_is) -> SeedResult:
        """The same seed with the fewest faults found that still make it fail."""
        size = len(failed.faults)
        while size:
            smaller = self._without_some(failed, size, judged)
            if smaller is not None:
                failed = smaller
                size = min(size, len(failed.faults))
            else:
                size //= 2
        return failed

    def _without_some(self, failed: SeedResult, size: int, judged: Judged) -> SeedResult | None:
        collects = failed.evidence.results is not None
        for first in range(0, len(failed.faults), size):
            fewer = [*failed.faults[:first], *failed.faults[first + size :]]
            result = judged(self.run(failed.seed, fewer, collects=collects))
            if result.violations and len(result.faults) < len(failed.faults):
                return result
        return None

    async def _run(self, topology: Topology, seed: int, kit: JudgedKit) -> dict[str, int]:
        loop, witness = asyncio.get_running_loop(), kit.witness
        crowded = _crowded(kit)
        try:
            changed: dict[str, Any] = {**self._configuration, "drain_timeout": None, **crowded}
            changed["record_edges"] = 1.0 if kit.explains else 0.0
            if kit.way is not Way.AS_DECLARED:
                changed |= ROOM_AND_TIME
            run = topology.run(seed=seed, sources=self._sources, **changed)
            async with run as running:
                config = kit.tasks.all_spouts[0].context.config
                witness.timeout, witness.latest = config.message_timeout, _latest_timeout(config)
                kit.begin(running)
                await self._until_end(running, kit)
        except _Broken:
            return {}
        except (InvalidTopology, InvalidConfiguration):
            raise
        except TopologyCrashed as crash:
            if not kit.engine_raised:
                witness.violation("{}", str(crash))
                return {}
            check_counted(witness, kit.tasks)
        except StormletError as error:
            witness.violation("{}", str(error))
            return {}
        if len(asyncio.all_tasks()) > 1:
            witness.violation("tasks are left: {}", ", ".join(map(describe_task, pending_tasks(loop))))
        return _counts(kit.tasks)

    async def _until_end(self, running: Running, kit: JudgedKit) -> None:
        """Wait for the end, or for the first violation, which ends the run by :class:`_Broken`."""
        broken = asyncio.Event()
        kit.witness.on_violation = broken.set
        fed = [task.name for task in kit.tasks.all_spouts if task.feed.passive]
        if fed and self._seconds is None:
            raise InvalidTopology(f"{fed[0]} has no source: give it one with sources=, or say seconds=")
        if self._seconds is not None:
            await _until_either(broken.wait(), asyncio.sleep(self._seconds))
            if not broken.is_set():
                running.stop()
        if not broken.is_set():
            await _until_either(broken.wait(), self._judged_end(running, kit))
        if broken.is_set():
            kit.explain()
            raise _Broken

    async def _judged_end(self, running: Running, kit: JudgedKit) -> None:
        """Wait until nothing is under way any more, and judge what is left then."""
        ended = "finished" if self._seconds is None else "drained"
        try:
            async with asyncio.timeout(LONGEST):
                await running.finished()
        except TimeoutError:
            kit.witness.violation("it has not {} after {} s", ended, LONGEST)
        else:
            check_settled(kit.witness, kit.tasks)
            kit.end()


class _Broken(Exception):
    """The law was broken."""


async def _until_either(*ends: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of them, and cancel the others; raises what it raises."""
    waiting = [asyncio.ensure_future(end) for end in ends]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    for each in done:
        each.result()


def _latest_timeout(config: Configuration) -> float | None:
    """Seconds after which every tree has timed out that is given no more time (law L12)."""
    if config.message_timeout is None or config.timeout_restarts_on != "init":
        return None
    return config.message_timeout * config.timeout_buckets / (config.timeout_buckets - 1)


def _crowded(kit: DisturbedKit) -> dict[str, Any]:
    random = kit.injector.strikes(FaultKind.CROWD, "queues")
    if random is None:
        return {}
    sizes = {"queue_capacity": random.randint(1, 3), "max_spout_pending": random.randint(1, 3)}
    kit.journal.note("FAULT: {}", ", ".join(f"{name}={size}" for name, size in sizes.items()))
    return sizes


def _counts(tasks: Tasks) -> dict[str, int]:
    of_spouts = [task.tracker.counts for task in tasks.all_spouts]
    return {
        "acked": sum(each.acked for each in of_spouts),
        "replayed": sum(each.replayed for each in of_spouts),
        "dead_letters": sum(each.dead_letters for each in of_spouts),
        "restarts": sum(task.restarts.count for task in (*tasks.ackers, *tasks.all_spouts, *tasks.all_bolts)),
    }
