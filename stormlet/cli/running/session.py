"""One run of a topology by the command line, from its start to its result."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from stormlet.cli.running.endings import Ending, Stage, ended_by_closed_output, ended_by_signals
from stormlet.cli.running.fresh import move_aside
from stormlet.cli.running.letters import Letters, refuse_files_of
from stormlet.cli.running.loops import (
    await_default_threads,
    await_threads,
    crash_of,
    run_on,
    start_failure_of,
)
from stormlet.cli.running.meter import Meter, known_length
from stormlet.cli.running.observation import SETTLED, Observation
from stormlet.cli.running.outcome import Outcome, Replayed, Result
from stormlet.cli.running.page import Page
from stormlet.cli.running.presenter import Presenter
from stormlet.cli.running.replaying import Replay
from stormlet.cli.running.signals import signals_handled_by
from stormlet.cli.running.streams import GuardedStream
from stormlet.core.shortened import printable
from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.description import Description
from stormlet.model.logic import SourceKind
from stormlet.model.setting_layers import Layered
from stormlet.report.statistics import Statistics
from stormlet.runtime.run.entry import Run
from stormlet.runtime.run.handle import Running
from stormlet.topology import Topology


@dataclass(frozen=True, slots=True)
class How:
    """The choices in which one run differs from another."""

    settings: Layered
    seed: int | None = None
    duration: float | None = None
    """Seconds after which it drains; None: when its sources have ended."""
    state: Path | None = None
    """The file that state is kept in; the topology's own where there is none."""
    fresh: bool = False
    """True if the file is moved aside first."""
    dead_letters: Path | None = None
    replay: Path | None = None
    """The dead letters that are emitted instead of what the sources have."""
    quiet: bool = False
    page: Page | None = None


