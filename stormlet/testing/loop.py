"""An event loop with simulated time.

Theory of operation
-------------------
Time is held by the loop's selector. asyncio asks its selector to wait for as long as nothing is due; this one
polls instead, and if nothing is ready it sets the clock to the moment at which the next timer is due and
returns at once. A program that sleeps for days takes milliseconds, and no timer fires early or late: its
callback sees exactly the time that it was scheduled for. Code takes no time, unless it calls :func:`work`, which
has whatever comes due meanwhile fire late.

What is no idleness:

- *Work in an executor* (``asyncio.to_thread``, ``run_in_executor``) takes real time, so while any is
  outstanding the clock stands still and the loop waits for it, unless it waits for the loop itself, as
  ``emit_threadsafe`` does for room.
- *The world outside* takes real time, too: other threads at work, child processes, and servers elsewhere that owe an
  answer. The clock waits for them, but not for ever; :mod:`stormlet.testing.outside` says how it sees them.
- *Sockets and pipes* are polled before each jump. Where no timer is left they are waited for in real time.
- *A task that spins*, with ``sleep(0)`` until some moment has come, keeps that moment from coming, as does an
  endless source before bolts that await nothing. After very many rounds of the loop at one moment this ends
  with :class:`~stormlet.testing.livelock.Livelock`, which names who was always ready.
- *Nothing at all*: no timer, no work, no socket. Then nothing can ever happen again, and the run ends with
  :class:`Deadlock`, which lists every task and where it waits.

Two runs of one program give the same events in the same order. Plain asyncio does not promise that: a
``TaskGroup`` keeps its tasks in a set, whose order follows memory addresses. The tasks of this loop hash by
their creation order.
"""

from __future__ import annotations

import asyncio
import math
import re
import selectors
from asyncio import AbstractEventLoop, Task, TimerHandle, futures
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import PurePath
from socket import socket
from threading import get_ident
from typing import Any, ClassVar, Final, TypeVar, TypeVarTuple

from stormlet.errors import StormletError
from stormlet.model.checks.numbers import check_finite, check_int, is_int
from stormlet.runtime.slow_code import suspended_frames
from stormlet.runtime.wire.thread_calls import StandingClock
from stormlet.testing.livelock import Rounds
from stormlet.testing.outside.world import World

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

NEVER: Final = "waits for time to pass, which it does not in the block of sim.held()"
"""The end of a sentence about what would wait for ever."""


class Deadlock(StormletError, RuntimeError):
    """Nothing can ever happen again in a simulated run: every task waits, and no timer, work or socket is
    left."""

    def __init__(self, now: float, waiting: tuple[str, ...]) -> None:
        super().__init__(now, waiting)
        self.now = now
        """Simulated seconds at which everything stopped."""
        self.waiting = waiting
        """One line per task, as :func:`describe_task` writes it."""

    def __str__(self) -> str:
        lines = "".join(f"\n  {line}" for line in self.waiting)
        return (
            f"deadlock at simulated time {self.now:g} s: nothing is scheduled, and these tasks wait:{lines}"
        )


