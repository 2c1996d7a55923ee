"""The sources of spout tasks: the host alone, an iterator, or an async iterator. For ``Spout`` classes see
:mod:`stormlet.runtime.spout.spout_feed`."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from inspect import isasyncgen
from typing import Final, TypeAlias, cast

from stormlet.core.shortened import counted, shortened
from stormlet.errors import StateUnusable, TaskKilled
from stormlet.model.components import DEFAULT_STREAM, TaskContext, To
from stormlet.runtime.slow_code import passing_over
from stormlet.runtime.spout.context import Asking, FeedContext, Interrupted
from stormlet.runtime.spout.messages import Message, kept_message, last_with_id, lineage_now
from stormlet.runtime.spout.positions import Position, digest_of
from stormlet.runtime.usercode import stray

OVER = (
    "its generator is over by that, and could go on if it came of a generator function with a parameter resume=, "
    "which is called again with the id of the last message"
)

Resume: TypeAlias = Callable[[object], object]
"""Calls a generator function again, with the id of the last message that its generator has emitted."""


class Feed:
    """The source of a spout task. This one is none: the host emits (law S5)."""

    passive = True
    """True if nothing comes by itself: the host feeds the spout."""
    dies = False
    """True for an instance of user code that dies with its task, and must be closed."""
    survives_kills = True
    """True if it can still be asked for more after it was cancelled while the task awaited it."""

    def __init__(self, context: FeedContext) -> None:
        self.ended = False
        """True if there will be no more."""
        self.nap = 0.0
        """Seconds until it wants to be asked again; 0 if it gave something when it was asked last (law S4)."""
        self.hears_outcomes = False
        """True if :meth:`settle` calls user code."""
        self._context = context
        self._tracker = context.tracker
        self._switches = context.switches
        self._user = context.user

    @property
    def restartable(self) -> bool:
        """True if its task may go on after an exception, with the feed that :meth:`renewed` gives."""
        return True

    @property
    def way_out(self) -> str:
        """The reason it is not restartable, and the way to make it so, in words; empty if there is nothing to say."""
        return ""

    @property
    def unsent(self) -> int:
        """The number of values that the source has given and that could not be emitted yet."""
        return 0

    @property
    def resumes(self) -> bool:
        """True if another run goes on from the position that :meth:`close` has noted."""
        return False

    def position_after(self, messages: Sequence[Message]) -> bytes | None:
        """Return the position of the source after these messages, for another run to go on there (law X8); None if it
        has none, or they are the host's alone."""
        return None

    def position_now(self, messages: Sequence[Message]) -> Mapping[Hashable, object]:
        """Return the position after these messages, which are not durable yet, for another instance to go on there."""
        return {}

    def renewed(self) -> Feed:
        """Return the feed for the restarted task: itself, or another one, which must be opened."""
        return self

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        """Prepare, before anything else."""

    def switch(self, active: bool) -> Awaitable[None] | None:
        """Take note that the topology was activated or deactivated."""

    def ask(self, most: int) -> Awaitable[None] | None:
        """Emit at most so many tuples, or fewer; an awaitable must be awaited before the next call."""

    def settle(self, most: int) -> Awaitable[None] | None:
        """Settle at most so many outcomes; an awaitable must be awaited before the next call."""
        tracker = self._tracker
        for _ in range(tracker.waiting(most)):
            tracker.settle_next()  # nobody is to hear of it
        return None

    def end(self) -> Awaitable[None] | None:
        """Give no more tuples: the topology drains."""
        self.ended = True
        return None

    def refuse_threads(self) -> None:
        """The instance has ended: its threads emit no more (law F3)."""

    def close(self) -> Awaitable[None] | None:
        """Release resources, after everything else."""


