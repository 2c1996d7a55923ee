"""A running topology: its start, the handle that the host holds, and its end (law C1 to C5).

The end, in numbered steps. A *drain* does all of them; a crash, an exception in the body, or a second stop
request goes straight to 4.

1. Every source ends: no more ``next_tuple``, generators are closed, waiting ``running.emit`` calls raise
``TopologyStopping``. 2. The conductor works through what is there, with ``flush`` and ``finish``, upstream
first, until the topology is quiescent. 3. At the deadline all that is left fails with SHUTDOWN, and the
spouts are told. 4. Every task is cancelled, spouts first, and its ``close`` or ``cleanup`` is called.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from random import Random, SystemRandom
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar, overload

from stormlet.core.configuration import Configuration, configure
from stormlet.core.description import Stream
from stormlet.core.explanation import Explanation
from stormlet.core.failures import RepeatedFailure
from stormlet.core.health import Health, RunState
from stormlet.core.log_fields import log_fields
from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.plan import ACKER, Plan
from stormlet.core.statistics import Statistics, of_component
from stormlet.errors import InvalidTopology, StartFailed, TaskKilled, TopologyCrashed, TopologyStopping
from stormlet.runtime.assembly import Assembly
from stormlet.runtime.conductor import Conductor
from stormlet.runtime.dead_letters import DeadLetters, DeadLetterTarget
from stormlet.runtime.directory import Directory
from stormlet.runtime.engine import Culprit, Engine
from stormlet.runtime.explaining.explainer import Explainer
from stormlet.runtime.explaining.stuck_trees import StuckTrees
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.host_streams import HostStreams
from stormlet.runtime.messages import HostMessage
from stormlet.runtime.observers import OBSERVE, Observers
from stormlet.runtime.parts import Parts
from stormlet.runtime.slices import CountedSlices, Slices, TimedSlices
from stormlet.runtime.task import Task
from stormlet.runtime.tickers import rotate_ackers, tick_bolts
from stormlet.runtime.trees import Tree

T = TypeVar("T")
V = TypeVar("V")

logger = logging.getLogger(__name__)

SHUTDOWN = Failure(FailureKind.SHUTDOWN)
ORPHAN_TIMEOUT = 30.0
"""Seconds after which the ackers forget what they heard of trees that never began, where timeouts are off
(law L5)."""
LAST_OUTCOMES = 1.0
"""Seconds that spouts get at most to take note of what failed at the deadline."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run differs from another."""

    seed: int | None
    active: bool
    dead_letters: DeadLetterTarget | None


