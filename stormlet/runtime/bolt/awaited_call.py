"""The rest of a call that has returned a coroutine, where a task makes one call at a time (law B7)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, cast

from stormlet.runtime.bolt.worker import Raised, Worker, raised_on
from stormlet.runtime.occupation import AWAITING, IDLE
from stormlet.runtime.wire.collector import AnyTuple


class AwaitedCall:
    """A pause that steps the user's coroutine by hand.

    One that returns without having been suspended has awaited nothing, and the slice goes on. Where it is suspended,
    everything that is unsent leaves before (law F1).
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
        outbox.suspend()
        self._before = outbox.occupation.switch(AWAITING)

    def _resume(self) -> None:
        self._of_user = False
        if self._suspended:
            outbox = self._worker.outbox
            outbox.occupation.switch(self._before)
            outbox.enter()

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
            return None
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
        return None
