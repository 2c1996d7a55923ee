"""The dead letters of messages that cannot be decoded, or are too large (law R6).

Such a message waits in the buffer for its turn, as those that are emitted: what is given back or withdrawn before is
somebody else's to bury. From its turn on it is under way, as a tree is: a partition that is given away, and the end,
wait for it, and what is behind it may be emitted. A lost connection does not cut short what is being written; whatever
is withdrawn meanwhile is passed over.

With ``state=`` nothing behind it is emitted before it is written: the state would go on behind both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from stormlet.connect.driver.held import Held, Unreadable
from stormlet.connect.driver.holding import Holding
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.model.components import SpoutCollector, TaskContext


class Burying:
    """Writer of the dead letters of one source task."""

    def __init__(
        self,
        context: TaskContext,
        out: SpoutCollector[Any],
        holding: Holding,
        *,
        buries: bool,
        resume: dict[str, str] | None,
    ) -> None:
        """``buries``: the dead letters of the run have it, and not those of the broker. ``resume``: the names of the
        last messages that are over for the state, by place; None without one."""
        self.is_idle = asyncio.Event()
        """Set while there is nothing to write."""
        self.is_idle.set()
        self._context = context
        self._out = out
        self._holding = holding
        self._buries = buries
        self._resume = resume
        self._waiting: deque[Held] = deque()
        self._came = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of messages that are under way."""
        return len(self._waiting)

    def clear_way(self) -> bool:
        """The next messages of the buffer are to be emitted: take out those first in line of which nothing can be made.
        Returns False if what is behind them must wait."""
        if self._holding.buffer.unreadable:
            for held in self._holding.buffer.take_unreadable():
                self._begin(held)
        return self._resume is None or not self._waiting

    def _begin(self, held: Held) -> None:
        if not self._buries:
            self._holding.give_up(held.id, str(self._failure(held.value)))
            return
        self._waiting.append(held)
        self.is_idle.clear()
        self._came.set()

    async def keep(self) -> None:
        """Write one after another, for ever. Raises what the sink of the dead letters raises."""
        try:
            while True:
                await self._came.wait()
                await self._write_all()
                self._came.clear()
                self.is_idle.set()
                self._out.wake()
        finally:
            self.is_idle.set()  # nobody writes any more

    async def _write_all(self) -> None:
        while self._waiting:
            held = self._waiting[0]
            # Else it is withdrawn, and comes to somebody else, or again.
            if held.id in self._holding.receipts:
                await self._bury(held, held.value)
            self._waiting.popleft()
            self._holding.may_have_room()

    async def _bury(self, held: Held, unreadable: Unreadable) -> None:
        failure = self._failure(unreadable)
        await self._out.dead_letter(unreadable.body, failure, message_id=held.id, origin=held.name)
        if self._resume is not None and held.place is not None and held.name is not None:
            self._resume[held.place.name] = held.name
        self._holding.give_up(held.id, str(failure))

    def _failure(self, unreadable: Unreadable) -> Failure:
        error, context = unreadable.error, self._context
        reason = f"{type(error).__name__}: {error}"
        return Failure(
            FailureKind.FAILED,
            context.component,
            context.task,
            reason,
            exception=error,
            permanent=True,
            task_index=context.task_index,
        )