class Running:
    """The handle on a running topology."""

    def __init__(
        self, plan: Plan, configurations: Mapping[str, Configuration], options: RunOptions, topology: object
    ) -> None:
        loop = asyncio.get_running_loop()
        self._plan = plan
        self._name = plan.description.name
        self._configuration = plan.description.configuration
        self._active = options.active
        self._loop = loop
        self._conductor = Conductor(loop)
        simulated = bool(getattr(loop, "simulated_time", False))
        seed = _seed(loop, simulated=simulated) if options.seed is None else options.seed
        clock = _clock(loop, simulated=simulated)
        observe = OBSERVE.get()
        self._observer = None if observe is None else observe()
        directory = Directory()
        self._failures = FailureLog(self._name, loop, directory)
        self._engine = Engine(
            plan=plan,
            loop=loop,
            slices=_slices(loop, clock, self._configuration.slice, seed, simulated=simulated),
            activity=self._conductor.activity,
            seed=seed,
            context=copy_context(),
            crashed=self._crashed,
            failures=self._failures,
            clock=clock,
            parts=getattr(loop, "parts", None) or Parts(),
            simulated=simulated,
            observer=self._observer,
            longest_step=loop.slow_callback_duration if loop.get_debug() and not simulated else None,
        )
        self._dead_letters = DeadLetters(options.dead_letters, self._failures)
        self._tasks = Assembly(self._engine, configurations, self._dead_letters, directory.holders).tasks()
        directory.tasks = self._tasks
        self._engine.parts.assembled(self._tasks)
        self._explainer = Explainer(self._engine, self._tasks)
        self._record(self._configuration.record_edges)
        self._host_streams = HostStreams(self._engine, self._tasks, topology)
        self._conductor.conduct(self._tasks, plan.order)
        self._running: dict[asyncio.Task[None], Task] = {}
        self._helpers: list[asyncio.Task[None]] = []
        self._crash: TopologyCrashed | None = None
        self._crash_known: asyncio.Future[None] = loop.create_future()
        self._body: asyncio.Task[Any] | None = None
        self._started = False
        self._in_body = False
        self._body_cancelled = False
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._ended = False
        if self._observer is not None:
            self._observer.built(self._name, self, self._tasks)

    # What the host does.

    @overload
    async def emit(
        self, stream: Stream[T], value: T, *, collect: Stream[V], attempts: int = 1, origin: object = None
    ) -> Tree[V]: ...
    @overload
    async def emit(
        self, stream: Stream[T], value: T, *, attempts: int = 1, origin: object = None
    ) -> Tree[object]: ...
    async def emit(
        self,
        stream: Stream[Any],
        value: object,
        *,
        collect: Stream[Any] | None = None,
        attempts: int = 1,
        origin: object = None,
    ) -> Tree[Any]:
        """Emit a message on a spout's stream, as soon as there is room, and return its tree (law C4).

        Awaiting the tree gives its final outcome after at most ``attempts`` attempts, and the values that it
        sent to the stream ``collect``. ``origin`` is inherited by every tuple of the tree.

        Raises :class:`~stormlet.errors.TopologyStopping` if the topology drains, before or while it waits for
        room, and :class:`~stormlet.errors.TopologyCrashed` if it has crashed;
        :class:`~stormlet.errors.InvalidTopology` for a stream of another topology or of a bolt, and for
        ``attempts`` below 1; :class:`~stormlet.errors.InvalidEmit` for a value that does not fit the stream's
        declared fields.
        """
        self._check_loop("emit")
        task = self._host_streams.spout_for(stream, attempts)
        self._raise_crash()
        if self._draining is not None:  # the sources end an iteration after stop() at the latest
            raise TopologyStopping(
                f"topology {self._name!r} is draining or stopped and takes no new messages"
            )
        collected = None if collect is None else self._host_streams.tap(collect)
        try:
            await task.room_for_host()
        except TopologyStopping:
            self._raise_crash()  # which says more
            raise
        self._raise_crash()
        tree = Tree[Any](tracked=bool(self._tasks.ackers), spout=stream.component)
        lineage = task.lineage(origin)
        message = HostMessage(
            value, stream.name, None, lineage, tree=tree, max_attempts=attempts, collected=collected
        )
        task.emit_for_host(message)
        tree.explained_by(partial(self._explainer.of_message, message))
        return tree

    async def finished(self) -> None:
        """Wait until all spouts have ended and everything is settled, or a requested stop has drained.

        A spout without source ends only when the topology drains (law S5): where the host feeds one, leave the
        block, or call :meth:`stop` first.

        Raises :class:`~stormlet.errors.TopologyCrashed` if the topology crashes meanwhile.
        """
        self._raise_crash()
        if not self._ended and (self._draining is None or not self._draining.done()):
            await self._conductor.quiescent()

    def _check_loop(self, method: str) -> None:
        if not _runs_here(self._loop):
            way = "asyncio.run_coroutine_threadsafe" if method == "emit" else "loop.call_soon_threadsafe"
            raise RuntimeError(
                f"running.{method} was called outside the event loop of topology {self._name!r}; "
                f"from another thread, use {way}"
            )

    def _raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash.with_traceback(None)  # it may be raised any number of times

    def stop(self) -> None:
        """Ask for the end: the first call drains, a second one cancels (law C3); after the end it does nothing.
        To be called on the loop's thread."""
        if self._ended:
            return
        self._check_loop("stop")
        if self._draining is None:
            self._draining = self._loop.create_task(self._drain(), name=f"{self._name} drain")
        else:
            self._draining.cancel()
            self._abandon()  # the body may wait for a tree
            self._conductor.give_up(None)  # a drain that has not begun yet cannot say that it is over

    def activate(self) -> None:
        """Have the spouts asked for tuples (Storm's ``activate``)."""
        self._check_loop("activate")
        self._switch(True)

    def deactivate(self) -> None:
        """Ask the spouts for no more tuples; what is under way is processed (Storm's ``deactivate``)."""
        self._check_loop("deactivate")
        self._switch(False)

    def kill(self, component: str, task_index: int = 0) -> None:
        """Have one task die of :class:`~stormlet.errors.TaskKilled`, as if its code had raised where no tuple
        answers for it: to see what happens then. It does not count against ``max_restarts``. ``"__acker"`` names the
        ackers.

        Raises :class:`~stormlet.errors.InvalidTopology` for a task that does not exist.
        """
        self._check_loop("kill")
        tasks = self._tasks_by_component().get(component, ())
        if not 0 <= task_index < len(tasks):
            known = ", ".join(f"{id!r}" for id in self._tasks_by_component())
            raise InvalidTopology(
                f"topology {self._name!r} has no task {task_index} of {component!r}; components: {known}"
            )
        tasks[task_index].die(TaskKilled("somebody has killed it"))

    def statistics(self) -> Statistics:
        """What has been done so far, as exact counts."""
        tasks = self._tasks_by_component()
        return Statistics(
            {
                name: of_component({task.plan.task: task.statistics() for task in each}, self._tasks.progress)
                for name, each in tasks.items()
            }
        )

    def _tasks_by_component(self) -> Mapping[str, Sequence[Any]]:
        return {ACKER: self._tasks.ackers, **self._tasks.spouts, **self._tasks.bolts}

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The last dead letters, at most 1000; ``statistics().dead_letters`` counts all."""
        return tuple(self._dead_letters.last)

    def failures(self) -> Sequence[RepeatedFailure]:
        """The distinct failures so far, with their counts; the one that happened last stands at the end."""
        return self._failures.all()

    def explain(self, root: int) -> Explanation:
        """Why a tree is still open: which tuples are outstanding, in which task and queue, and what is done with them;
        what went wrong on earlier attempts. ``str()`` of it is for people. A root is what ``Tuple.roots`` has; a tree
        that was settled is forgotten, and said to be unknown.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``, and :class:`ValueError` for 0.
        """
        return self._explainer.of_root(root)

    def explain_oldest(self, most: int = 10) -> Sequence[Explanation]:
        """The same for the open trees that time out first, then for messages that wait for a replay or for
        ``dead_letters=`` to return; at most so many.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``.
        """
        return self._explainer.oldest(most)

    def record_edges(self, share: float = 1.0) -> None:
        """Record the edges of this share of the trees that begin from now on, so that explanations tell since when each
        tuple is where it is, and which way it came; 0 ends that and makes it free again. A run begins with its
        configuration's ``record_edges``.

        Raises :class:`~stormlet.errors.InvalidConfiguration` for anything but a number from 0 to 1.
        """
        self._check_loop("record_edges")
        configure(self._configuration, {"record_edges": share}, f"topology {self._name!r}")
        self._record(share)

    def _record(self, share: float) -> None:
        recorder = self._explainer.recorder
        recorder.record(share)
        for task in self._tasks.all_spouts:
            task.tracker.observer = Observers.of(recorder if recorder.on else None, self._observer)

    def health(self) -> Health:
        """How the topology is now; cheap enough for a readiness probe."""
        return Health(
            state=self._state(),
            pending=sum(task.tracker.pending for task in self._tasks.all_spouts),
            full=tuple(
                id for id, tasks in self._tasks.bolts.items() if any(task.inbox.full for task in tasks)
            ),
            crash=None if self._crash is None else str(self._crash),
            closing=tuple(self._closing()) if self._ended else (),
        )

    def _closing(self) -> Iterator[str]:
        for running, task in self._running.items():
            if task.leaving and not running.done() and task.plan.component != ACKER:
                yield task.name

    def _state(self) -> RunState:
        if self._crash is not None:
            return RunState.CRASHED
        if self._ended:
            return RunState.STOPPED
        if self._draining is not None:
            return RunState.DRAINING
        if not self._started:
            return RunState.STARTING
        return RunState.RUNNING if self._active else RunState.INACTIVE

    # The start.

    async def start(self) -> None:
        """Ackers, then bolts, then spouts (law C1). Raises :class:`~stormlet.errors.StartFailed` with what
        user code raised."""
        self._body = asyncio.current_task()
        if not self._tasks.ackers:
            logger.warning(
                "topology %r runs with ackers=0: nothing is tracked, and every message counts as acked",
                self._name,
                extra=log_fields(self._name),
            )
        try:
            self._spawn(self._tasks.ackers)
            self._spawn(self._tasks.all_bolts)
            await self._ready([task.ready for task in self._tasks.all_bolts])
            self._spawn(self._tasks.all_spouts)
            await self._ready([task.ready for task in self._tasks.all_spouts])
        except BaseException:
            await self._end()
            raise
        self._start_helpers()
        if self._active:
            self.activate()
        self._started = True
        self._in_body = True

    def _spawn(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            running = task.spawn(task.live(), f"{self._name}/{task.name}")
            self._running[running] = task

    async def _ready(self, ready: Sequence[asyncio.Future[None]]) -> None:
        for each in ready:
            await asyncio.wait([each, self._crash_known], return_when=asyncio.FIRST_COMPLETED)
            if self._crash is not None:
                raise StartFailed(self._name, self._crash.task, self._crash.what) from self._crash.__cause__

    def _start_helpers(self) -> None:
        configuration = self._configuration
        self._help("conductor", self._conductor.run())
        if self._tasks.ackers:
            timeout = configuration.message_timeout or ORPHAN_TIMEOUT
            self._help("ticker", rotate_ackers(self._tasks.ackers, timeout, configuration.timeout_buckets))
        for id, spec in self._plan.description.bolts.items():
            tasks = [task for task in self._tasks.bolts[id] if task.worker.method("tick") is not None]
            if spec.tick is not None and tasks:
                self._help(f"ticks of {id}", tick_bolts(tasks, spec.tick))
        if configuration.explain_stuck is not None and self._tasks.ackers:
            stuck = StuckTrees(self._name, self._explainer, configuration.explain_stuck)
            self._help("stuck trees", stuck.watch())

    def _help(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self._helpers.append(self._loop.create_task(coroutine, name=f"{self._name} {name}"))

    def _switch(self, active: bool) -> None:
        self._active = active
        for task in self._tasks.all_spouts:
            if task.active is not active:
                task.switch(active)

    # The end.

    async def leave(self, error: BaseException | None) -> None:
        """The body is over: drain, or cancel if it raised; then raise the crash, if there was one (law
        C5)."""
        self._in_body = False
        if self._body_cancelled and self._body is not None:
            self._body.uncancel()
        try:
            if error is None and self._crash is None:
                await self._drained()
        finally:
            await self._end()
            if self._observer is not None:
                self._observer.ended(drained=error is None and self._has_drained)
        if self._crash is not None:
            raise self._crash

    @property
    def _has_drained(self) -> bool:
        draining = self._draining
        return self._crash is None and draining is not None and draining.done() and not draining.cancelled()

    async def _drained(self) -> None:
        if self._draining is None:
            self.stop()
        assert self._draining is not None
        await asyncio.wait([self._draining, self._crash_known], return_when=asyncio.FIRST_COMPLETED)
        if self._draining.done() and not self._draining.cancelled():
            self._draining.result()

    async def _drain(self) -> None:
        """Steps 1 to 3 of the end."""
        for task in self._tasks.all_spouts:
            task.stop_source()
        try:
            async with asyncio.timeout(self._configuration.drain_timeout):
                await self._conductor.quiescent()
        except TimeoutError:
            await self._give_up()
        finally:
            self._conductor.give_up(None)

    async def _give_up(self) -> None:
        self._abandon()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_OUTCOMES):
                for task in self._tasks.all_spouts:
                    await task.tracker.when_quiet()

    def _abandon(self) -> None:
        for acker in self._tasks.ackers:
            acker.fail_all(SHUTDOWN)
        for task in self._tasks.all_spouts:
            task.tracker.abandon(SHUTDOWN)

    async def _end(self) -> None:
        """Step 4 of the end, all of it, also if the host is cancelled meanwhile; a second cancellation leaves it
        to end by itself."""
        ending = self._begin_to_end()
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            raise

    def _begin_to_end(self) -> asyncio.Task[None]:
        if self._ending is None:
            self._ending = self._loop.create_task(self._end_tasks(), name=f"{self._name} end")
        return self._ending

    async def _end_tasks(self) -> None:
        self._ended = True
        for task in self._tasks.all_spouts:
            task.stop_source()
        draining = [] if self._draining is None else [self._draining]
        await _cancel([*draining, *self._helpers])
        for tasks in (self._tasks.all_spouts, self._tasks.all_bolts, self._tasks.ackers):
            await self._end_these(tasks)
        self._abandon()
        for task in self._tasks.all_spouts:
            task.tracker.settle_left_over()
        self._conductor.give_up(self._crash)
        if not self._crash_known.done():
            self._crash_known.cancel()
        self._report_left_over()
        self._failures.close()

    async def _end_these(self, tasks: Sequence[Task]) -> None:
        running = [each for each, task in self._running.items() if task in tasks]
        await _cancel([each for each in running if not self._running[each].leaving])
        await _ended(running)

    # Crashes.

    def _crashed(self, culprit: Culprit, error: BaseException) -> None:
        """User code raised where no tuple answers for it: cancel the body, as a task group does (law C5)."""
        if self._crash is not None:
            return
        self._crash = TopologyCrashed(self._name, culprit.plan.name, culprit.doing, _restarts(culprit))
        self._crash.__cause__ = error
        self._crash_known.set_result(None)
        self._conductor.give_up(self._crash)
        if not self._in_body or self._body is None:
            return
        if self._body.done():  # it has entered the block, as in a notebook, and nobody may ever leave it
            self._begin_to_end()
        else:
            self._body_cancelled = True
            self._body.cancel()

    def _report_left_over(self) -> None:
        for name, spouts in self._tasks.spouts.items():
            count = sum(spout.tracker.counts.left_over for spout in spouts)
            if not count:
                continue
            logger.warning(
                "topology %r stopped before %d messages of %r had an outcome",
                self._name,
                count,
                name,
                extra=log_fields(self._name, name),
            )


class Run:
    """``async with topology.run() as running``: leaving the block drains, an exception cancels."""

    def __init__(self, make: Callable[[], Running]) -> None:
        self._make = make
        self._running: Running | None = None

    async def __aenter__(self) -> Running:
        if self._running is not None:
            raise InvalidTopology("this run was entered before; call topology.run() again")
        self._running = self._make()
        await self._running.start()
        return self._running

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._running is not None, "the block was never entered"
        await self._running.leave(error)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _restarts(culprit: Culprit) -> str:
    """How often the task that crashed has been restarted, in words."""
    restarts = culprit.restarts
    return f"{restarts.count} restarts, of at most {restarts.policy}" if restarts.count else ""


def _seed(loop: asyncio.AbstractEventLoop, *, simulated: bool) -> int:
    # A simulated loop has a seed of its own, so that whatever runs on it can be repeated (law L16).
    return int(getattr(loop, "seed", 0)) if simulated else SystemRandom().getrandbits(64)


def _clock(loop: asyncio.AbstractEventLoop, *, simulated: bool) -> Callable[[], float]:
    # uvloop's clock counts whole milliseconds of this one; a slice of two would be two or three.
    is_monotonic = not simulated and abs(loop.time() - monotonic()) < 0.1
    return monotonic if is_monotonic else loop.time


def _slices(
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], float],
    budget: float,
    seed: int,
    *,
    simulated: bool,
) -> Slices:
    return CountedSlices(loop, Random(f"{seed}/slices")) if simulated else TimedSlices(loop, budget, clock)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel every task and wait for its end."""
    for task in tasks:
        task.cancel()
    await _ended(tasks)


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)
