"""The handle that the host holds in the block in which a topology runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar, overload

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import InvalidTopology, StartFailed, TaskKilled, TopologyStopping
from stormlet.model.checks.numbers import check_int
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.configuration import Configuration, configure
from stormlet.model.plan import ACKER
from stormlet.model.planning import Plan
from stormlet.model.streams import Stream
from stormlet.report.bottleneck import Bottleneck
from stormlet.report.explanation import Explanation
from stormlet.report.failures import RepeatedFailure
from stormlet.report.figures import Figures
from stormlet.report.health import Health
from stormlet.report.series import Point
from stormlet.report.statistics import Statistics
from stormlet.report.steps import at_once
from stormlet.report.windows import Span, Window
from stormlet.runtime.context import engine_on
from stormlet.runtime.dead_letters import DeadLetters, DeadLetterTarget
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.epochs.states import KeptState
from stormlet.runtime.explain.explainer import Explainer
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.hooks.run import HookFactory, RunHooks
from stormlet.runtime.run.assembly import Assembly
from stormlet.runtime.run.background import background
from stormlet.runtime.run.block import Block
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.run.counting import Counting
from stormlet.runtime.run.host_states import HostStates
from stormlet.runtime.run.host_streams import HostStreams
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.run.lifecycle import Lifecycle
from stormlet.runtime.run.loop_probe import LoopProbe
from stormlet.runtime.run.monitor import Monitor, facts_of
from stormlet.runtime.run.observers import OBSERVE, ObservedRun, Observers
from stormlet.runtime.slices import Activity
from stormlet.runtime.spout.host import HostEmits
from stormlet.runtime.spout.messages import HostMessage
from stormlet.runtime.tasks import Directory
from stormlet.runtime.tracing import TracedRun, Traces
from stormlet.runtime.tree import Tree

T = TypeVar("T")
V = TypeVar("V")


class RunOptions(msgspec.Struct, frozen=True):
    """Options of one run."""

    seed: int | None
    active: bool
    dead_letters: DeadLetterTarget | None
    hooks: Sequence[HookFactory] = ()
    traces: Traces | None = None


class Running:
    """The handle on a running topology."""

    def __init__(
        self,
        plan: Plan,
        configurations: Mapping[str, Configuration],
        options: RunOptions,
        topology: object,
        state: KeptState | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        description = plan.description
        self._name = description.name
        self._plan = plan
        self._configurations = configurations
        self._configuration = description.configuration
        self._loop = loop
        # First, as every task reports its crash there. What is made later gets all that was made before it.
        self._block = Block(self._name, loop)
        activity = Activity()
        observe = OBSERVE.get()
        self._observer = None if observe is None else observe()
        directory = Directory()
        unanswered = None if self._observer is None else self._observer.unanswered
        self._failures = FailureLog(self._name, loop, directory.message_id, unanswered)
        # By the loop, as simulations have one of their own; topology.run() needs no option for it.
        kit: Kit = getattr(loop, "kit", None) or Kit()
        self._engine = engine_on(
            loop,
            plan,
            options.seed,
            activity=activity,
            crashed=self._block.crashed,
            host_leaves=self._block.host_leaves,
            failures=self._failures,
            observer=self._observer,
            epoch=None if state is None else state.open_epoch(self._configuration.epoch_messages),
        )
        engine = self._engine
        if options.traces is not None:
            run = TracedRun(self._name, engine.clock, engine.context, engine.seed)
            engine.tracing = options.traces.start(run)
        self._dead_letters = DeadLetters(options.dead_letters, self._failures, kit.dead_letters)
        hooks = RunHooks(self._name, options.hooks, self._engine.clock)
        assembly = Assembly(
            self._engine, kit, configurations, self._dead_letters, directory.unsettled, hooks, state
        )
        self._tasks = assembly.tasks()
        self._beside = Observers.of(self._observer, hooks.observer)
        directory.tasks = self._tasks
        kit.assembled(self._tasks)
        self._explainer = Explainer(self._engine, self._tasks)
        self._record(self._configuration.record_edges, executions=kit.records_executions)
        self._host_streams = HostStreams(self._engine, self._tasks, topology)
        self._epochs = self._keeper(state, assembly)
        self._host_states = HostStates(self._name, () if state is None else state.states, self._epochs)
        self._conductor = Conductor(loop, activity, self._tasks, plan.order, self._name, epochs=self._epochs)
        probe = LoopProbe(loop, self._engine.clock, Random(f"{self._engine.seed}/probe"), activity)
        epochs = None if self._epochs is None else self._epochs.statistics
        self._counting = Counting(plan, self._tasks, probe, epochs)
        self._monitor = Monitor(
            self._name,
            loop,
            self._counting.statistics,
            facts_of(plan, configurations, has_threads=not self._engine.simulated),
        )
        # On a simulated loop only by request: a timer that is always there would hide deadlocks.
        is_watched = not self._engine.simulated or getattr(loop, "probes_lag", False)
        self._lifecycle = Lifecycle(
            self._name,
            self._configuration,
            self._block,
            self._tasks,
            self._conductor,
            partial(
                background,
                description,
                self._tasks,
                self._conductor,
                self._explainer,
                self._epochs,
                probe if is_watched else None,
                self._monitor if is_watched else None,
            ),
            self._failures,
            self._observer,
            self._epochs,
            active=options.active,
        )
        self._lifecycle.at_end.append(hooks.cleanup)
        if engine.tracing is not None:
            self._lifecycle.at_end.append(engine.tracing.close)
        if self._observer is not None:
            self._observer.built(
                ObservedRun(self._name, self._tasks, self._record, self.explain_oldest, self.health)
            )

    def _keeper(self, state: KeptState | None, assembly: Assembly) -> EpochKeeper | None:
        epoch = self._engine.epoch
        if state is None or epoch is None:
            return None
        return EpochKeeper(
            self._engine,
            epoch,
            self._configuration,
            state,
            self._tasks,
            assembly.own_verdicts,
            lambda: self._conductor.look(),
            self._block.part_failed,
            self._dead_letters.sync,
        )

    @property
    def name(self) -> str:
        """The name of the topology."""
        return self._name

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

        Awaiting the tree gives its final outcome after at most ``attempts`` attempts, of which the death of an acker
        is none, and the values that it sent to the stream ``collect``. ``origin`` is inherited by every tuple of the
        tree.

        Raises :class:`~stormlet.errors.TopologyStopping` if the topology drains, before or while it waits for
        room, and :class:`~stormlet.errors.TopologyCrashed` if it has crashed;
        :class:`~stormlet.errors.InvalidTopology` for a stream of another topology or of a bolt, and for
        ``attempts`` below 1; :class:`~stormlet.errors.InvalidEmit` for a value that does not fit the stream's
        declared fields, and for a custom grouping that raised; :class:`~stormlet.errors.KeyFunctionFailed` and
        :class:`~stormlet.errors.UnroutableKey` for a value that has no key; and
        :class:`~stormlet.errors.StrayCancellation` if a key function or custom grouping raised a cancellation.
        """
        self._check_loop("emit")
        task = self._host_streams.spout_for(stream, attempts)
        self._raise_crash()
        if self._lifecycle.stopping:  # the sources end an iteration after stop() at the latest
            raise TopologyStopping(
                f"topology {self._name!r} is draining or stopped and takes no new messages"
            )
        # Before the message is emitted: what is collected may be the spout's own stream.
        collected = None if collect is None else self._host_streams.tap(collect)
        if not task.host.may_emit:
            await self._room(task.host)
        # When there is room and not before: a wait that is cancelled must leave no tree behind.
        tree: Tree[Any] = Tree(tracked=bool(self._tasks.ackers), spout=stream.component, loop=self._loop)
        # In the context of the caller, whose variables the message carries along (law B10).
        lineage = task.lineage(origin)
        message = HostMessage(
            value, stream.name, lineage, tree=tree, max_attempts=attempts, collected=collected
        )
        task.host.emit(message)
        if task.outcomes:  # known at once (law L17)
            task.attend_soon()
        tree.explained_by(partial(self._explainer.of_message, message))
        return tree

    async def _room(self, host: HostEmits) -> None:
        try:
            await host.room()
        except TopologyStopping:
            self._raise_crash()  # which says more
            raise
        self._raise_crash()

    async def finished(self) -> None:
        """Wait until all spouts have ended and everything is settled, or a requested stop has drained.

        A spout without source ends only when the topology drains (law S5): where the host feeds one, leave the
        block, or call :meth:`stop` first.

        Raises :class:`~stormlet.errors.TopologyCrashed` if the topology crashes meanwhile.
        """
        self._check_loop("finished")
        self._raise_crash()
        # Once it is over the conductor has ended, and would never wake this.
        if not self._lifecycle.over:
            await self._conductor.quiescent()

    def _check_loop(self, method: str) -> None:
        # The private form gives None where no loop runs, where the public one raises; this is asked for every emit.
        if asyncio._get_running_loop() is not self._loop:  # pyright: ignore[reportPrivateUsage]
            is_awaited = method in ("emit", "finished")
            way = "asyncio.run_coroutine_threadsafe" if is_awaited else "loop.call_soon_threadsafe"
            raise RuntimeError(
                f"running.{method} was called outside the event loop of topology {self._name!r}; "
                f"from another thread, use {way}"
            )

    def _raise_crash(self) -> None:
        crash = self._block.crash
        if crash is not None:
            raise crash.with_traceback(None)  # it may be raised any number of times

    def stop(self) -> None:
        """Ask for the end: the first call drains, a second one cancels (law C3); after the end it does nothing.
        To be called on the loop's thread."""
        # A signal handler may call it at any time, also after the end.
        if not self._lifecycle.ended:
            self._check_loop("stop")
            self._lifecycle.stop()

    def activate(self) -> None:
        """Have the spouts asked for tuples (Storm's ``activate``)."""
        self._check_loop("activate")
        self._lifecycle.switch(True)

    def deactivate(self) -> None:
        """Ask the spouts for no more tuples; what is under way is processed, but bolts are not asked to flush what
        they hold (Storm's ``deactivate``)."""
        self._check_loop("deactivate")
        self._lifecycle.switch(False)

    def kill(self, component: str, task_index: int = 0) -> None:
        """Have one task die of :class:`~stormlet.errors.TaskKilled`, as if its code had raised where no tuple
        answers for it: to see what happens then. It does not count against ``max_restarts``. ``"__acker"`` names the
        ackers. An async generator that is awaited just then is over by that, which crashes the topology unless its
        function takes ``resume=``. One that ``health().restarting`` names is dead already, and not killed again.

        Raises :class:`~stormlet.errors.InvalidTopology` for a task that does not exist.
        """
        self._check_loop("kill")
        check_int(f"kill of {component!r} of topology {self._name!r}", "task_index", task_index)
        tasks = self._tasks_by_component().get(component, ())
        if not 0 <= task_index < len(tasks):
            known = ", ".join(f"{id!r}" for id in self._tasks_by_component())
            raise InvalidTopology(
                f"topology {self._name!r} has no task {task_index} of {component!r}; components: {known}"
            )
        tasks[task_index].die(TaskKilled("somebody has killed it"))

    @property
    def plan(self) -> Plan:
        """The tasks of this run, and the subscriptions between them."""
        return self._plan

    @property
    def configurations(self) -> Mapping[str, Configuration]:
        """The configuration of each component in this run; that of the topology is in the plan's description."""
        return self._configurations

    def stream(self, spout: str, name: str = DEFAULT_STREAM) -> Stream[Any]:
        """Return a stream of a spout by its names, to emit on it where the topology's own handles are out of reach.

        Raises :class:`~stormlet.errors.InvalidTopology` if there is none.
        """
        return self._host_streams.named(spout, name)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that it runs on."""
        return self._loop

    @property
    def monitor(self) -> Monitor:
        """The past of the run, for pages that take its figures in steps."""
        return self._monitor

    def statistics(self) -> Statistics:
        """Exact counts since the start."""
        return at_once(self._counting.statistics())

    def figures(self, window: Window = "1m", component: str = "") -> Figures:
        """Return rates, shares of time and latencies of the last minute, ten minutes (``"10m"``) or hour (``"1h"``), or
        of the whole run (``"all"``). A window that is not full yet, or whose run has ended, says how long it is. The
        tasks of ``component`` have latencies of their own, in the last minute and in the whole run.

        Raises :class:`ValueError` for another window, and :class:`~stormlet.errors.InvalidTopology` for a component
        that there is not.
        """
        self._check_component(component)
        return at_once(self._monitor.figures(window, component))

    def bottleneck(self, window: Window = "1m") -> Bottleneck | None:
        """Return the component that limits the topology, with a sentence that says what to turn; None if nothing does:
        the sources are not held up, however busy the bolts are.

        Raises :class:`ValueError` for another window than those of :meth:`figures`.
        """
        return self._monitor.bottleneck(self.figures(window))

    def series(self, span: Span = "1h", component: str = "") -> Sequence[Point]:
        """Return what charts show, oldest first: an hour in steps of ten seconds, or a day (``"1d"``) in steps of ten
        minutes; of a component, or of the topology.

        Raises :class:`ValueError` for another span, and :class:`~stormlet.errors.InvalidTopology` for a component that
        there is not.
        """
        self._check_component(component)
        return self._monitor.series(span, component)

    def _check_component(self, component: str) -> None:
        tasks = self._tasks_by_component()
        if component and component not in tasks:
            raise InvalidTopology(
                f"topology {self._name!r} has no {component!r}; components: {', '.join(map(repr, tasks))}"
            )

    def state(self, bolt: str | Stream[Any], name: str | None = None) -> Mapping[Any, Any]:
        """Return a view of what is durable of a bolt's state, by key, such as ``running.state("count")["moon"]``: whole
        epochs only, as nobody outside hears of one before (law X3, K8). A map of a key is a dict, a list is a list.

        ``bolt`` is its id or one of its streams, ``name`` that of the state where the bolt has several. The view goes
        on with the run, and stays readable after it; what is asked for after the end of the loop, too.

        Raises :class:`~stormlet.errors.InvalidTopology` for a state that does not exist, and
        :class:`~stormlet.errors.StateUnusable` if an epoch could not be written.
        """
        if not self._loop.is_closed():  # when nothing changes any more
            self._check_loop("state")
        id = bolt if isinstance(bolt, str) else bolt.component
        return self._host_states.look(id, name)

    def _tasks_by_component(self) -> Mapping[str, Sequence[Any]]:
        return {ACKER: self._tasks.ackers, **self._tasks.spouts, **self._tasks.bolts}

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The last dead letters, at most 1000, those of the last ten with the traceback of their last attempt;
        ``statistics().dead_letters`` counts all."""
        return tuple(self._dead_letters.last)

    def failures(self) -> Sequence[RepeatedFailure]:
        """The distinct failures so far, with their counts; the one that happened last stands at the end. Of each method
        of a component the first 100 kinds are distinguished; what is beyond is counted as one of ``"other kinds"``."""
        return self._failures.all()

    def explain(self, root: int) -> Explanation:
        """Explain why a tree is still open: which tuples are outstanding, in which task and queue, and what is done
        with them; what went wrong on earlier attempts. ``str()`` of it is for people. A root is what ``Tuple.roots``
        has; a tree that was settled is forgotten, and said to be unknown.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``, and :class:`ValueError` for what is no int from 1
        to 2**64 - 1.
        """
        check_int(f"explain of topology {self._name!r}", "root", root)
        return self._explainer.of_root(root)

    def explain_oldest(self, most: int = 10) -> Sequence[Explanation]:
        """The same for the open trees that time out first, then for messages that wait for a replay or for
        ``dead_letters=`` to return; at most so many.

        Raises :class:`~stormlet.errors.NotTracked` with ``ackers=0``, and :class:`ValueError` for what is no int from
        0.
        """
        check_int(f"explain_oldest of topology {self._name!r}", "most", most, 0)
        # islice takes nothing larger, and a caller who wants all may well pass more.
        return self._explainer.oldest(min(most, sys.maxsize))

    def record_edges(self, share: float = 1.0) -> None:
        """Record the edges of this share of the trees that begin from now on, so that explanations say since when each
        tuple is where it is, which way it came, and what was executed when; 0 ends that and makes it free again. A run
        begins with its configuration's ``record_edges``.

        Raises :class:`~stormlet.errors.InvalidConfiguration` for anything but a number from 0 to 1.
        """
        self._check_loop("record_edges")
        # For its checks alone: the option and the method must refuse the same values in the same words.
        configure(self._configuration, {"record_edges": share}, f"topology {self._name!r}")
        self._record(share, executions=True)

    def _record(self, share: float, *, executions: bool = False) -> None:
        # The explainer is the first of the observers: it adds to a failure what was outstanding, for the others to
        # see.
        explainer = self._explainer
        explainer.recorder.record(share, executions=executions)
        for task in self._tasks.all_spouts:
            task.tracker.observer = Observers.of(explainer if explainer.recorder.on else None, self._beside)

    def health(self) -> Health:
        """The state of the topology now; cheap enough for a readiness probe."""
        lifecycle = self._lifecycle
        return Health(
            state=lifecycle.state,
            pending=sum(task.tracker.pending + task.tracker.withheld for task in self._tasks.all_spouts),
            full=tuple(
                id for id, tasks in self._tasks.bolts.items() if any(task.inbox.full for task in tasks)
            ),
            crash=None if self._block.crash is None else str(self._block.crash),
            closing=tuple(lifecycle.closing()) if lifecycle.ended else (),
            # At the end nothing is restarted any more, and what is closing is of interest.
            restarting=() if lifecycle.ended else tuple(lifecycle.restarting()),
            epoch=None if self._epochs is None else self._epochs.durable,
            epoch_age=None if self._epochs is None else self._epochs.age,
            connections={self._tasks.name_of(task): tell() for task, tell in self._tasks.connections.items()},
        )

    # What its block does.

    async def start(self) -> None:
        """Ackers, then bolts, then spouts (law C1). Raises :class:`~stormlet.errors.StartFailed` with what
        user code raised."""
        if self._epochs is not None:
            try:
                await self._epochs.deliver_letters(self._dead_letters)
            except BaseException as error:
                await self._epochs.close()
                if not isinstance(error, Exception):
                    raise
                what = "delivery of the dead letters"
                raise StartFailed(self._name, "the last run", what) from error
        await self._lifecycle.start()
        self._monitor.begin()

    async def leave(self, error: BaseException | None) -> None:
        """The body is over: drain, or cancel if it raised; then raise the crash, if there was one (law
        C5)."""
        try:
            await self._lifecycle.leave(error)
        finally:
            self._monitor.end()
