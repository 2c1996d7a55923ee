"""Calls of ``execute`` of a ``Bolt``, seen from inside: emits without anchors, joins, and work after the ack.

Work is held apart from waiting as far as the source code of the suspended call shows it.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from inspect import isawaitable
from itertools import takewhile
from textwrap import dedent
from types import CodeType, FrameType
from typing import Any, NamedTuple

from stormlet.core.tracebacks import Call, call_of
from stormlet.core.tracebacks import Call as Place
from stormlet.core.tuples import ACKED, OPEN, Tuple
from stormlet.errors import KeyFunctionFailed
from stormlet.model.components import DEFAULT_STREAM, Bolt
from stormlet.model.plan import TaskPlan
from stormlet.runtime.slow_code import suspended_frames
from stormlet.runtime.wire.collector import UNSAID, Anchors, AnyTuple, BoltCollector
from stormlet.testing.chaos.journal import described

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


ENDS = frozenset({"__aexit__", "aclose"})
"""Methods that end something."""


class Position(NamedTuple):
    """The place of a line in its function."""

    ends: bool = False
    """In a ``finally``."""
    last: bool = False
    """Nothing of the function follows it."""
    repeated: bool = False
    """In a loop."""


def work_in(frames: Sequence[FrameType], acked_in: CodeType) -> Call | None:
    """The line in which a call works that is suspended in these frames, outermost first, after an ack in this code.
    None if it only ends or pauses, or if there is no source code."""
    own = _own(frames, acked_in)
    positions = [position_of(frame.f_code, frame.f_lineno) for frame in own]
    seen = [each for each in positions if each is not None]
    called = [frame.f_code for frame in frames[: len(own) + 1]]
    if not seen or len(seen) < len(own) or any(each.ends for each in seen):
        return None
    if not ENDS.isdisjoint(code.co_name for code in called):
        return None
    if called[-1] is asyncio.sleep.__code__ and (all(each.last for each in seen) or seen[-1].repeated):
        return None
    return call_of(own[-1].f_code, own[-1].f_lineno)


def _own(frames: Sequence[FrameType], acked_in: CodeType) -> Sequence[FrameType]:
    """Those down to the one that has acked; if that has returned, those in the same file as the first one."""
    for number, frame in enumerate(frames, 1):
        if frame.f_code is acked_in:
            return frames[:number]
    return list(takewhile(lambda frame: frame.f_code.co_filename == frames[0].f_code.co_filename, frames))


@lru_cache(maxsize=1024)
def position_of(code: CodeType, line: int) -> Position | None:
    """The place of this line; None if that cannot be seen."""
    try:
        lines, first = inspect.getsourcelines(code)
        (function,) = ast.parse(dedent("".join(lines))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    return _find(function.body, line - max(first, 1) + 1, Position(last=True))


def _find(body: Sequence[ast.stmt], line: int, around: Position) -> Position | None:
    while body and _does_nothing(body[-1]):
        around = around._replace(last=around.last or isinstance(body[-1], ast.Return))
        body = body[:-1]
    for statement in body:
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            here = around._replace(last=around.last and statement is body[-1])
            found = (_find(block, line, within) for block, within in _blocks(statement, here))
            return next((each for each in found if each is not None), here)
    return None


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Return) and statement.value is None)


def _blocks(statement: ast.stmt, here: Position) -> Iterator[tuple[Sequence[ast.stmt], Position]]:
    """The blocks of a statement, and where each of them is."""
    loops = isinstance(statement, ast.For | ast.AsyncFor | ast.While)
    yield (
        getattr(statement, "body", ()),
        here._replace(last=here.last and not loops, repeated=here.repeated or loops),
    )
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body, here
    yield getattr(statement, "orelse", ()), here
    yield getattr(statement, "finalbody", ()), here._replace(ends=True)