class Session:
    """Runs a topology once, shows it, and lets it be ended."""

    def __init__(
        self,
        topology: Topology,
        how: How,
        loop: asyncio.AbstractEventLoop,
        output: GuardedStream | None,
        errors: GuardedStream | None,
    ) -> None:
        settings = how.settings.values
        self._topology = topology
        self._description = topology.describe()
        self._how = how
        self._loop = loop
        self._output = output
        self._presenter = Presenter(output, None if how.quiet else errors)
        self._ending = Ending(loop)
        if how.dead_letters is not None:
            refuse_files_of(self._description, how.state, how.dead_letters)
        self._replay = (
            None if how.replay is None else Replay(how.replay, topology, settings, how.dead_letters)
        )
        self._letters = None if how.dead_letters is None else Letters(how.dead_letters)
        total = None if how.replay else known_length(self._description)
        self._meter = Meter(self._description, settings, total)
        self._threaded = frozenset(_tasks_with_threads(self._description))
        self._run_of_topology: Run | None = None
        self._running: Running | None = None
        self._began = time.monotonic()
        self._seconds = 0.0
        self._main: asyncio.Task[TopologyCrashed | None] | None = None
        self._escaped: TopologyCrashed | None = None

    def run(self) -> Result:
        """Run until its end, and say how it was. Raises what keeps it from being run at all:
        :class:`~stormlet.errors.InvalidTopology`."""
        with ended_by_signals(self._ending, self._presenter.say_at_once):
            self._main = self._loop.create_task(self._run(), name="stormlet run")
            while (error := run_on(self._loop, self._main)) is not None:
                self._escape(error)
            result = self._result(self._main.result())
            self._summarise(result)
        return result

    def await_threads(self) -> None:
        """After the run: wait for user code in threads, without which the process cannot end. A signal kills
        meanwhile."""
        with signals_handled_by(signal.SIG_DFL):
            self._loop.run_until_complete(await_default_threads(self._presenter.say))
            await_threads(self._threaded, self._presenter.say)

    def _escape(self, error: BaseException) -> None:
        """End the run, as user code has ended the loop. A crash that the topology knows of, or will as the loop
        goes on, ends the run already, and says more."""
        has_crashed = self._run_of_topology is not None and self._run_of_topology.crashed
        if self._escaped is None and self._main is not None and not has_crashed:
            self._escaped = crash_of(self._topology.name, error, started=self._running is not None)
            self._main.cancel()

    # The run.

    async def _run(self) -> TopologyCrashed | None:
        assert self._main is not None
        self._ending.cancel_start = self._main.cancel
        if self._ending.stage is Stage.CANCELLED:  # by a signal that was faster
            return None
        try:
            await self._run_topology()
        except TopologyCrashed as crash:
            return crash
        except asyncio.CancelledError:
            if self._escaped is None and self._ending.stage is Stage.RUNNING:
                raise
        except (SystemExit, KeyboardInterrupt) as error:
            return start_failure_of(self._topology.name, error)
        return self._escaped

    async def _run_topology(self) -> None:
        how = self._how
        # After the block is left: its drain is shown, and can be stopped, too.
        async with AsyncExitStack() as at_the_end:
            if how.page is not None:
                await at_the_end.enter_async_context(how.page.served(self._presenter.say))
            at_the_end.callback(self._take_time)
            at_the_end.enter_context(ended_by_closed_output(self._ending, self._output, self._say_anyway))
            self._run_of_topology = self._topology.run(
                seed=how.seed,
                active=how.replay is None,
                dead_letters=None if self._letters is None else self._letters.write,
                sources=None,
                state=how.state,
                **cast("TopologyOptions", how.settings.values),
            )
            at_the_end.callback(self._run_of_topology.close)
            if how.fresh:
                move_aside(self._topology, how.state, self._presenter.say)
            async with self._run_of_topology as running:
                self._began = time.monotonic()
                self._running = running
                self._ending.stop = running.stop
                if how.page is not None:
                    how.page.app.show(running, how.page.origins)
                observation = Observation(running, self._meter, self._ending, self._threaded)
                at_the_end.enter_context(self._presenter.showing(observation))
                await self._work(running)
                self._ending.begin()

    async def _work(self, running: Running) -> None:
        if self._how.duration is not None:
            self._ending.end_after(self._how.duration)
        if self._replay is not None:
            await self._replay.through(running)
        else:
            self._warn_of_unfed_spouts()
            await running.finished()

    def _say_anyway(self, text: str) -> None:
        """In a quiet run, too, whose exit code would have no reason otherwise."""
        if not self._how.quiet:
            self._presenter.say(text)
        else:
            print(f"stormlet: {text}", file=sys.stderr)

    def _warn_of_unfed_spouts(self) -> None:
        for spout in self._description.spouts.values():
            if spout.kind is SourceKind.FED and self._how.duration is None:
                self._presenter.say(
                    f"spout {spout.id!r} has no source, so this run waits for Ctrl-C; "
                    f"running.emit could feed it"
                )

    # The end.

    def _take_time(self) -> None:
        self._seconds = time.monotonic() - self._began

    def _summarise(self, result: Result) -> None:
        if self._running is not None:
            frame = self._meter.summary(result.statistics, result.seconds)
            limit = self._running.bottleneck("all") if result.seconds >= SETTLED else None
            frame = frame if limit is None else replace(frame, bottleneck=limit.sentence)
            frame = frame if self._letters is None else replace(frame, written=self._letters.written)
            replayed = "" if self._replay is None else self._replay.summary()
            self._presenter.summarise(frame, self._running.failures(), replayed)

    def _result(self, error: TopologyCrashed | None) -> Result:
        replay = self._replay
        return Result(
            topology=self._topology.name,
            outcome=self._outcome(error),
            seconds=self._seconds,
            signal=self._ending.signal,
            statistics=Statistics({}) if self._running is None else self._running.statistics(),
            error=error,
            replayed=None
            if replay is None
            else Replayed(replay.acked, replay.failed_again, replay.not_tried),
        )

    def _outcome(self, error: TopologyCrashed | None) -> Outcome:
        if error is not None:
            return Outcome.NOT_STARTED if isinstance(error, StartFailed) else Outcome.CRASHED
        stages = {Stage.RUNNING: Outcome.FINISHED, Stage.DRAINING: Outcome.STOPPED}
        return stages.get(self._ending.stage, Outcome.CANCELLED)


def _tasks_with_threads(description: Description) -> Iterator[str]:
    for bolt in description.bolts.values():
        if bolt.executor == "thread":
            yield from (f"{printable(bolt.id)}[{index}]" for index in range(bolt.parallelism))
