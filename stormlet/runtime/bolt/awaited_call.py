"""The rest of a call that has returned a coroutine, where a task makes one call at a time (law B7)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from operator import length_hint
from typing import Any, cast

from stormlet.runtime.bolt.observer import ExecutionObserver
from stormlet.runtime.bolt.worker import Raised, Worker, raised_on
from stormlet.runtime.occupation import AWAITING, IDLE
from stormlet.runtime.wire.collector import AnyTuple


class AwaitedCall:
    """A pause that steps the user's coroutine by hand.

    One that returns without having been suspended has awaited nothing, and the slice goes on. Where it is suspended,
    the outbox sees to what is unsent (law F1).

    If the task says how to :meth:`continue_with`, the next call follows within the same pause, as long as each comes
    back at once: to end the pause and to begin another one costs as much as such a call.
    """

    def __init__(self, worker: Worker, tup: AnyTuple, coroutine: Coroutine[Any, Any, object]) -> None:
        self.cr_await: Coroutine[Any, Any, object] | None = coroutine
        """The coroutine that is stepped, under the name by which those know it who show what a task awaits."""
        self._worker = worker
        self._tup = tup
        self._of_user = True  # else of the engine, which suspends the slice by itself
        self._is_over = False
        self._suspended = False
        self._before = IDLE
        self._rest: Iterator[AnyTuple] | None = None
        self._next_worker = worker
        self._observer: ExecutionObserver | None = None
        self.followers = 0
        """The number of inputs that were executed after the first one."""
        self.last_began = 0.0
        """The time when the last of them began."""
        self._now = 0.0
        self.must_wait = False
        """True if the next call must wait for its turn, in a later iteration of the loop."""

    def continue_with(self, worker: Worker, rest: Iterator[AnyTuple]) -> None:
        """Execute these inputs afterwards, by this worker, which may be around that of the call."""
        self._next_worker = worker
        self._rest = rest
        self._observer = worker.wiring.observed.observer

    def __await__(self) -> Generator[Any, Any, Raised | None]:
        return cast("Generator[Any, Any, Raised | None]", self)

    def __iter__(self) -> AwaitedCall:
        return self

    def __next__(self) -> Any:
        return self._step(None)

    def send(self, value: None, /) -> Any:
        """As a generator does."""
        return self._step(None)

    def throw(self, *error: Any) -> Any:
        """As a generator does."""
        return self._step(error)

    def close(self) -> None:
        """As a generator does."""
        if self.cr_await is not None:
            self.cr_await.close()

    def _step(self, thrown: tuple[Any, ...] | None) -> Any:
        while self.cr_await is not None:
            awaited, gives = self.cr_await, None
            report: Raised | None = None
            try:
                yielded = awaited.send(None) if thrown is None else awaited.throw(*thrown)
            except StopIteration as stop:
                gives = stop.value
            except BaseException as error:
                report = self._report(error)
            else:
                if self._of_user and not self._suspended:
                    self._suspend()
                return yielded
            thrown = None
            if report is None:
                report = self._continue(gives)
            if report is not None:
                self.cr_await = None
                raise StopIteration(report)
        raise StopIteration

    def _suspend(self) -> None:
        self._suspended = True
        outbox = self._worker.outbox
        if self._rest is not None and length_hint(self._rest):
            outbox.suspend_call()
        else:
            outbox.suspend()
        self._before = outbox.occupation.switch(AWAITING)

    def _resume(self) -> None:
        self._of_user = False
        if self._suspended:
            outbox = self._worker.outbox
            outbox.occupation.switch(self._before)
            if not outbox.come_back():
                self._rest = None

    def _report(self, error: BaseException) -> Raised:
        """The report that this came out of the call. Raises what is no exception of user code."""
        if self._of_user:
            self._resume()
        if self._is_over:
            raise error
        if isinstance(error, asyncio.CancelledError):
            return Raised((self._tup,), self._worker.stray(error))
        if not isinstance(error, Exception):
            raise error
        self._worker.wiring.check_cancelled(error)
        return raised_on(self._tup, error)

    def _continue(self, gives: object) -> Raised | None:
        """Step on after a coroutine that has given this, if anything comes next."""
        worker, self.cr_await = self._worker, None
        if self._of_user:
            self._resume()
            worker.wiring.check_cancelled(None)
        if self._is_over:
            return cast("Raised | None", gives)
        try:
            self.cr_await = cast("Any", worker.end(self._tup, gives, worker.out))
        except asyncio.CancelledError as error:
            return Raised((self._tup,), worker.stray(error))
        except Exception as error:
            return raised_on(self._tup, error)
        if self.cr_await is None:
            self._is_over = True
            if worker.outbox.crowded:
                self.cr_await = worker.outbox.room()
            elif self._rest is not None and self._may_go_on():
                return self._go_on(self._rest)
        return None

    def _go_on(self, rest: Iterator[AnyTuple]) -> Raised | None:
        """Execute further inputs, until something must be awaited."""
        worker = self._next_worker
        for tup in rest:
            self.followers += 1
            self.last_began = self._now
            try:
                happened: object = worker.work((tup,))
            except asyncio.CancelledError as error:  # nothing was awaited: user code has raised it
                return Raised((tup,), self._worker.stray(error))
            if happened is None:
                self._suspended = False
                if not self._may_go_on():
                    return None
            elif type(happened) is AwaitedCall:
                self._follow(happened)
                return None
            elif isinstance(happened, Raised):
                return happened
            else:
                self.cr_await = cast("Coroutine[Any, Any, object]", happened)
                return None
        return None

    def _may_go_on(self) -> bool:
        """True if the next input may be executed in this pause. If not, the task has to look first."""
        wiring = self._worker.wiring
        if wiring.observed.observer is not self._observer:
            return False
        self._now = wiring.clock()
        # As in one slice: of many bolts with quick calls some always wait, and every call would queue behind them.
        self.must_wait = not wiring.slices.go_on(self._now, True)
        return not self.must_wait

    def _follow(self, call: AwaitedCall) -> None:
        """Step this call from now on."""
        self._worker, self._tup, self.cr_await = call._worker, call._tup, call.cr_await
        self._of_user, self._is_over, self._suspended = True, False, False
