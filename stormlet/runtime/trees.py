"""Awaiting a tuple tree (law C4)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, Generic, TypeVar

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import NotTracked, TupleFailed, TupleTimedOut

V = TypeVar("V")


class Tree(Generic[V]):
    """The fate of one message that the host emitted.

    ``await tree`` waits until the whole tuple tree is acked and returns what it sent to the ``collect``
    stream; it may be awaited any number of times, or never, and cancelling an await does not touch the tree.

    Raises :class:`~stormlet.errors.TupleFailed` or :class:`~stormlet.errors.TupleTimedOut` if it failed, and
    :class:`~stormlet.errors.NotTracked` in a topology without ackers (law L9).
    """

    __slots__ = ("_failure", "_history", "_settled", "_tracked", "_waiters", "values")

    def __init__(self, tracked: bool) -> None:
        self._tracked = tracked
        self._settled = False
        self._failure: Failure | None = None
        self._history: tuple[Failure, ...] = ()
        self._waiters: dict[asyncio.Future[None], None] = {}
        self.values: list[Any] = []

    @property
    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._settled

    @property
    def failure(self) -> Failure | None:
        """Why it failed; None while it is open and when it was acked."""
        return self._failure

    @property
    def history(self) -> tuple[Failure, ...]:
        """Why each attempt failed, in order, once the outcome is known; also of a tree that was acked in the
        end."""
        return self._history

    def settle(self, failure: Failure | None, history: tuple[Failure, ...]) -> None:
        """The engine's: the outcome is known now."""
        self._settled = True
        self._failure = failure
        self._history = history
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def __repr__(self) -> str:
        if not self._settled:
            return "<Tree open>"
        return "<Tree acked>" if self._failure is None else f"<Tree failed: {self._failure}>"

    def __await__(self) -> Generator[Any, None, Sequence[V]]:
        if not self._tracked:
            raise NotTracked(
                "the topology runs with ackers=0, so nobody knows when a tree is complete; "
                "set ackers to 1 or more"
            )
        if not self._settled:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters[waiter] = None
            try:
                yield from waiter
            finally:
                self._waiters.pop(waiter, None)
        if self._failure is None:
            return list(self.values)
        kind = TupleTimedOut if self._failure.kind is FailureKind.TIMEOUT else TupleFailed
        raise kind(self._failure) from self._failure.exception