class KeptFeed(Feed):
    """A feed whose values the engine keeps and replays (law S6)."""

    passive = False

    def __init__(
        self,
        context: FeedContext,
        values: object,
        resume: Resume | None,
        emitted: int = 0,
        passing: Position | None = None,
    ) -> None:
        """``emitted`` values were emitted before; those up to ``passing`` are given once more, and passed over."""
        super().__init__(context)
        self._passing = passing
        self._topology = context.variables
        self._resume = resume
        self._emitted = emitted
        self._closed = False
        self._source = values
        self._unsent: list[object] = []
        self._broke: BaseException | None = None
        """The last exception of the source, or the cancellation that has hit it."""
        self._broke_after = 0
        self._is_spent = False
        """True if it ended right after that."""

    @property
    def restartable(self) -> bool:
        """An iterable goes on where it was; a generator that raised is over, unless its function can resume."""
        return not self._is_over() or self._resume is not None

    @property
    def way_out(self) -> str:
        """Advice: the way to make a generator restartable."""
        return "" if self.restartable else OVER

    @property
    def unsent(self) -> int:
        """Values that raised when they were to be emitted, as by a key function."""
        return len(self._unsent)

    def position_after(self, messages: Sequence[Message]) -> bytes | None:
        last = last_with_id(messages)
        if last is None:
            return None
        return Position(cast("int", last.message_id) + 1, digest_of(last.value)).encoded()

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        position, self._passing = self._passing, None
        return None if position is None else self._pass_over(position)

    async def _pass_over(self, position: Position) -> None:
        """Have the source give again what is durable (law X8)."""
        value: object = None
        context, clock = self._context, asyncio.get_running_loop().time
        turn = clock()
        with passing_over(context.topology, context.plan, position.count, lambda: self._emitted):
            while self._emitted < position.count:
                if not self._emitted % PASSED_AT_ONCE or clock() - turn >= PASSED_FOR:
                    await asyncio.sleep(0)  # it may take long, and the loop has others (law F2)
                    turn = clock()
                value = await self._next_passed()
                if value is END:
                    raise self._lost_its_place(
                        f"it gives only {counted(self._emitted, 'value')}, of which "
                        f"{counted(position.count, 'is', 'are')} durable"
                    )
                self._emitted += 1
        if position.digest is not None and digest_of(_sent(value)) != position.digest:
            raise self._lost_its_place(f"its value {position.count:,} is another one now: {shortened(value)}")

    async def _next_passed(self) -> object:
        raise NotImplementedError

    def _lost_its_place(self, what: str) -> StateUnusable:
        return StateUnusable(
            f"spout {self._context.plan.component!r} cannot go on where the state ends: {what}; give it the same "
            f"values in the same order, let its function take resume=, or begin anew without the state"
        )

    def renewed(self) -> Feed:
        """Itself; or, of a generator that is over, one that goes on after the last message."""
        if self._resume is None or not self._is_over():
            return self
        return self._resumed(self._resume(self._emitted - 1 if self._emitted else None), self._resume)

    def _is_over(self) -> bool:
        return not self.ended and (self._is_spent or _frame_of(self._source) is None)

    def _raised(self, error: Exception) -> Exception:
        """Note what user code has raised instead of giving a value."""
        self._note(error)
        self._user.raised(error)
        return error

    def _note(self, error: BaseException) -> None:
        self._broke, self._broke_after = error, self._emitted

    def _note_end(self) -> None:
        """The source has no more. If that is all it said since it raised, a generator behind it (of ``map`` or
        ``enumerate``) is over by that: raises that again, for what it had not yet yielded would be lost.
        """
        if self._broke is None or self._broke_after != self._emitted or self._switches.stopping:
            self.ended = True
            return
        # A wrapper such as map says that it is over after the generator behind it has raised.
        self._is_spent = True
        if isinstance(self._broke, Exception):
            self._user.raised(self._broke)
            raise self._broke
        raise TaskKilled("the source was being awaited, and has ended by that")

    def _resumed(self, values: object, resume: Resume) -> Feed:
        raise NotImplementedError

    def emit(self, value: object) -> None:
        """Emit a value under the next message id: its number. The caller keeps it if that raises, as the groupings of
        the user's may."""
        sent, stream, receiver = value, DEFAULT_STREAM, None
        if type(sent) is To:
            to = cast("To[object]", sent)
            sent, stream, receiver = to.value, to.stream, to.task
        lineage = lineage_now(self._topology, None, 1)
        message = kept_message(sent, stream, receiver, lineage, self._emitted)
        self._tracker.emit(sent, stream, receiver, lineage, message)
        self._emitted += 1

    def emit_unsent(self) -> int:
        """Emit what could not be emitted before the task was restarted; return how many (law S3)."""
        before = self._emitted
        while self._unsent:
            self._emit_again(self._unsent[-1])
            del self._unsent[-1]
        return self._emitted - before

    def _emit_again(self, value: object) -> None:
        try:
            self.emit(value)
        except BaseException as error:
            self._user.raised(error)
            raise


