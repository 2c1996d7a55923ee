"""Batches that are executed beside their task, while it goes on collecting inputs for the next ones.

The members of such a batch stay held until the task is called again: it settles them between two inputs, as it does
everything else. So an exception is dealt with where all others are, and a task that dies finds the members among what
it holds. An execution counts as something that runs (law B8): nothing is flushed while one may settle what a spout
waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, cast

from stormlet.errors import StrayCancellation
from stormlet.runtime.bolt.worker import Raised, Wiring
from stormlet.runtime.occupation import AWAITING, IDLE, Occupation, Steps
from stormlet.runtime.wire.collector import AnyTuple


class Executions:
    """The batches of one task that are under way, and those that have ended and are not settled yet."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._occupation = wiring.outbox.occupation
        self._running: dict[asyncio.Task[None], Sequence[AnyTuple]] = {}
        self._ended: dict[asyncio.Task[None], Sequence[AnyTuple]] = {}
        self._turn = asyncio.Lock()
        """Of those that wait for a place: one after another, in the order of asking."""
        self.waiting = 0
        """The number of calls that wait for a place."""
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._running or self._ended)

    @property
    def running(self) -> int:
        """The number of batches that are under way."""
        return len(self._running)

    def start(self, members: Sequence[AnyTuple], execute: Callable[[], Awaitable[None]]) -> None:
        """Execute a batch from now on."""
        plan = self._wiring.plan
        steps = Steps(_awaited(execute, self._occupation), self._occupation)
        execution = self._wiring.loop.create_task(
            cast("Coroutine[Any, Any, None]", steps), name=f"{plan.name} execute_batch"
        )
        self._running[execution] = members
        self._wiring.activity.begin()
        execution.add_done_callback(self._note_end)

    def settle(self, ack: Callable[[Sequence[AnyTuple]], None]) -> None:
        """Settle the batch that ended first. Raises :class:`~stormlet.runtime.bolt.worker.Raised` with its members if
        it has failed."""
        if not self._ended:
            return
        execution, members = next(iter(self._ended.items()))
        del self._ended[execution]
        if self._ended:  # one at a time, as each may have thousands of members
            self._wiring.loop.call_soon(self._request)
        error = StrayCancellation("somebody else has cancelled the call") if execution.cancelled() else None
        raised = error or execution.exception()
        if isinstance(raised, Exception):
            raise Raised(members, raised)
        if raised is not None:
            raise raised
        ack(members)

    async def place(self, is_there: Callable[[], bool]) -> None:
        """Wait in turn until there is a place, as this says after each end of a batch."""
        self.waiting += 1
        try:
            async with self._turn:
                while not is_there():
                    await self._next_end()
        finally:
            self.waiting -= 1

    async def settle_all(self, ack: Callable[[Sequence[AnyTuple]], None]) -> None:
        """Wait for all batches, and settle them as :meth:`settle` does."""
        while self:
            if not self._ended:
                await self._next_end()
            self.settle(ack)

    async def close(self) -> None:
        """Cancel what is under way, and wait for its end. The members fail with their task, and so say nothing of the
        exceptions of batches that have ended."""
        self._closed = True
        for execution in self._running:
            execution.cancel()
        while self._running:
            await asyncio.wait(self._running)
        for execution, members in self._ended.items():
            error = None if execution.cancelled() else execution.exception()
            if isinstance(error, Exception):
                self._wiring.log("execute_batch", error, [tup.value for tup in members])
        self._ended.clear()

    async def _next_end(self) -> None:
        await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)

    def _note_end(self, execution: asyncio.Task[None]) -> None:
        self._ended[execution] = self._running.pop(execution)
        self._request()
        self._wiring.activity.end()  # last: until here something is about to happen

    def _request(self) -> None:
        if not self._closed:
            self._wiring.pending_calls.request("due")


async def _awaited(execute: Callable[[], Awaitable[None]], occupation: Occupation) -> None:
    occupation.switch(AWAITING)
    try:
        await execute()
    finally:
        occupation.switch(IDLE)
