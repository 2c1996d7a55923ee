"""The unsent items of one task, and the rule that sends them (law F1, F4).

Ack values leave as one message per acker and slice, inits likewise; consumers are woken at the same moment, each by
the task that has found its inbox empty. Tuples of one tree mostly come one after another: what such a *run* of acks
says is XORed before it is noted, and a root that comes again later is noted again.

*Armed* means that a flush is certain to come: at the end of the running slice, or in the loop's next iteration, for
which the first unsent item has asked. A call that is suspended and comes back within an iteration puts that off, and
with it what others have delivered meanwhile to an inbox that this task has found empty. A task that is armed and never
flushes would stop every other one that delivers there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from stormlet.core.acks import Acks
from stormlet.core.ids import shard_of
from stormlet.core.life import IllegalTransition, OutboxEvent, OutboxState, outbox_moves
from stormlet.core.outcomes import Failure
from stormlet.core.trees import OpenTree
from stormlet.runtime.occupation import BLOCKED, Occupation
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.loop_thread import LoopThread
from stormlet.runtime.wire.room_waits import RoomWaits

ENTER, SUSPEND, LEAVE = map(outbox_moves, (OutboxEvent.ENTER, OutboxEvent.SUSPEND, OutboxEvent.LEAVE))
NO_WAITS = nullcontext()
LONGEST_PUT_OFF = 0.001
"""Seconds for which what is unsent may stay while one call after another comes back at once (law F1). Each message that
is sent wakes its consumer, its acker and its spout, which costs more than such a call."""
CALLS_BETWEEN_TRIES = 32
"""Calls for which no flush is put off, after one for which it was in vain."""
ARM, FLUSH = outbox_moves(OutboxEvent.ARM), outbox_moves(OutboxEvent.FLUSH)


class Control:
    """One control message to one acker: what one task did to its trees in one slice."""

    __slots__ = ("acks", "fails", "inits", "resets")

    def __init__(
        self,
        inits: list[OpenTree],
        acks: Acks,
        fails: list[tuple[int, Failure]],
        resets: list[int],
    ) -> None:
        self.inits = inits
        self.acks = acks
        self.fails = fails
        self.resets = resets

    @property
    def size(self) -> int:
        """The number of its entries."""
        return len(self.inits) + len(self.acks) + len(self.fails) + len(self.resets)


Post = Callable[[Control], None]
"""Hands a control message to the acker of one shard; never blocks (law F4)."""


class Outbox:
    """The unsent inits, acks, fails and wake-ups of one task."""

    __slots__ = (
        "_call_next",
        "_clock",
        "_failed",
        "_is_put_off",
        "_is_unsent",
        "_loop",
        "_may_put_off",
        "_unpromising",
        "_until",
        "acks",
        "armed",
        "awaited",
        "consumers",
        "crowded",
        "delta",
        "fails",
        "found_empty",
        "inits",
        "occupation",
        "posts",
        "resets",
        "run",
        "sliced",
        "state",
        "thread",
        "waited",
        "waits",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        call_next: Callable[[Callable[[], None]], object],
        posts: Sequence[Post],
        clock: Callable[[], float],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._call_next = call_next
        """Has something called in the loop's next iteration."""
        self._failed = failed
        """Takes what a flush raises that no task has asked for (law N2)."""
        self._clock = clock
        self.posts = posts
        """The ways to the ackers, by shard."""
        self.thread = LoopThread(loop)
        self.state = 0
        """An :class:`~stormlet.core.life.OutboxState`, as a plain int; see :mod:`stormlet.core.life`."""
        self.armed = False
        """True if a flush is certain to come; follows from the state."""
        self._until = 0.0
        """The time up to which a scheduled flush may be put off."""
        self._is_unsent = False
        """True if no scheduled flush has come since a call was suspended."""
        self._may_put_off = False
        """True if a scheduled flush is put off when it comes: a call was suspended just now, or has come back."""
        self._is_put_off = False
        """True if a flush is put off for the call that is suspended."""
        self._unpromising = 0
        """The number of next calls for which no flush is put off, as it was in vain for an earlier one."""
        self.sliced = True
        """True if the task's user code runs in slices of its own; concurrent calls do not (law B3)."""
        self.inits: list[OpenTree] = []
        self.acks = Acks()
        self.run = 0
        """The root of the run of acks that goes on; 0 if there is none."""
        self.delta = 0
        """The XOR of that run."""
        self.fails: list[tuple[int, Failure]] = []
        self.resets: list[int] = []
        self.consumers: list[Inbox] = []
        """Every inbox this task can deliver to; the tasks of a component share the list."""
        self.found_empty: list[Inbox] = []
        """Inboxes that were empty when this task delivered to them. Their consumers may be asleep, and nobody else
        will wake them: others may deliver what they like before this task flushes."""
        self.crowded: list[Inbox] = []
        """Inboxes that this task has filled past their capacity (law B6)."""
        self.awaited: list[Inbox] = []
        """Inboxes that coroutines of this task wait for room in: one for each coroutine that waits."""
        self.waited = 0.0
        """Seconds for which it has waited for room."""
        self.waits: Mapping[Inbox, RoomWaits] = {}
        """The counts of waits for room in each of the inboxes; the tasks of a component share them."""
        self.occupation = Occupation(clock)
        """That of the task; a task puts its own here."""

    def enter(self) -> None:
        """A slice begins, or goes on after user code was awaited; its end will flush."""
        # Concurrent calls end at any time, so that no slice of theirs could be trusted to flush.
        if self.sliced:
            self._move(ENTER)

    def suspend(self) -> None:
        """User code is about to be awaited: what is unsent leaves at the next turn of the loop, whatever that
        code does."""
        # A slice that is left by an await may never be gone on with: its unsent items must not depend on that.
        self._move(SUSPEND)
        self._may_put_off = self._is_unsent = False
        if not self.armed:
            self.arm()

    def suspend_call(self) -> None:
        """A call is about to be suspended after which others wait: as :meth:`suspend`, but it is seen first if the call
        comes back at once."""
        if self._unpromising:
            self._unpromising -= 1
            self.suspend()
            return
        self._move(SUSPEND)
        self._is_unsent = True
        if not self.armed:
            self.arm()
            self._may_put_off = True
            self._until = self._clock() + LONGEST_PUT_OFF

    def come_back(self) -> bool:
        """A call that was suspended is over, and the task goes on. Returns True if nothing was flushed meanwhile, as
        the call took no more than an iteration of the loop or two; then a scheduled flush is put off (law F1)."""
        is_prompt = self._is_unsent
        self._may_put_off, self._is_put_off = is_prompt, False
        self.enter()
        return is_prompt

    def leave(self) -> None:
        """The slice ends."""
        # Flushed while the state still says that a flush is certain: what a wake-up delivers here arms nothing.
        self.flush()
        self._may_put_off = False
        self._move(LEAVE)

    def arm(self) -> None:
        """The first unsent item outside a slice asks for a flush."""
        # Not by the hook of the slices, which comes first: a call that comes back in two iterations should go on before
        # those whom the flush wakes, and so have more for them.
        self._loop.call_soon(self._flush_scheduled)
        self._move(ARM)

    def _move(self, moves: tuple[int, ...]) -> None:
        # A tuple of ints instead of the table of enums: each slice makes two of these moves at least.
        state = moves[self.state]
        if state < 0:
            raise IllegalTransition(
                f"an outbox cannot make this move when it is {OutboxState(self.state).name}"
            )
        self.state = state
        self.armed = state > 0

    def ack(self, root: int, edge: int) -> None:
        """Tell the acker of this root the value of an ack. Hot loops have this inline."""
        if root == self.run:
            self.delta ^= edge
        else:
            self.begin_run(root, edge)

    def ack_all(self, edges: Mapping[int, int]) -> None:
        """The same for an input of several trees: its values by root."""
        for root, edge in edges.items():
            self.ack(root, edge)

    def begin_run(self, root: int, edge: int) -> None:
        """An ack of another root than the last one."""
        self._end_run()
        self.run = root
        self.delta = edge

    @property
    def unsent_acks(self) -> Mapping[int, int]:
        """Every unsent ack value, by root."""
        self._end_run()
        return self.acks.xored()

    def _end_run(self) -> None:
        if self.run:
            self.acks.add(self.run, self.delta)
            self.run = 0

    def flush(self) -> None:
        """Send everything."""
        self._end_run()
        if self.acks.count or self.inits or self.fails or self.resets:
            self._post()
        if self.found_empty:
            for inbox in self.found_empty:
                inbox.wake_consumer()
            self.found_empty.clear()

    @property
    def has_room(self) -> bool:
        """True if every queue that this task has filled has room again."""
        if self.crowded:
            # In place, as collectors and feeds hold the list.
            self.crowded[:] = [inbox for inbox in self.crowded if inbox.full]
        return not self.crowded

    def full_consumer(self) -> Inbox | None:
        """A queue that this task can deliver to and that has no room, whoever has filled it (law S3)."""
        for inbox in self.consumers:
            if len(inbox.items) >= inbox.capacity:  # its ``full``, at less than half of the price
                return inbox
        return None

    async def room(self) -> None:
        """Wait until every queue that this task has filled has room, flushing first (law B6, F1)."""
        if self.has_room:
            return
        self.leave()
        began, before = self._clock(), self.occupation.switch(BLOCKED)
        try:
            # One after another: the queues that are waited for last may have been emptied meanwhile.
            while not self.has_room:
                await self._room_in(self.crowded[0])
        finally:
            self.occupation.switch(before)
        self.waited += self._clock() - began
        self.enter()

    async def _room_in(self, inbox: Inbox) -> None:
        waiter = self._loop.create_future()
        wake = partial(_release, waiter)
        inbox.call_when_room(wake)
        self.awaited.append(inbox)
        try:
            with self.waiting_for(inbox):
                await waiter
        finally:
            self.awaited.remove(inbox)
            inbox.call_no_more(
                wake
            )  # the task may have been killed, again and again, while the consumer hangs

    def waiting_for(self, inbox: Inbox | None) -> AbstractContextManager[object]:
        """A block in which the owner of this outbox waits for room there; None is no queue."""
        return NO_WAITS if inbox is None else self.waits.get(inbox, NO_WAITS)

    def _flush_scheduled(self) -> None:
        try:
            if self._may_put_off and self._clock() < self._until:
                self._may_put_off, self._is_put_off = False, True
                self._call_next(self._flush_scheduled)
                return
            if self._is_put_off and self._clock() < self._until:
                self._unpromising = CALLS_BETWEEN_TRIES
            self._may_put_off = self._is_put_off = self._is_unsent = False
            self._move(FLUSH)
            self.flush()
        except Exception as error:  # which would be nobody's
            self._failed(error)

    def _post(self) -> None:
        """Send each entry once, whatever raises meanwhile: an init that arrives twice may have two verdicts."""
        posts = self.posts
        whole = Control(self.inits, self.acks, self.fails, self.resets)
        self.inits, self.acks, self.fails, self.resets = [], Acks(), [], []
        if len(posts) == 1:
            posts[0](whole)
            return
        for post, control in zip(posts, _split(whole, len(posts)), strict=True):
            if control.size:
                post(control)


def _split(whole: Control, ackers: int) -> Sequence[Control]:
    controls = [Control([], Acks(), [], []) for _ in range(ackers)]
    for tree in whole.inits:
        controls[shard_of(tree.root, ackers)].inits.append(tree)
    for root, value in whole.acks:
        controls[shard_of(root, ackers)].acks.add(root, value)
    for root, failure in whole.fails:
        controls[shard_of(root, ackers)].fails.append((root, failure))
    for root in whole.resets:
        controls[shard_of(root, ackers)].resets.append(root)
    return controls


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