class SimulatedLoop(asyncio.SelectorEventLoop, StandingClock):
    """An event loop that jumps to the next timer instead of waiting for it; simulated time starts at 0.0
    s."""

    simulated_time: ClassVar[bool] = True
    """The mark by which the runtime knows that time is simulated (laws L16, B9)."""
    longest_moment: ClassVar[int] = 500_000
    """Rounds of the loop at one moment after which :class:`~stormlet.testing.Livelock` is raised: about as many as
    a million tuples take."""
    patience: ClassVar[float] = 10.0
    """Seconds of real time for which the clock waits for a thread at work, a child process or a server elsewhere that
    gives no sign of life; then it goes on, with a warning."""

    # What asyncio's base loop keeps and has no public access for.
    _ready: deque[asyncio.Handle]
    _scheduled: list[TimerHandle]
    _clock_resolution: float
    _default_executor: ThreadPoolExecutor | None
    _make_socket_transport: Callable[..., asyncio.Transport]
    _make_ssl_transport: Callable[..., asyncio.Transport]

    probes_lag: bool = False
    """True if topologies are to measure the lag of this loop, too (``statistics().loop``): by a timer, which would hide
    a :class:`Deadlock`."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        """The seed of a run that is given none of its own (law L16)."""
        self._outstanding = set[object]()
        self._at_work: dict[int, object] = {}
        self._task_numbers = count()
        self._until_idle: list[asyncio.Future[None]] = []
        self._rounds = Rounds(lambda: self._ready)
        self.outside = World(self.time, lambda: self.patience)
        """Everything outside that may still bring something, although nothing is due."""
        self._holders: list[asyncio.Task[Any] | None] = []
        self._clock = _Clock(
            self.outside, self._outstanding, self._next_moment, self._another_round, self._refuse_sleeps
        )
        super().__init__(self._clock)
        for make in ("_make_socket_transport", "_make_ssl_transport"):
            setattr(self, make, partial(self._make_reporting, getattr(self, make)))
        self._clock_resolution = math.ulp(0.0)
        self.set_task_factory(self._numbered_task)

    def time(self) -> float:
        """Simulated seconds since this loop was made."""
        return self._clock.now

    def run_until_complete(self, future: Generator[Any, None, _T] | Awaitable[_T]) -> _T:
        """As in asyncio; an exception has notes that say what the clock has gone on without."""
        try:
            return super().run_until_complete(future)
        except BaseException as error:
            self.outside.explain(error)
            raise

    def work(self, seconds: float) -> None:
        """Let so much time pass in the midst of a step, as if code had run for so long: what comes due meanwhile is
        late.

        Raises :class:`ValueError` for a negative number of seconds, and for what is no finite number.
        """
        check_finite("loop.work", "seconds", seconds)
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds:g} s")
        self._clock.now += seconds
        self._clock_resolution = math.ulp(self._clock.now)

    async def idle(self) -> None:
        """Wait until nothing can happen any more before time passes. Work in an executor is waited for, and so is what
        holds the clock outside."""
        idle: asyncio.Future[None] = self.create_future()
        self._until_idle.append(idle)
        await idle

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Ts], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """As in asyncio; the clock stands still until the work is done, even if nobody waits for it any
        more."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        pool, token = executor or self._threads(), object()
        call = partial(func, *args)
        if isinstance(pool, ThreadPoolExecutor):  # other processes cannot take part in this
            call = partial(self._noted, token, call)
        with self.outside.accounted_for():
            work = pool.submit(call)
        future = asyncio.wrap_future(work, loop=self)
        # Counted down after wrap_future's own callback has brought the result: callbacks run in this order,
        # and the other way round the loop would see a moment without work and without its result.
        self._outstanding.add(token)
        work.add_done_callback(lambda _: self._work_done(token))
        return future

    def work_waits(self, thread: int) -> None:
        """Note that this thread's work in an executor waits for the loop: the clock need not stand still for it."""
        self._outstanding.discard(self._at_work.get(thread))

    def work_goes_on(self, thread: int) -> None:
        """It has what it waited for."""
        if thread in self._at_work:
            self._outstanding.add(self._at_work[thread])

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own
        """As in asyncio, but waits in real time and without a limit: ``timeout`` would pass at once."""
        joining = object()
        self._outstanding.add(joining)
        try:
            await super().shutdown_default_executor()
        finally:
            self._outstanding.discard(joining)

    @contextmanager
    def held(self) -> Generator[None]:
        """Time stands still in this block."""
        holding, task = object(), asyncio.current_task(self)
        self._outstanding.add(holding)
        self._holders.append(task)
        try:
            yield
        finally:
            self._outstanding.discard(holding)
            self._holders.remove(task)

    def is_held_by(self, task: asyncio.Task[Any] | None) -> bool:
        """True if this task is in such a block."""
        return task in self._holders

    def _refuse_sleeps(self) -> bool:
        """Have a task that sleeps while it holds the clock hear of it, where it sleeps: nothing else would wake it, as
        the timer is never due. True if there is one."""
        waited = [getattr(task, "_fut_waiter", None) for task in self._holders]
        refused = [
            sleep for sleep in map(_sleep_of, self._scheduled) if sleep is not None and sleep in waited
        ]
        for each in refused:
            each.set_exception(RuntimeError(f"asyncio.sleep {NEVER}"))
        return bool(refused)

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """As in asyncio; the clock waits for what has been started."""
        transport, protocol = await super().subprocess_exec(*args, **options)
        self.outside.children.born(transport)
        return transport, protocol

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:
        """As in asyncio; the clock waits for what has been started."""
        transport, protocol = await super().subprocess_shell(*args, **options)
        self.outside.children.born(transport)
        return transport, protocol

    def _make_reporting(
        self, make: Callable[..., asyncio.Transport], sock: socket, *args: Any, **options: Any
    ) -> asyncio.Transport:
        return make(self.outside.reporting(sock), *args, **options)

    def _threads(self) -> Executor:
        if self._default_executor is None:
            self.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        assert self._default_executor is not None
        return self._default_executor

    def _noted(self, token: object, call: Callable[[], _T]) -> _T:
        """Called in the thread that does the work."""
        self._at_work[get_ident()] = token
        try:
            return call()
        finally:
            del self._at_work[get_ident()]

    def _work_done(self, token: object) -> None:
        """Called in the thread that did the work."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.call_soon_threadsafe(self._outstanding.discard, token)

    def _next_moment(self) -> float | None:
        """The moment to which the clock jumps, now that nothing is ready; None: wait in real time. Raises
        :class:`Deadlock`."""
        if self._until_idle:
            self._report_idle()
            return self.time()
        when = self._scheduled[0].when() if self._scheduled else math.inf
        if when < math.inf:  # sleeping for ever is not being scheduled
            # asyncio runs every timer due before now plus this, so that exactly those due by now are run.
            self._clock_resolution = math.ulp(when)
            return when
        if len(self._clock.get_map()) > 1:  # more than the loop's pipe to itself
            return None
        raise Deadlock(self.time(), tuple(describe_task(task) for task in pending_tasks(self)))

    def _another_round(self) -> None:
        """Something is ready, so that time does not pass. Raises
        :class:`~stormlet.testing.livelock.Livelock`."""
        self._rounds.another(self.time(), self.longest_moment)

    def _report_idle(self) -> None:
        waiting, self._until_idle = self._until_idle, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def _numbered_task(
        self,
        loop: AbstractEventLoop,
        coro: Coroutine[Any, Any, _T] | Generator[Any, None, _T],
        /,
        **options: Any,
    ) -> Task[_T]:
        task = _NumberedTask(next(self._task_numbers), coro, loop=loop, **options)
        task.started_by = _named(asyncio.current_task(loop))
        return task


def run_simulated(coroutine: Coroutine[object, object, _T], seed: int = 0) -> _T:
    """Run ``coroutine`` to its end under simulated time, as :func:`asyncio.run` does in real time.

    Raises what the coroutine raises, :class:`Deadlock`, and :class:`~stormlet.testing.livelock.Livelock`.
    """
    if not is_int(seed):
        coroutine.close()  # which nobody will await
    check_int("run_simulated", "seed", seed)
    with asyncio.Runner(loop_factory=partial(SimulatedLoop, seed)) as runner:
        return runner.run(coroutine)


def pending_tasks(loop: AbstractEventLoop) -> list[Task[object]]:
    """The tasks of ``loop`` that are not done, in the order in which a :class:`SimulatedLoop` made them."""
    return sorted(asyncio.all_tasks(loop), key=hash)


def work(seconds: float) -> None:
    """Let simulated time pass as if the calling code had run for so long without giving up the loop: call it in bolts
    and spouts whose code is to take time. What comes due meanwhile is late, as it would be in reality.

    Raises :class:`RuntimeError` outside a :class:`SimulatedLoop`, and :class:`ValueError` for a negative number of
    seconds and for what is no finite number.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimulatedLoop):
        raise RuntimeError("this event loop has no simulated time, and real code takes its time by itself")
    loop.work(seconds)


