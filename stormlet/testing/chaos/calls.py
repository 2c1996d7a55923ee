"""Calls of ``execute`` of a ``Bolt``, seen from inside: what it emits without anchors, what it joins, and whether it
goes on when it has acked."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from types import CodeType
from typing import Any

from stormlet.core.calls import Call as Place
from stormlet.core.tuples import ACKED, OPEN, Tuple
from stormlet.errors import KeyFunctionFailed
from stormlet.model.components import DEFAULT_STREAM, Bolt
from stormlet.model.plan import TaskPlan
from stormlet.runtime.slow_code import suspended_frames
from stormlet.runtime.wire.collector import UNSAID, Anchors, AnyTuple, BoltCollector
from stormlet.testing.chaos.journal import described
from stormlet.testing.chaos.positions import work_in

Execute = Callable[[AnyTuple, Any], Awaitable[None] | None]
Accuse = Callable[..., None]
"""Called with the kind, a text with a ``{}`` for each value, and the values."""


class Joins:
    """The outputs of a bolt that were anchored to several inputs."""

    def __init__(self) -> None:
        self.of_streams = 0
        """Outputs whose anchors came from as many streams as there were."""
        self.others = 0
        """Outputs with two anchors of one stream."""
        self.own_replay = ""
        """An input that was joined with another one of the same stream and value."""

    def note(self, anchors: Sequence[AnyTuple]) -> None:
        """An output is anchored to these."""
        first: dict[tuple[str, str], AnyTuple] = {}
        for each in anchors:
            other = first.setdefault((each.component, each.stream), each)
            if other is not each and other.roots != each.roots and _equal(other.value, each.value):
                self.own_replay = described(each.value)
        self.of_streams += len(first) == len(anchors)
        self.others += len(first) < len(anchors)


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False


class Calls:
    """All calls of ``execute`` of the bolts of one run that anchor and ack by themselves."""

    def __init__(self, accuse: Accuse) -> None:
        self.accuse = accuse
        self.joins = defaultdict[str, Joins](Joins)
        """By component."""
        self.goes_on: dict[asyncio.Task[Any], Callable[[], None]] = {}
        """By coroutine whose call has acked its input: to be called before its next step."""

    def watch(self, plan: TaskPlan, bolt: Bolt[Any, Any]) -> None:
        """Watch the calls of this instance, unless its class has slots instead of attributes."""
        execute: Execute = bolt.execute

        def watched(tup: AnyTuple, out: Any) -> Awaitable[None] | None:
            return WatchedCall(self, plan, tup, out).begin(execute)

        try:
            bolt.execute = watched  # type: ignore[method-assign]
        except AttributeError:
            return


class WatchedCall:
    """One call, and the collector that it is given."""

    def __init__(self, calls: Calls, plan: TaskPlan, tup: AnyTuple, out: BoltCollector) -> None:
        self._calls = calls
        self._plan = plan
        self._tup = tup
        self._out = out
        self._result: Awaitable[None] | None = None
        self._task = _current()
        self._over = False
        self._acked_in: CodeType | None = None
        self._late: Place | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def begin(self, execute: Execute) -> Awaitable[None] | None:
        """Call it."""
        try:
            self._result = execute(self._tup, self)
        except Exception as error:
            self._raised(error)
            raise
        if isawaitable(self._result):
            return self._until_over(self._result)
        self._end()
        return None

    async def _until_over(self, result: Awaitable[None]) -> None:
        try:
            await result
        except Exception as error:
            self._raised(error)
            raise
        finally:
            self._end()
        if self._late is not None:
            self._calls.accuse(
                "acks",
                "{} acks {} and then goes on working, in {}: what it does there is lost if its task dies meanwhile; "
                "ack when all is done",
                self._plan.name,
                described(self._tup.value),
                str(self._late),
            )

    def _raised(self, error: Exception) -> None:
        if self._tup.state == ACKED and self._tup.roots and not isinstance(error, KeyFunctionFailed):
            self._calls.accuse(
                "errors",
                "{} acks {} and then raises {}: the message counts as done; ack when all is done",
                self._plan.name,
                described(self._tup.value),
                described(error),
            )

    def _end(self) -> None:
        self._over = True
        self._calls.goes_on.pop(self._task, None)

    # The collector.

    def emit(
        self,
        value: object,
        *,
        anchors: Anchors | None = UNSAID,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> tuple[int, ...]:
        """See :meth:`stormlet.model.components.Collector.emit`."""
        if anchors is not UNSAID and anchors is not None and not isinstance(anchors, Tuple):
            anchors = list(anchors)
            self._calls.joins[self._plan.component].note(anchors)
        reached = self._out.emit(value, anchors=anchors, stream=stream, task=task)
        if anchors is UNSAID:
            self._check_anchored(value, reached)
        elif anchors:
            self._late = None  # it went on for these
        return reached

    def _check_anchored(self, value: object, reached: Sequence[int]) -> None:
        if reached and self._tup.roots and not self._over:
            self._calls.accuse(
                "anchors",
                "{} emits {} in execute without anchors, with {} in hand: what fails further down is not replayed; "
                "pass anchors=tup, or derive from BasicBolt; anchors=() says that it is meant",
                self._plan.name,
                described(value),
                described(self._tup.value),
            )

    def ack(self, tup: AnyTuple) -> None:
        """See :meth:`stormlet.model.components.Collector.ack`."""
        was_open = tup.state == OPEN
        self._out.ack(tup)
        self._late = None
        if tup is self._tup and was_open and self._is_in_call():
            self._acked_in = sys._getframe(1).f_code  # pyright: ignore[reportPrivateUsage] - it is documented
            self._calls.goes_on[self._task] = self._look

    def _is_in_call(self) -> bool:
        """True if it is the call itself that works, for an input that is replayed when it fails."""
        return bool(self._tup.roots) and not self._over and _current() is self._task

    def _look(self) -> None:
        """Its next step begins: it was suspended when it had acked."""
        if self._late is None and self._result is not None and self._acked_in is not None:
            self._late = work_in(list(suspended_frames(self._result)), self._acked_in)


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
