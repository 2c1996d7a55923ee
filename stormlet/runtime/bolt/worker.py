"""Workers: one for each kind of bolt, which executes the inputs of its task.

Theory of operation
-------------------
A worker knows how an input is executed, and not whose input it is. It is given a :class:`Wiring`, calls user code, and
returns what happened. Its task acts on that.

:meth:`Worker.work` is the hot loop: plain calls over a chunk of tuples, without a coroutine or a future for each. It
stops early where it cannot go on by itself, and returns one of two things:

- A *pause*, an awaitable, where something must be awaited. The task awaits it and goes on with the tuples left.
- :class:`Raised`, where user code has raised. A pause may give one, too. The task fails the inputs or dies of the
  exception, as ``on_error`` says. Then it calls ``work`` again, even if no tuples are left: threads may have executed
  others, whose outputs the worker emits only now.

:meth:`Worker.execute` is the careful way for one tuple: in the context that it brought (law B10), joined to several
trees, or in one of several concurrent calls. For those a *quick* worker has a way without a coroutine of its own:
:meth:`Worker.begin` calls user code and returns what is to be awaited, and :meth:`Worker.end` gets what that gives.

A cancellation by the engine comes only once, and user code may swallow it. So a worker awaits user code by
:func:`~stormlet.runtime.usercode.checked` alone, which asks after each await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, TypeVar

import msgspec

from stormlet.core.tuples import OPEN, PLAIN, JoinedTuple, Lineage
from stormlet.errors import StrayCancellation
from stormlet.model.components import TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.intake import PendingCalls
from stormlet.runtime.bolt.observer import Observed
from stormlet.runtime.occupation import AWAITING
from stormlet.runtime.slices import Activity, Slices
from stormlet.runtime.tracing import traced_execution
from stormlet.runtime.usercode import Within, checked, is_stray, stray
from stormlet.runtime.wire.collector import Account, Anchors, AnyTuple, BoltCollector
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet

R = TypeVar("R")
Method = Callable[[Any], Awaitable[None] | None]


class Raised(Exception):
    """User code has raised while it processed these inputs (law B4).

    A worker returns it. It is an exception itself for the sake of methods that return nothing and may come to several
    failures, such as those of a batch runner: they raise it, and are called again for the rest.
    """

    # Not the cause of its error, nor the other way round: what users see is their own exception alone.
    def __init__(self, inputs: Sequence[AnyTuple], error: Exception) -> None:
        super().__init__(inputs, error)
        self.inputs = inputs
        self.error = error


Pause = Awaitable[Raised | None]


class Wiring(msgspec.Struct, frozen=True):
    """All that a worker gets from its task."""

    plan: TaskPlan
    loop: asyncio.AbstractEventLoop
    clock: Callable[[], float]
    """Seconds, to measure how long something takes."""
    context: Context
    """The context variables of the topology."""
    slices: Slices
    outbox: Outbox
    outlets: Mapping[str, Outlet]
    """By stream; complete when all tasks are made."""
    out: BoltCollector
    account: Account
    pending_calls: PendingCalls
    activity: Activity
    log: Callable[[str, Exception, Sequence[object]], None]
    """Logs what a method of the user's has raised on these values, where nothing else tells it."""
    timed: bool
    """True if batches come due by the clock, and not only when they are full or nothing more comes."""
    check_cancelled: Callable[[Exception | None], None]
    """Raises :class:`asyncio.CancelledError` if the engine has cancelled the running coroutine; see
    :func:`~stormlet.runtime.usercode.checked`."""
    observed: Observed = msgspec.field(default_factory=Observed)
    """Has the observer of executions."""