def describe_task(task: Task[object]) -> str:
    """Name of ``task``, then the calls it is suspended in, outermost first:
    ``name: f (app.py:3) > Queue.get (queues.py:158)``. One that was given no name has that of the task that started it,
    too, which of a topology's own is the component's: ``Task-7, started by count[0]: ...``."""
    calls = [
        f"{frame.f_code.co_qualname} ({PurePath(frame.f_code.co_filename).name}:{frame.f_lineno})"
        for frame in suspended_frames(task.get_coro())
    ]
    return f"{_named(task) or task.get_name()}: {' > '.join(calls)}"


def _named(task: Task[Any] | None) -> str:
    """The name that somebody gave it, or its number and who started it; empty if nobody with a name did."""
    if task is None:
        return ""
    name = task.get_name()
    if not re.fullmatch(r"Task-\d+", name):
        return name
    starter = task.started_by if isinstance(task, _NumberedTask) else ""
    return f"{name}, started by {starter}" if starter else ""


def _sleep_of(timer: Any) -> asyncio.Future[Any] | None:
    """The future that an ``asyncio.sleep`` awaits, for its timer; None for other timers, and for a sleep of
    ``math.inf`` seconds, which waits for a cancellation."""
    wakes = getattr(futures, "_set_result_unless_cancelled", None)
    is_sleep = timer._callback is wakes and not timer.cancelled() and timer.when() < math.inf
    return timer._args[0] if is_sleep else None


class _Clock(selectors.DefaultSelector):
    """A selector that never waits for time to pass: it lets it pass."""

    def __init__(
        self,
        outside: World,
        held: Collection[object],
        next_moment: Callable[[], float | None],
        busy: Callable[[], None],
        refuse_sleeps: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.now = 0.0
        self._outside = outside
        self._held = held
        self._next_moment = next_moment
        self._busy = busy
        self._refuse_sleeps = refuse_sleeps

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._outside.connections.registered(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._outside.connections.unregistered(key.fd)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            self._outside.received(ready)
            return ready
        if timeout is not None and timeout <= 0:
            self._busy()
            return ready
        if self._held:
            return ready if self._refuse_sleeps() else self._wait(None)
        for pause in self._outside.pauses():
            ready = self._wait(pause)
            if ready:
                return ready
        if ready := self._wait(0):  # by a thread that has ended since the last look
            return ready
        moment = self._next_moment()
        if moment is None:
            return self._wait(None)
        self.now = moment
        return []

    def _wait(self, seconds: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """In real time."""
        ready = super().select(seconds)
        if ready:
            self._outside.received(ready)
        return ready


class _NumberedTask(Task[_T]):
    """A task that hashes by its number, so that sets of tasks (a TaskGroup's) have the same order in every
    run."""

    started_by: str = ""
    """The task that made it, if that has a name."""

    def __init__(
        self, number: int, coro: Coroutine[Any, Any, _T] | Generator[Any, None, _T], **options: Any
    ) -> None:
        self._number = number  # first: the base registers itself in a set
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number

    def set_name(self, value: object, /) -> None:
        """Python 3.13 sets None where nobody gave a name to a task of a factory."""
        super().set_name(self.get_name() if value is None else value)
