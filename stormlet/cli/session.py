"""One run of a topology by the command line, from its start to its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb

from stormlet.cli.endings import Ending, Stage, ended_by_closed_output, ended_by_signals, write_at_once
from stormlet.cli.live import LiveView, is_terminal
from stormlet.cli.loops import run_to_the_end
from stormlet.cli.meter import Meter, known_length
from stormlet.cli.observation import Observation
from stormlet.cli.outcome import Outcome, Replayed, Result
from stormlet.cli.progress import report
from stormlet.cli.replaying import Replay
from stormlet.cli.streams import GuardedStream
from stormlet.cli.stuck_threads import await_threads
from stormlet.cli.view import closing_summary
from stormlet.core.logic import SourceKind
from stormlet.core.statistics import Statistics
from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.runtime.running import Running
from stormlet.runtime.task import Task
from stormlet.topology import Topology


@dataclass(frozen=True, slots=True)
class How:
    """How one run differs from another."""

    settings: Mapping[str, object]
    seed: int | None = None
    duration: float | None = None
    """Seconds after which it drains; None: when its sources have ended."""
    dead_letters: Path | None = None
    replay: Replay | None = None
    """The dead letters that are emitted instead of what the sources have."""
    quiet: bool = False


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
        description = topology.describe()
        self._topology = topology
        self._how = how
        self._loop = loop
        self._output = output
        self._errors = None if how.quiet else errors
        self._ending = Ending(loop)
        total = None if how.replay else known_length(description)
        self._meter = Meter(description, how.settings, total)
        self._view = LiveView(errors, output) if errors and is_terminal(self._errors) else None
        self._threaded = {
            f"{bolt.id}[{index}]"
            for bolt in description.bolts.values()
            for index in range(bolt.parallelism)
            if bolt.executor == "thread"
        }
        self._running: Running | None = None
        self._began = time.monotonic()
        self._seconds = 0.0
        self._main: asyncio.Task[TopologyCrashed | None] | None = None
        self._escaped: TopologyCrashed | None = None

    def run(self) -> Result:
        """Run until its end, and say how it was. Raises what keeps it from being run at all:
        :class:`~stormlet.errors.InvalidTopology`."""
        with ended_by_signals(self._ending, self._say_at_once):
            self._main = self._loop.create_task(self._run(), name="stormlet run")
            error = run_to_the_end(self._loop, self._main, self)
            result = self._result(error)
            self._summarise(result)
            self._loop.run_until_complete(self._end_default_threads())
        await_threads(self._threaded, self.say)
        return result

    def escaped(self, error: BaseException) -> None:
        """User code tried to end the process: that is a crash of its component."""
        if self._escaped is None and self._main is not None:
            self._escaped = _crash_of(self._topology.name, error)
            self._main.cancel()

    def say(self, text: str) -> None:
        """Tell the user, on standard error."""
        if self._errors is not None:
            self._errors.write(f"{text}\n")
            self._errors.flush()

    # The run.

    async def _run(self) -> TopologyCrashed | None:
        assert self._main is not None
        self._ending.cancel_start = self._main.cancel
        try:
            await self._run_topology()
        except TopologyCrashed as crash:
            return crash
        except asyncio.CancelledError:
            if self._escaped is None and self._ending.stage is Stage.RUNNING:
                raise
        except (SystemExit, KeyboardInterrupt) as error:
            return _start_failure_of(self._topology.name, error)
        return self._escaped

    async def _run_topology(self) -> None:
        how = self._how
        with (
            ExitStack() as at_the_end
        ):  # after the block is left: its drain is shown, and can be stopped, too
            at_the_end.callback(self._take_time)
            at_the_end.enter_context(ended_by_closed_output(self._ending, self._output, self.say))
            async with self._topology.run(
                seed=how.seed, active=how.replay is None, dead_letters=how.dead_letters, **how.settings
            ) as running:
                self._began = time.monotonic()
                self._running = running
                self._ending.stop = running.stop
                self._show(running, at_the_end)
                await self._work(running)

    async def _work(self, running: Running) -> None:
        how = self._how
        if how.duration is not None:
            self._ending.end_after(how.duration)
        if how.replay is not None:
            await how.replay.through(running)
        else:
            self._mention_what_nobody_feeds()
            await running.finished()

    def _mention_what_nobody_feeds(self) -> None:
        for spout in self._topology.describe().spouts.values():
            if spout.kind is SourceKind.FED and self._how.duration is None:
                self.say(
                    f"spout {spout.id!r} has no source, so this run waits for Ctrl-C; "
                    f"running.emit could feed it"
                )

    # What is shown.

    def _show(self, running: Running, at_the_end: ExitStack) -> None:
        if self._errors is None:
            return
        observation = Observation(running, self._meter, self._ending, self._threaded)
        if self._view is not None:
            at_the_end.enter_context(self._view.shown())
            showing = self._view.run(observation)
        else:
            showing = report(observation, self.say)
        at_the_end.callback(self._loop.create_task(self._harmless(showing), name="stormlet view").cancel)

    async def _harmless(self, showing: Coroutine[object, object, None]) -> None:
        try:
            await showing
        except Exception as error:  # whatever is wrong with a view, the run goes on
            if self._view is not None:
                self._view.screen.close()
            self.say(f"the view has ended, the run goes on: {error!r}")

    def _say_at_once(self, text: str) -> None:
        if self._view is not None and self._view.is_shown:
            self._view.screen.print_at_once(text)
        elif self._errors is not None:
            write_at_once(text)

    def _summarise(self, result: Result) -> None:
        if self._running is None or self._errors is None:
            return
        frame = self._meter.summary(result.statistics, result.seconds)
        failures = self._running.failures()
        if self._view is None:
            lines = [line.plain.rstrip() for line in closing_summary(frame, failures, None)]
        else:
            lines = self._view.styled(closing_summary(frame, failures, self._view.screen.size().columns))
        self.say("\n".join(lines))
        if self._how.replay is not None:
            self.say(self._how.replay.summary())

    # The end.

    def _take_time(self) -> None:
        self._seconds = time.monotonic() - self._began

    async def _end_default_threads(self) -> None:
        ending = self._loop.create_task(self._loop.shutdown_default_executor())
        done, _ = await asyncio.wait([ending], timeout=1.0)
        if not done:
            self.say("waiting for user code in threads (asyncio.to_thread, run_in_executor) to return")
            await ending

    def _result(self, error: TopologyCrashed | None) -> Result:
        statistics = Statistics({}) if self._running is None else self._running.statistics()
        replay = self._how.replay
        return Result(
            topology=self._topology.name,
            outcome=self._outcome(error),
            seconds=self._seconds,
            signal=self._ending.signal,
            statistics=statistics,
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


def _crash_of(topology: str, error: BaseException) -> TopologyCrashed:
    """The crash of the component whose code raised it."""
    frames = walk_tb(error.__traceback__)
    owners = (frame.f_locals.get("self") for frame, _ in frames)
    task = next((each for each in owners if isinstance(each, Task)), None)
    crash = TopologyCrashed(topology, "the topology" if task is None else task.name, "user code")
    crash.__cause__ = error
    return crash


def _start_failure_of(topology: str, error: BaseException) -> StartFailed:
    failure = StartFailed(topology, "a component", "the constructor")
    failure.__cause__ = error
    return failure