class Worker:
    """The base of the workers."""

    auto_acks = True
    """True if every input that did not fail is acked when its call is over."""

    chunk: int | None = None
    """The number of tuples it wants at once, if the pace of the task does not decide that."""

    # A class attribute: one input at a time costs nothing to count, and only threads are handed more.
    calling = 1
    """The number of inputs that are with user code while the task waits for a pause."""

    quick = False
    """True if calls with inputs that need no care may go a quick way."""

    collects = True
    """True if user code gets a collector, of which each concurrent call needs one of its own."""

    resets_timeouts = False
    """True if the trees of all inputs that are with the task get their full time again and again (law L12)."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.plan = wiring.plan
        self.out = wiring.out
        self.outbox = wiring.outbox

    @property
    def restartable(self) -> bool:
        """True if another worker can take over."""
        return True

    @property
    def unfinished(self) -> bool:
        """True after a failure if :meth:`work` must be called again for inputs that it has taken."""
        return False

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        """Execute inputs until there are none left, something must be awaited, or user code has raised."""
        raise NotImplementedError

    def goes_quickly(self, tup: AnyTuple) -> bool:
        """True if a concurrent call may go by :meth:`begin` and :meth:`end`; to be asked once for each input."""
        lineage = tup.lineage
        return self.quick and (lineage is PLAIN or not self.needs_care(tup, lineage))

    def begin(self, tup: AnyTuple, out: BoltCollector) -> Awaitable[object] | None:
        """Call user code, beside other calls. Returns what must be awaited, or None if the call is over. Raises what
        user code raises."""
        raise NotImplementedError

    def end(self, tup: AnyTuple, value: object, out: BoltCollector) -> Awaitable[object] | None:
        """Go on with a call after its await, which gave this value; see :meth:`begin`."""
        raise NotImplementedError

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        """Execute one input in any circumstances and settle it as the kind of bolt does."""
        if not tup.lineage.trace:
            return await self._execute(tup, out)
        execution = traced_execution(self.plan, tup)
        raised = await self._execute(tup, execution.out(out))
        execution.over(None if raised is None else raised.error)
        return raised

    async def _execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        try:
            await self.process(tup, out)
        except asyncio.CancelledError as error:
            return Raised((tup,), self.stray(error))
        except Exception as error:
            return raised_on(tup, error)
        self.done(tup, out)
        return None

    def in_words(self, raised: Raised) -> Exception:
        """Return what user code has raised, or in its place an error that says more of it."""
        return raised.error

    def stray(self, error: asyncio.CancelledError) -> StrayCancellation:
        """The error for a cancellation that user code lets out. Raises it again if another task has cancelled the
        call."""
        # The engine's own comes first: it may have cancelled the call while user code caught another one.
        self.wiring.check_cancelled(None)
        if not is_stray():
            raise error
        return stray(error)

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        """Have user code process one input."""
        raise NotImplementedError

    def done(self, tup: AnyTuple, out: BoltCollector) -> None:
        """The call of this input has returned: ack it, if it is not settled yet (law B1)."""
        # Before the wait for room that may follow: the input is processed, whatever its outputs wait for.
        if tup.state == OPEN:
            out.ack(tup)

    def ack_rootless(self, tup: AnyTuple) -> None:
        """Tell the ackers of an input that belongs to several trees; one that belongs to none concerns no acker."""
        if tup.lineage is not PLAIN:
            self.outbox.ack_all(tup.edges())

    def method(self, name: str) -> Method | None:
        """The user's ``tick``, ``flush`` or ``finish``, if there is one."""
        return None

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        """The threads that run user code now, by ident, each with the inputs that it was handed."""
        return {}

    def why_held(self, tup: AnyTuple) -> str:
        """The reason the engine has for holding this input; empty if holding it is up to the user."""
        return ""

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        """Before the first input."""

    def cleanup(self) -> Awaitable[None] | None:
        """After the last one."""

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        """The bare call of user code for one input; what it returns is an output, several, or something to
        await."""
        raise NotImplementedError

    def anchors_for(self, tup: AnyTuple) -> Anchors:
        """The anchors of outputs that name none."""
        return tup

    def needs_care(self, tup: AnyTuple, lineage: Lineage) -> bool:
        """True for a tuple that must go the careful way because its lineage is not plain."""
        # Hot loops know no context, and most no more than one root.
        return lineage.context is not None or isinstance(tup, JoinedTuple)

    async def carefully(self, tup: AnyTuple) -> Raised | None:
        """The careful way within the task's own sequence of calls."""
        raised = await self.execute(tup, self.out)
        if raised is None:  # else it must be known before anything is awaited in which the task may die
            await self.outbox.room()
        return raised

    async def awaited(self, result: Awaitable[R], context: Context | None) -> R:
        """Await user code, so that it hides nothing unsent (law F1), in the context it belongs to."""
        # Suspended before it is known if user code really waits: afterwards nothing of the engine runs. Outside of
        # slices each unsent item has armed the outbox.
        if self.outbox.sliced:
            self.outbox.suspend()
        before = self.outbox.occupation.switch(AWAITING)
        try:
            return await checked(
                result if context is None else Within(context, result), self.wiring.check_cancelled
            )
        finally:
            self.outbox.occupation.switch(before)
            self.outbox.enter()


def raised_on(tup: AnyTuple, error: Exception) -> Raised:
    """The report that this came out of the call with an input: of that one, unless the error says of which."""
    return error if isinstance(error, Raised) else Raised((tup,), error)


def own_context(tup: AnyTuple) -> Context | None:
    """A copy of the context variables that the tuple brought, so that what this bolt sets does not reach the
    other tuples of the message (law B10); None if it brought none."""
    # Replicas of one message share its context, and run beside each other.
    context = tup.lineage.context
    return None if context is None else context.copy()