class IteratorFeed(KeptFeed):
    """A generator or another iterator."""

    def __init__(
        self,
        context: FeedContext,
        values: Iterator[object],
        resume: Resume | None = None,
        emitted: int = 0,
        passing: Position | None = None,
    ) -> None:
        super().__init__(context, values, resume, emitted, passing)
        self._values = values

    async def _next_passed(self) -> object:
        return next(self._values, END)

    def _resumed(self, values: object, resume: Resume) -> Feed:
        return IteratorFeed(self._context, iter(cast("Iterable[object]", values)), resume, self._emitted)

    def ask(self, most: int) -> Awaitable[None] | None:
        outbox, switches = self._context.outbox, self._switches
        for _ in range(most - self.emit_unsent()):
            try:
                value = next(self._values)
            except StopIteration:
                self._note_end()
                return None
            except asyncio.CancelledError as error:  # nothing was awaited
                raise self._raised(stray(error)) from error
            except Exception as error:
                self._raised(error)
                raise
            try:
                self.emit(value)
            except BaseException as error:
                self._unsent.append(value)
                self._user.raised(error)
                raise
            # Looked at after every value, as each may have filled a queue, and user code may have deactivated the run.
            if outbox.crowded or not switches.active:  # law C1
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


class AsyncIteratorFeed(KeptFeed):
    """An async generator or another async iterator."""

    def __init__(
        self,
        context: FeedContext,
        values: AsyncIterator[object],
        resume: Resume | None = None,
        emitted: int = 0,
        passing: Position | None = None,
    ) -> None:
        super().__init__(context, values, resume, emitted, passing)
        self._values = values
        self._in_hand: object = END
        """The last value of the source if it was not emitted yet; held here before anything else can raise (law N1)."""
        self.survives_kills = resume is not None or not isasyncgen(values)

    async def _next_passed(self) -> object:
        return await anext(self._values, END)

    def _resumed(self, values: object, resume: Resume) -> Feed:
        return AsyncIteratorFeed(
            self._context, aiter(cast("AsyncIterable[object]", values)), resume, self._emitted
        )

    def ask(self, most: int) -> Awaitable[None] | None:
        return self._pull(most)

    @property
    def unsent(self) -> int:
        """The value in hand."""
        return int(self._in_hand is not END)

    def emit_unsent(self) -> int:
        """Emit the value in hand; return how many there were."""
        if self._in_hand is END:
            return 0
        self._emit_again(self._in_hand)
        self._in_hand = END
        return 1

    async def _take(self) -> None:
        # Assigned in the same step, so that a cancellation cannot come between the value and its account.
        self._in_hand = await anext(self._values, END)

    async def _pull(self, most: int) -> None:
        context, switches, wait = self._context, self._switches, self._context.wait
        for _ in range(most - self.emit_unsent()):
            try:
                await wait.for_source(Asking.GENERATOR, self._take())
            except Interrupted:
                return
            except BaseException as error:
                self._note(error)
                raise
            if not self.emit_unsent():
                self._note_end()
                return
            context.life.check_cancelled()
            if switches.stopping or not switches.active or self._tracker.has_work() or not context.may_ask:
                return

    def end(self) -> Awaitable[None] | None:
        self.ended = True
        # Some iterators are not generators, and have nothing to close.
        close = None if self._closed else getattr(self._values, "aclose", None)
        self._closed = True
        return None if close is None else cast("Awaitable[None]", close())

    def close(self) -> Awaitable[None] | None:
        return self.end()


END: Final = object()
PASSED_AT_ONCE: Final = 1000
"""Values of a source that are passed over before the loop has its turn, however little time that took."""
PASSED_FOR: Final = 0.01
"""Seconds for which values are passed over before the loop has its turn."""


def _sent(value: object) -> object:
    return cast("To[object]", value).value if type(value) is To else value


def _frame_of(source: object) -> object:
    """The frame of a generator, which is None when it is over; of anything else, the thing itself."""
    return getattr(source, "gi_frame", getattr(source, "ag_frame", source))
