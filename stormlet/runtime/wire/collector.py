"""The collector of a bolt task: ``emit``, ``ack``, ``fail`` and ``reset_timeout``.

Theory of operation
-------------------
User code calls these methods in the middle of its work, and none of them awaits anything. Each does three things: it
checks the call, changes the state of the input, and notes in the outbox what ackers and consumers must hear. What was
noted leaves when the task's slice ends (law F1); outside a slice the first item arms the outbox.

An input is *open* while user code has it, *held* when ``execute`` has returned without settling it, then *acked* or
*failed*; *lost* if it died with an instance. Only open and held inputs can be settled, and only once. What user code
says of a lost one is ignored, as its tree has failed already; anything else raises
:class:`~stormlet.errors.AlreadySettled`.

The outputs of a ``BasicBolt`` or a function are anchored to the input in hand, which is the default of ``anchors``. A
``Bolt`` anchors what it says it anchors. Concurrent calls have a collector each, with anchors of their own; the
account of what is held and settled is one for the whole task.

A call from another thread than the loop's would change all this at any moment, so it is refused (law F3). Interpreted,
the check costs a twentieth of a tuple, and outside of debug mode only the first call that finds nothing unsent makes
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.tuples import ACKED, FAILED, HELD, LOST, PLAIN, VERBS, JoinedTuple, Tuple, joined
from stormlet.errors import AlreadySettled, InvalidEmit
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.plan import TaskPlan
from stormlet.runtime.wire.loop_thread import called_elsewhere
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet
from stormlet.runtime.wire.own_trees import OwnTrees
from stormlet.runtime.wire.thread_calls import ThreadCalls, room_below

AnyTuple = Tuple[Any]
Anchors = AnyTuple | Iterable[AnyTuple]
"""The inputs that an output is anchored to."""


class _Unsaid:
    def __repr__(self) -> str:
        return "..."


UNSAID: Final[Any] = _Unsaid()
"""The default of ``anchors``, which is another one for each kind of bolt."""


class Account:
    """The inputs of one bolt task: which it holds, and how many it has settled."""

    __slots__ = ("acked", "failed", "held")

    def __init__(self) -> None:
        self.held: dict[AnyTuple, None] = {}
        """Inputs that ``execute`` has returned from without settling them."""
        self.acked = 0
        self.failed = 0


class BoltCollector:
    """The collector of one bolt task, or of one call where calls run concurrently (law B3)."""

    __slots__ = (
        "_account",
        "_loop",
        "_outbox",
        "_outlets",
        "_own_trees",
        "_plan",
        "_strict",
        "default_anchors",
        "threads",
    )

    def __init__(
        self,
        plan: TaskPlan,
        loop: asyncio.AbstractEventLoop,
        outbox: Outbox,
        outlets: dict[str, Outlet],
        account: Account,
        threads: ThreadCalls | None = None,
        own_trees: OwnTrees | None = None,
    ) -> None:
        self._plan = plan
        self._loop = loop
        self._outbox = outbox
        self._outlets = outlets
        self._account = account
        self._own_trees = own_trees
        # Else only a call that finds nothing unsent is checked; the others follow one that was.
        self._strict = outbox.thread.strict
        self.default_anchors: Anchors = ()
        """The anchors of an emit that names none."""
        # Shared by the collectors of concurrent calls: a thread does not know which call is its own.
        self.threads = threads or ThreadCalls(loop, plan.name, partial(room_below, outbox))
        """The same methods for other threads of the instance."""

    def for_call(self) -> BoltCollector:
        """Another collector of the same instance, for a call that runs beside others."""
        return self.copied(self.threads)

    def for_next_instance(self) -> BoltCollector:
        """The collector of the next instance of the task. The threads of this one are refused from now on (law F3)."""
        self.threads.close()
        return self.copied(None)

    def copied(self, threads: ThreadCalls | None) -> BoltCollector:
        """Another collector of the same task, with the calls of its threads."""
        return BoltCollector(
            self._plan,
            self._loop,
            self._outbox,
            self._outlets,
            self._account,
            threads,
            self._own_trees,
        )

    def emit(
        self,
        value: object,
        *,
        anchors: Anchors | None = UNSAID,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> tuple[int, ...]:
        """See :meth:`stormlet.model.components.Collector.emit`."""
        outbox = self._outbox
        if (self._strict or not outbox.armed) and outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "emit")
        if anchors is UNSAID:
            anchors = self.default_anchors
        elif anchors is None:
            anchors = ()
        outlet = self._outlets.get(stream)
        if outlet is None:
            raise undeclared(self._outlets, stream, self._plan)
        if task is not None:
            outlet = outlet.at(task)
        # Before the delivery: a consumer whose inbox was empty is woken by the flush alone.
        if not outbox.armed:
            outbox.arm()
        if type(anchors) is Tuple:  # a plain input with one root, as almost all are
            return self._emit_anchored(outlet, value, anchors)
        return self._emit_joined(outlet, value, [anchors] if isinstance(anchors, Tuple) else list(anchors))

    def ack(self, tup: AnyTuple) -> None:
        """See :meth:`stormlet.model.components.Collector.ack`."""
        outbox = self._outbox
        if (self._strict or not outbox.armed) and outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "ack")
        if not self._settle(tup, ACKED, "acks"):
            return
        self._account.acked += 1
        # What was anchored to it is in its edge by now, so that its tree cannot be complete before that is acked.
        if tup.root:
            outbox.ack(tup.root, tup.edge)
        elif isinstance(tup, JoinedTuple):
            outbox.ack_all(tup.edges())
        if not outbox.armed:
            outbox.arm()

    def fail(
        self,
        tup: AnyTuple,
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> None:
        """See :meth:`stormlet.model.components.Collector.fail`."""
        plan, outbox = self._plan, self._outbox
        if outbox.thread.is_elsewhere():
            raise called_elsewhere(plan, "fail")
        # Made first: a wrong argument must raise before the input has changed.
        failure = failed(plan, reason, exception, permanent=permanent)
        if not self._settle(tup, FAILED, "fails"):
            return
        self._account.failed += 1
        for root in tup.roots:
            outbox.fails.append((root, failure))
        if not outbox.armed:
            outbox.arm()

    def lose(self, tup: AnyTuple, failure: Failure) -> None:
        """Fail an input because its task has died: an instance that is still winding up may settle it all the same,
        without an effect."""
        tup.state = LOST
        self._account.failed += 1
        self._outbox.fails.extend((root, failure) for root in tup.roots)

    def reset_timeout(self, tup: AnyTuple) -> None:
        """See :meth:`stormlet.model.components.Collector.reset_timeout`."""
        outbox = self._outbox
        if outbox.thread.is_elsewhere():
            raise called_elsewhere(self._plan, "reset_timeout")
        outbox.resets.extend(tup.roots)
        if not outbox.armed:
            outbox.arm()

    def emit_threadsafe(
        self,
        value: object,
        *,
        anchors: Anchors | None = UNSAID,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> Future[tuple[int, ...]]:
        """See :meth:`stormlet.model.components.Collector.emit_threadsafe`."""
        return self.threads.emit(partial(self.emit, value, anchors=anchors, stream=stream, task=task))

    def ack_threadsafe(self, tup: AnyTuple) -> Future[None]:
        """See :meth:`stormlet.model.components.Collector.ack_threadsafe`."""
        return self.threads.call(partial(self.ack, tup))

    def fail_threadsafe(
        self,
        tup: AnyTuple,
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> Future[None]:
        """See :meth:`stormlet.model.components.Collector.fail_threadsafe`."""
        # Few look at the future, so that a wrong argument raises here.
        failed(self._plan, reason, exception, permanent=permanent)
        return self.threads.call(partial(self.fail, tup, reason, exception=exception, permanent=permanent))

    def _emit_anchored(self, outlet: Outlet, value: object, anchor: AnyTuple) -> tuple[int, ...]:
        if anchor.state > HELD:
            self._check_lost(anchor, "anchors to")
        anchor.edge ^= outlet.deliver(value, anchor.root, anchor.lineage)
        return outlet.reached

    def _emit_joined(self, outlet: Outlet, value: object, anchors: list[AnyTuple]) -> tuple[int, ...]:
        if not anchors:
            if self._own_trees is None:
                outlet.deliver(value, 0, PLAIN)
            else:
                self._own_trees.deliver(outlet, value)
            return outlet.reached
        lineage, are_plain = anchors[0].lineage, True
        for anchor in anchors:
            if anchor.state > HELD:
                self._check_lost(anchor, "anchors to")
            if anchor.lineage is not PLAIN or not anchor.root:
                are_plain = False
        if not are_plain:
            lineage = joined(anchor.lineage for anchor in anchors)
            # Untracked anchors have no tree to join, but their lineage counts all the same.
            anchors = [anchor for anchor in anchors if anchor.roots]
        if anchors:
            outlet.deliver_joined(value, anchors, lineage)
        else:
            outlet.deliver(value, 0, lineage)
        return outlet.reached

    def _settle(self, tup: AnyTuple, state: int, verb: str) -> bool:
        """Settle an input. Returns False if it was lost with an instance that died, and may still be spoken of."""
        if tup.state == HELD:
            # Instances of one bolt may share objects, and so get at the inputs of other tasks.
            if tup not in self._account.held:
                plan = self._plan
                raise InvalidEmit(f"{plan.name} {verb} {tup!r}, which another task holds")
            del self._account.held[tup]
        elif tup.state > HELD:
            self._check_lost(tup, verb)
            return False
        tup.state = state
        return True

    def _check_lost(self, tup: AnyTuple, verb: str) -> None:
        # Threads and timers of a dead instance may go on for a while, and the tree has failed already.
        if tup.state == LOST:
            return
        plan = self._plan
        raise AlreadySettled(f"{plan.name} {verb} {tup!r}, which it {VERBS[tup.state]} before")


def failed(plan: TaskPlan, reason: str, exception: BaseException | None, *, permanent: bool) -> Failure:
    """The failure of an input. Raises :class:`TypeError` for a reason that is no text and an exception that is none."""
    return Failure(
        FailureKind.FAILED, plan.component, plan.task, reason, exception, permanent, task_index=plan.index
    )


def undeclared(outlets: Mapping[str, Outlet], stream: str, plan: TaskPlan) -> InvalidEmit:
    """The error for a stream that the component does not declare, naming those that it does."""
    declared = ", ".join(map(repr, outlets))
    return InvalidEmit(
        f"{plan.component!r} emits on stream {stream!r}, which it does not declare; it declares {declared}; "
        f"add it with outputs={{{stream!r}: ...}}"
    )
