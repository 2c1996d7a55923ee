"""Awaiting a tuple tree (law C4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from stormlet.core.outcomes import Failure, FailureKind, TupleFailed, TupleTimedOut
from stormlet.errors import NotTracked
from stormlet.report.explanation import Explanation, TreeState

V = TypeVar("V")


class Tree(Generic[V]):
    """The fate of one message that the host emitted.

    ``await tree`` waits until the whole tuple tree is acked and returns what it sent to the ``collect``
    stream; it may be awaited any number of times, or never, and cancelling an await does not touch the tree.

    Raises :class:`~stormlet.TupleFailed` or :class:`~stormlet.TupleTimedOut` if it failed,
    :class:`~stormlet.errors.NotTracked` in a topology without ackers (law L9), and :class:`RuntimeError` while it is
    open in another event loop than that of its topology.
    """

    __slots__ = (
        "_explain",
        "_failure",
        "_history",
        "_loop",
        "_settled",
        "_spout",
        "_tracked",
        "_waiters",
        "values",
    )

    def __init__(self, tracked: bool, spout: str = "", loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._tracked = tracked
        self._spout = spout
        self._loop = loop
        self._explain: Callable[[], Explanation] | None = None
        self._settled = False
        self._failure: Failure | None = None
        self._history: tuple[Failure, ...] = ()
        self._waiters: dict[asyncio.Future[None], None] = {}
        self.values: list[Any] = []

    @property
    def done(self) -> bool:
        """True once the outcome is known."""
        return self._settled

    @property
    def failure(self) -> Failure | None:
        """The failure it ended with; None while it is open and when it was acked."""
        return self._failure

    @property
    def history(self) -> tuple[Failure, ...]:
        """The failure of each attempt, in order, once the outcome is known; also of a tree that was acked in the
        end. Of more than 100 these are the first 10 and the last 90. Attempts that were replayed have no traceback
        any more."""
        return self._history

    def explain(self) -> Explanation:
        """Explain why it is still open: which tuples are outstanding, where, and what is done with them; once it is
        settled, what went wrong on which attempt. ``str()`` of it is for people.

        Raises :class:`~stormlet.errors.NotTracked` in a topology without ackers (law L9).
        """
        if not self._tracked:
            raise _not_tracked()
        if self._explain is None:
            # The engine has forgotten it when it was settled; what it knew is here.
            state = TreeState.ACKED if self._failure is None else TreeState.FAILED
            return Explanation(state=state, spout=self._spout, failures=self._history)
        return self._explain()

    def explained_by(self, explain: Callable[[], Explanation]) -> None:
        """The engine's: who explains it while it is open."""
        self._explain = explain

    def settle(self, failure: Failure | None, history: tuple[Failure, ...]) -> None:
        """The engine's: the outcome is known now. The first one stays."""
        if not self._settled:
            self._settled = True
            self._failure = failure
            self._history = history
            self._explain = None
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
            raise _not_tracked()
        if not self._settled:
            # Checked only where it must wait: a tree that is settled can be read anywhere.
            loop = asyncio.get_running_loop()
            if loop is not self._loop:
                self._check_loop(loop)
            # A future for each await: the cancellation of one would else cancel what the others wait for.
            waiter = loop.create_future()
            self._waiters[waiter] = None
            try:
                yield from waiter
            finally:
                self._waiters.pop(waiter, None)
        if self._failure is None:
            return list(self.values)
        # An error of its own for each await, as each raise adds its frames; the user's exception is its cause.
        raise _error(self._failure) from self._failure.exception

    def _check_loop(self, running: asyncio.AbstractEventLoop) -> None:
        if self._loop not in (None, running):
            raise RuntimeError(
                f"a tree of {self._spout!r} was awaited outside the event loop of its topology, where its outcome "
                f"never arrives; from another thread, use asyncio.run_coroutine_threadsafe"
            )


def _not_tracked() -> NotTracked:
    return NotTracked(
        "the topology runs with ackers=0, so nobody knows when a tree is complete; set ackers to 1 or more"
    )


def _error(failure: Failure) -> TupleFailed:
    """The error that awaiting a failed tree raises; with the records of a recorder, if there was one."""
    error = TupleTimedOut(failure) if failure.kind is FailureKind.TIMEOUT else TupleFailed(failure)
    # As notes, which a traceback shows: a timeout by itself says nothing of who has held the tree.
    for each in failure.outstanding:
        error.add_note(str(each))
    return error
