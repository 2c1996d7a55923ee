"""Emits of the host through a spout task: each message in its turn, when there is room (law C4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stormlet.errors import TopologyStopping
from stormlet.runtime.occupation import BLOCKED, LIMITED
from stormlet.runtime.spout.messages import HostMessage
from stormlet.runtime.spout.switches import Switches
from stormlet.runtime.spout.tracker import Tracker
from stormlet.runtime.usercode import stray
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.thread_calls import ThreadCalls, room_below


class HostEmits:
    """The messages that the host emits on one spout task, and its wait for room there."""

    def __init__(
        self, name: str, loop: asyncio.AbstractEventLoop, tracker: Tracker, outbox: Outbox, switches: Switches
    ) -> None:
        self._loop = loop
        self._tracker = tracker
        self._outbox = outbox
        self._switches = switches
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._room: asyncio.Future[None] | None = None
        self._name = name
        self._threads: ThreadCalls | None = None

    @property
    def may_emit(self) -> bool:
        """Nobody asked before, there is room, and the topology does not drain."""
        return not self._waiting and self._has_room and not self._switches.stopping

    @property
    def _has_room(self) -> bool:
        return self._tracker.room > 0 and self._outbox.has_room

    async def room(self) -> None:
        """Wait until the host may emit, in the order of asking; raises :class:`TopologyStopping` when the
        topology drains (law C4)."""
        self._waiting += 1
        try:
            await self._room_in_turn()
        finally:
            self._waiting -= 1
        if self._switches.stopping:
            raise TopologyStopping("the topology is draining or stopped and takes no new messages")

    async def _room_in_turn(self) -> None:
        outbox, switches = self._outbox, self._switches
        # A lock, as it lets coroutines in by the order of asking, which law C4 promises.
        async with self._turn:
            while not switches.stopping and not self._has_room:
                self._room = self._loop.create_future()
                # The consumer must get what fills its queue, or it would never have room.
                if outbox.crowded:
                    outbox.flush()
                    outbox.crowded[0].call_when_room(self.look_again)
                await self._noted(self._room)

    async def _noted(self, room: asyncio.Future[None]) -> None:
        """Await this, and note that the task waits with the host."""
        outbox = self._outbox
        doing = BLOCKED if outbox.crowded else LIMITED
        outbox.occupation.note(doing, 1)
        try:
            with outbox.waiting_for(outbox.crowded[0] if outbox.crowded else None):
                await room
        finally:
            outbox.occupation.note(doing, -1)

    def _room_for_threads(self, look: Callable[[], None]) -> int | None:
        """The room that the spout itself would have if it were asked for more (law S3)."""
        if self._switches.stopping:
            return None
        full = self._outbox.full_consumer()
        if full is not None:
            full.call_when_room(look)
            return 0
        return min(self._tracker.room, room_below(self._outbox, look))

    def threads_of_next_instance(self) -> ThreadCalls:
        """The emits of the threads of an instance that begins; those of the one before are refused from now on (law
        F3)."""
        if self._threads is not None:
            self._threads.close()
        self._threads = ThreadCalls(self._loop, self._name, self._room_for_threads)
        return self._threads

    def look_again(self) -> None:
        """There may be room now, or never again."""
        if self._threads is not None and self._threads.waiting:
            self._threads.look()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def emit(self, message: HostMessage) -> None:
        """Emit a message of ``running.emit``. The caller looks for outcomes that are known at once (law L17)."""
        tracker, outbox = self._tracker, self._outbox
        # A lone message is sent at once. With others on their way a flush comes anyway, and takes it along.
        alone = not tracker.pending and not outbox.armed
        if alone:
            outbox.enter()
        try:
            tracker.emit_for_host(message)
        except BaseException as error:
            message.collect_no_more()
            # Nothing is awaited here: a key function or a custom grouping has raised it (law N3).
            if isinstance(error, asyncio.CancelledError):
                raise stray(error) from error
            raise
        finally:
            if alone:
                outbox.leave()
