"""One simulated run of a topology, under a seed and its faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, TypeAlias, cast

from stormlet.core.state.commits import Store
from stormlet.errors import InvalidConfiguration, InvalidTopology, StormletError, TopologyCrashed
from stormlet.model.checks.numbers import check_seconds
from stormlet.model.configuration import Configuration
from stormlet.runtime.run.handle import Running
from stormlet.runtime.tasks import Tasks
from stormlet.testing.arguments import check_topology
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.evidence import SeedResult, Way
from stormlet.testing.chaos.faults import Fault, FaultKind, Faults, Injector
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.kit import JudgedKit
from stormlet.testing.chaos.lives import Crash, Hold, Outlived
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
        injector, outlived, journal = Injector(seed, faults), Outlived(), Journal(float)
        counts = Counter[str]()
        while True:
            run = DisturbedRun(injector, explains=explains, journal=journal, outlived=outlived)
            kit = JudgedKit(run, allowed=self.allowed, collects=collects, way=way)
            counts.update(self._live(seed, kit))
            if not kit.ended_early or run.witness.violations:
                break
            outlived.lives += 1
        return SeedResult(
            seed,
            injector.injected,
            run.witness.violations,
            counts,
            journal,
            injector.missed,
            run.explanations,
            kit.evidence,
        )

    def _live(self, seed: int, kit: JudgedKit) -> Mapping[str, int]:
        """One life; return its counts."""
        topology = self._topology
        if not isinstance(topology, Topology):
            topology = check_topology("simulate", topology())
        self.name = topology.name
        run, outlived = kit.run, kit.run.outlived
        loop = SeededLoop(seed + (outlived.lives << 32), kit, run.steps.begins, lambda: run.progress)
        loop.jump(outlived.time)
        run.use(loop.time, loop.jump)
        if topology.describe(self._sources).state:
            run.hold = Hold(outlived, run)
            run.steps.count_all()
        counts: Mapping[str, int] = {}
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                counts = runner.run(self._run(topology, seed, kit))
            except Crash:
                counts = _counts(run.tasks) if run.has_begun else {}
                run.end()
                kit.ended_early = True
                loop.set_exception_handler(lambda loop, context: None)  # nobody is there to hear of anything
            except Deadlock as error:
                run.witness.violation("it hangs: {}", str(error))
                run.explain()
            except Livelock as error:
                known = error.knowing(endless(run.tasks.all_spouts))
                if known.sources and loop.advances:
                    raise InvalidTopology(
                        f"topology {self.name!r} does not come to an end: {known}"
                    ) from None
                run.witness.violation("it hangs: {}", str(known))
            finally:
                outlived.time = loop.time()
                run.steps.end()  # what is left is the end of the loop
        kit.forget()
        return counts

    def collected(self, seed: int, faults: Faults | Iterable[Fault], way: Way) -> SeedResult:
        """One run and its results."""
        return self.run(seed, faults, collects=True, way=way)

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
        run, witness = kit.run, kit.run.witness
        crowded = _crowded(run)
        try:
            changed: dict[str, Any] = {**self._configuration, "drain_timeout": None, **crowded}
            changed["record_edges"] = 1.0 if run.explains else 0.0
            if kit.way is not Way.AS_DECLARED:
                changed |= ROOM_AND_TIME
            if kit.way is Way.ALONE:
                changed["epoch_messages"] = 1
            hold = cast("Store | None", run.hold)
            async with topology.run(seed=seed, sources=self._sources, state=hold, **changed) as running:
                config = run.tasks.all_spouts[0].context.config
                witness.timeout, witness.latest = config.message_timeout, _latest_timeout(config)
                run.begin(lambda: running.health().crash is not None, running.explain_oldest)
                await self._until_end(running, kit)
        except _Broken:
            return {}
        except (InvalidTopology, InvalidConfiguration):
            raise
        except TopologyCrashed as crash:
            may_crash = run.engine_raised or (run.hold is not None and run.hold.has_failed)
            if not may_crash:
                witness.violation("{}", str(crash))
                return {}
            run.check_counted()
            kit.ended_early = run.hold is not None
        except StormletError as error:
            witness.violation("{}", str(error))
            return {}
        if len(asyncio.all_tasks()) > 1:
            left = pending_tasks(asyncio.get_running_loop())
            witness.violation("tasks are left: {}", ", ".join(map(describe_task, left)))
        if run.hold is not None and not kit.ended_early:
            run.check_delivered()
        return _counts(run.tasks)

    async def _until_end(self, running: Running, kit: JudgedKit) -> None:
        """Wait for the end, or for the first violation, which ends the run by :class:`_Broken`."""
        broken = asyncio.Event()
        kit.run.witness.on_violation = broken.set
        fed = [task.name for task in kit.run.tasks.all_spouts if task.feed.passive]
        if fed and self._seconds is None:
            raise InvalidTopology(
                f"{fed[0]} has no source: declare it with one, give it one with sources=, or say seconds="
            )
        if self._seconds is not None:
            left = self._seconds - asyncio.get_running_loop().time()
            await _until_either(broken.wait(), asyncio.sleep(max(left, 0.0)))
            if not broken.is_set():
                running.stop()
        if not broken.is_set():
            await _until_either(broken.wait(), self._judged_end(running, kit))
        if broken.is_set():
            kit.run.explain()
            raise _Broken

    async def _judged_end(self, running: Running, kit: JudgedKit) -> None:
        """Wait until nothing is under way any more, and judge what is left then."""
        ended = "finished" if self._seconds is None else "drained"
        try:
            async with asyncio.timeout(LONGEST):
                await running.finished()
        except TimeoutError:
            kit.run.witness.violation("it has not {} after {} s", ended, LONGEST)
        else:
            kit.run.check_settled()
            kit.end(running)


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


def _crowded(run: DisturbedRun) -> dict[str, Any]:
    random = run.injector.strikes(FaultKind.CROWD, "queues")
    if random is None:
        return {}
    sizes = {"queue_capacity": random.randint(1, 3), "max_spout_pending": random.randint(1, 3)}
    run.journal.note("FAULT: {}", ", ".join(f"{name}={size}" for name, size in sizes.items()))
    return sizes


def _counts(tasks: Tasks) -> dict[str, int]:
    of_spouts = [task.tracker.counts for task in tasks.all_spouts]
    return {
        "acked": sum(each.acked for each in of_spouts),
        "replayed": sum(each.replayed for each in of_spouts),
        "dead_letters": sum(each.dead_letters for each in of_spouts),
        "restarts": sum(task.restarts.count for task in (*tasks.ackers, *tasks.all_spouts, *tasks.all_bolts)),
    }
