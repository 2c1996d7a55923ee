"""Where spout tasks get their tuples from: a ``Spout`` class, an iterator, an async iterator, or the host
alone."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from inspect import isasyncgen, isawaitable
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias, cast

from stormlet.core.components import DEFAULT_STREAM, ReliableSpout, Spout, TaskContext, To, overrides
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.tuples import Lineage
from stormlet.errors import EndOfStream, TaskKilled, TopologyStopping
from stormlet.runtime.collectors import call_threadsafe
from stormlet.runtime.contexts import within
from stormlet.runtime.messages import Message, SpoutMessage
from stormlet.runtime.spouts import Asking, Feed, Interrupted, SpoutTask
from stormlet.runtime.tracker import Settle

FIRST_NAP = 0.001
"""Seconds until an idle ``next_tuple`` is asked again for the first time; doubled each time up to
``idle_max``."""


Resume: TypeAlias = Callable[[object], object]
"""Calls a generator function again, with the id of the last message that its generator has emitted."""


class HostFeed:
    """No source: the host emits (law S5). Also the base of the other feeds."""

    passive = True
    dies = False
    survives_kills = True

    settle: Settle | None = None

    def __init__(self, task: SpoutTask) -> None:
        self.task = task
        self.ended = False

    @property
    def restartable(self) -> bool:
        """It goes on where it was."""
        return True

    @property
    def resumes(self) -> bool:
        """Nothing is noted for another run."""
        return False

    def renewed(self) -> Feed:
        """The same."""
        return self

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        """Nothing to open."""

    def switch(self, active: bool) -> Awaitable[None] | None:
        """Nobody to tell."""

    def ask(self, most: int) -> Awaitable[None] | None:
        """Nothing comes by itself."""

    def end(self) -> Awaitable[None] | None:
        """There shall be no more."""
        self.ended = True
        return None

    def close(self) -> Awaitable[None] | None:
        """Nothing to close."""


class _KeptFeed(HostFeed):
    """A feed whose values the engine keeps and replays (law S6)."""

    passive = False

    def __init__(self, task: SpoutTask, values: object, resume: Resume | None, emitted: int = 0) -> None:
        super().__init__(task)
        self._resume = resume
        self._emitted = emitted
        self._closed = False
        self._source = values
        self._unsent: list[object] = []
        self._broke: BaseException | None = None
        """What the source has last raised, or was cancelled by."""
        self._broke_after = 0
        self._is_spent = False
        """Whether it has ended right after that."""

    @property
    def restartable(self) -> bool:
        """An iterable goes on where it was; a generator that raised is over, unless its function can resume."""
        return not self._is_over() or self._resume is not None

    def renewed(self) -> Feed:
        """Itself; or, of a generator that is over, one that goes on after the last message."""
        if self._resume is None or not self._is_over():
            return self
        return self._resumed(self._resume(self._emitted - 1 if self._emitted else None), self._resume)

    def _is_over(self) -> bool:
        return not self.ended and (self._is_spent or _frame_of(self._source) is None)

    def _note(self, error: BaseException) -> None:
        self._broke, self._broke_after = error, self._emitted

    def _note_end(self) -> None:
        """The source has no more. If that is all it said since it raised, a generator behind it (of ``map`` or
        ``enumerate``) is over by that: raises that again, for what it had not yet yielded would be lost.
        """
        if self._broke is None or self._broke_after != self._emitted or self.task.stopping:
            self.ended = True
            return
        self._is_spent = True
        if isinstance(self._broke, Exception):
            raise self._broke
        raise TaskKilled("the source was being awaited, and has ended by that")

    def _resumed(self, values: object, resume: Resume) -> Feed:
        raise NotImplementedError

    def emit(self, value: object) -> None:
        """Emit a value under the next message id: its number."""
        sent, stream, receiver = value, DEFAULT_STREAM, None
        if type(sent) is To:
            to = cast("To[object]", sent)
            sent, stream, receiver = to.value, to.stream, to.task
        task = self.task
        message = Message(sent, stream, receiver, task.lineage(), message_id=self._emitted)
        try:
            task.tracker.emit_message(message)
        except Exception:
            self._unsent.append(value)
            raise
        self._emitted += 1

    def emit_unsent(self) -> None:
        """Emit what could not be emitted before the task was restarted."""
        while self._unsent:
            self.emit(self._unsent.pop())


class IteratorFeed(_KeptFeed):
    """A generator or another iterator."""

    def __init__(
        self, task: SpoutTask, values: Iterator[object], resume: Resume | None = None, emitted: int = 0
    ) -> None:
        super().__init__(task, values, resume, emitted)
        self._values = values

    def _resumed(self, values: object, resume: Resume) -> Feed:
        return IteratorFeed(self.task, iter(cast("Iterable[object]", values)), resume, self._emitted)

    def ask(self, most: int) -> Awaitable[None] | None:
        outbox = self.task.outbox
        self.emit_unsent()
        for _ in range(most):
            try:
                value = next(self._values)
            except StopIteration:
                self._note_end()
                return None
            except Exception as error:
                self._note(error)
                raise
            self.emit(value)
            if outbox.crowded:
                break
        return None

    def end(self) -> Awaitable[None] | None:
        self.ended = True
        if not self._closed:
            self._closed = True
            close = getattr(self._values, "close", None)
            if callable(close):
                close()
        return None

    def close(self) -> Awaitable[None] | None:
        return self.end()


class AsyncIteratorFeed(_KeptFeed):
    """An async generator or another async iterator."""

    def __init__(
        self, task: SpoutTask, values: AsyncIterator[object], resume: Resume | None = None, emitted: int = 0
    ) -> None:
        super().__init__(task, values, resume, emitted)
        self._values = values
        self.survives_kills = resume is not None or not isasyncgen(values)

    def _resumed(self, values: object, resume: Resume) -> Feed:
        return AsyncIteratorFeed(
            self.task, aiter(cast("AsyncIterable[object]", values)), resume, self._emitted
        )

    def ask(self, most: int) -> Awaitable[None] | None:
        return self._pull(most)

    async def _pull(self, most: int) -> None:
        task = self.task
        self.emit_unsent()
        for _ in range(most):
            try:
                value = await task.from_source(Asking.GENERATOR, anext(self._values, END))
            except Interrupted:
                return
            except BaseException as error:
                self._note(error)
                raise
            if value is END:
                self._note_end()
                return
            self.emit(value)
            task.check_cancelled()
            if task.stopping or not task.active or task.tracker.has_work or not task.may_ask:
                return

    def end(self) -> Awaitable[None] | None:
        self.ended = True
        close = None if self._closed else getattr(self._values, "aclose", None)
        self._closed = True
        return None if close is None else cast("Awaitable[None]", close())

    def close(self) -> Awaitable[None] | None:
        return self.end()


END = object()


def _frame_of(source: object) -> object:
    """The frame of a generator, which is None when it is over; of anything else, the thing itself."""
    return getattr(source, "gi_frame", getattr(source, "ag_frame", source))


class SpoutFeed(HostFeed):
    """An instance of a ``Spout`` class."""

    passive = False
    dies = True

    def __init__(self, task: SpoutTask, make: Callable[[], Spout[Any]], idle_max: float) -> None:
        super().__init__(task)
        self._make = make
        self._spout = spout = make()
        self._out = ReliableSpoutOut(task) if isinstance(spout, ReliableSpout) else SpoutOut(task)
        task.tracker.buries = not isinstance(spout, ReliableSpout) or spout.buries
        self._idle_max = idle_max
        self._nap = FIRST_NAP
        self._context = task.engine.context.copy()
        if overrides(spout, Spout, "ack") or overrides(spout, Spout, "fail"):
            self._told = task.engine.parts.told(task.plan, spout)
            self.settle = self._settle

    @property
    def restartable(self) -> bool:
        """Whether another instance can take over."""
        return self._spout.restartable

    @property
    def resumes(self) -> bool:
        """Whether another run goes on after this one."""
        return self._spout.resumes

    def renewed(self) -> Feed:
        """Another instance."""
        return SpoutFeed(self.task, self._make, self._idle_max)

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        return self._spout.open(context, self._out)

    def switch(self, active: bool) -> Awaitable[None] | None:
        return self._spout.activate() if active else self._spout.deactivate()

    def ask(self, most: int) -> Awaitable[None] | None:
        task = self.task
        enough = task.tracker.emitted + most  # one call may emit any number (law S3)
        while (before := task.tracker.emitted) < enough:
            try:
                result = self._call(self._spout.next_tuple, self._out)
            except EndOfStream:
                self.ended = True
                return None
            if result is not None:
                return self._await(result, before)
            if task.pausing or self._nothing_came(before) or task.outbox.crowded or task.tracker.has_work:
                return None
        return None

    def _call(
        self, method: Callable[..., Awaitable[None] | None], *arguments: object
    ) -> Awaitable[None] | None:
        # In a context of its own for each call: what it sets travels with what it emits, not to the next call
        # (law B10).
        context, topology = self._context, self.task.engine.context
        result = context.run(method, *arguments)
        if result is not None and isawaitable(result):
            self._context = topology.copy()
            return within(context, result)
        if context != topology:
            self._context = topology.copy()
        return None

    async def _await(self, result: Awaitable[None], before: int) -> None:
        try:
            await self.task.from_source(Asking.NEXT_TUPLE, result)
        except Interrupted:
            return
        except EndOfStream:
            self.ended = True
        except TopologyStopping:
            if not self.task.stopping:  # it tried to emit when it was cancelled at drain (law C3)
                raise
        else:
            if not self.task.pausing:
                self._nothing_came(before)

    def _nothing_came(self, before: int) -> bool:
        task = self.task
        if task.tracker.emitted != before:
            self._nap = FIRST_NAP
            return False
        if task.woken:  # while next_tuple ran
            task.woken = False
            self._nap = FIRST_NAP
            return True
        task.nap(self._nap)
        self._nap = min(self._nap * 2, self._idle_max)
        return True

    def _settle(self, message_id: object, failure: Failure | None) -> Awaitable[None] | None:
        if failure is None:
            return self._call(self._told.ack, message_id)
        return self._call(self._told.fail, message_id, failure)

    def close(self) -> Awaitable[None] | None:
        return self._spout.close()


class SpoutOut:
    """The collector of a spout task."""

    __slots__ = ("_task",)

    def __init__(self, task: SpoutTask) -> None:
        self._task = task

    @property
    def pending(self) -> int:
        """See :attr:`stormlet.core.components.SpoutCollector.pending`."""
        return self._task.tracker.pending

    def wake(self) -> None:
        """See :meth:`stormlet.core.components.SpoutCollector.wake`."""
        self._task.woken = True
        self._task.wake()

    def pause_until_settled(self, *, own: bool = False) -> None:
        """See :meth:`stormlet.core.components.SpoutCollector.pause_until_settled`."""
        self._task.pause(own=own)

    async def dead_letter(
        self,
        value: object,
        failure: Failure,
        *,
        message_id: object = None,
        attempts: int = 1,
        origin: object = None,
        history: tuple[Failure, ...] = (),
    ) -> None:
        """See :meth:`stormlet.core.components.SpoutCollector.dead_letter`."""
        component = self._task.plan.component
        letter = DeadLetter(component, value, message_id, attempts, failure, origin, history)
        await self._task.tracker.bury(letter)

    def emit(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> tuple[int, ...]:
        """See :meth:`stormlet.core.components.SpoutCollector.emit`."""
        owner = self._task
        if owner.stopping:
            raise _stopping(owner)
        lineage = owner.lineage(origin, attempt)
        tree = None if message_id is None else self._tree(value, message_id, stream, task, lineage)
        reached = owner.tracker.emit(value, stream, task, lineage, tree)
        if owner.tracker.outcomes:
            owner.attend_soon()
        return reached

    def emit_many(
        self,
        values: Sequence[object],
        *,
        message_ids: Sequence[object],
        origins: Sequence[object] | None = None,
        attempt: int = 1,
    ) -> None:
        """See :meth:`stormlet.core.components.SpoutCollector.emit_many`."""
        owner = self._task
        if owner.stopping:
            raise _stopping(owner)
        _check_messages(values, message_ids, origins)
        shared = owner.lineage(None, attempt)  # no user code runs from here on that could set variables
        if origins is None:
            lineages: Sequence[Lineage] = [shared] * len(values)
        else:
            context = shared.context
            lineages = [Lineage(attempt, origin, context) for origin in origins]
        trees = self._trees(values, message_ids, lineages)
        try:
            owner.tracker.emit_many(DEFAULT_STREAM, zip(values, lineages, trees, strict=True))
        finally:
            if owner.tracker.outcomes:
                owner.attend_soon()

    def _tree(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> OpenTree:
        return OpenTree(message_id=message_id)

    def _trees(
        self, values: Sequence[object], message_ids: Sequence[object], lineages: Sequence[Lineage]
    ) -> Sequence[OpenTree]:
        return [OpenTree(message_id=message_id) for message_id in message_ids]

    def emit_threadsafe(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> Future[tuple[int, ...]]:
        """See :meth:`stormlet.core.components.SpoutCollector.emit_threadsafe`."""
        emit = partial(
            self.emit,
            value,
            message_id=message_id,
            stream=stream,
            task=task,
            origin=origin,
            attempt=attempt,
        )
        return call_threadsafe(self._task.loop, emit)


class ReliableSpoutOut(SpoutOut):
    """The collector of a ``ReliableSpout``: what has a message id is kept and replayed."""

    __slots__ = ()

    def _tree(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> OpenTree:
        return SpoutMessage(value, stream, task, lineage, message_id=message_id)

    def _trees(
        self, values: Sequence[object], message_ids: Sequence[object], lineages: Sequence[Lineage]
    ) -> Sequence[OpenTree]:
        return [
            SpoutMessage(value, DEFAULT_STREAM, None, lineage, message_id=message_id)
            for value, message_id, lineage in zip(values, message_ids, lineages, strict=True)
        ]


def _stopping(task: SpoutTask) -> TopologyStopping:
    return TopologyStopping(f"{task.name} emits while the topology is draining")


def _check_messages(
    values: Sequence[object], message_ids: Sequence[object], origins: Sequence[object] | None
) -> None:
    if len(message_ids) != len(values) or (origins is not None and len(origins) != len(values)):
        given = f"{len(values)} values with {len(message_ids)} message ids"
        more = "" if origins is None else f" and {len(origins)} origins"
        raise ValueError(f"emit_many needs as many of each, and got {given}{more}")
    if any(map(is_, message_ids, repeat(None))):
        raise ValueError("emit_many needs message ids that are not None; emit tracks no value without one")
