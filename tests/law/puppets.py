"""Spouts and bolts that the test acts for, and a tap on what tasks send to the ackers.

Times are simulated seconds. A *puppet* does nothing by itself: it takes note of its inputs, and the test
emits, acks and fails in its place, at any time (law F3). Messages of such tests are emitted by the host
unless a test is about the callbacks of spouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from stormlet import (
    Bolt,
    Collector,
    Failure,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    Tuple,
)
from stormlet.errors import EndOfStream
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.wire.outbox import Control, Outbox, Post

A_MOMENT = 0.001
"""Seconds: whatever can happen at once has happened after it, and no timer of these tests is as short."""

BRIEFLY = 1.0
"""Seconds of simulated time in which everything that can happen has happened."""

AnyTuple: TypeAlias = Tuple[Any]


def now() -> float:
    """The simulated time."""
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Let everything happen that waits for no clock."""
    await asyncio.sleep(A_MOMENT)


async def until(moment: float) -> None:
    """Sleep until this moment."""
    await asyncio.sleep(moment - now())


# Bolts.


class Puppet(Bolt[Any, Any]):
    """One task of a bolt that does nothing by itself."""

    out: Collector[Any]
    context: TaskContext

    def __init__(self) -> None:
        self.got: list[AnyTuple] = []
        self.times: list[float] = []
        """When each input came."""

    def prepare(self, context: TaskContext) -> None:
        self.context = context

    def execute(self, tup: AnyTuple, out: Collector[Any]) -> None:
        self.out = out
        self.got.append(tup)
        self.times.append(now())

    def ack_all(self) -> None:
        """Ack what it got since the last time."""
        for tup in self.got:
            self.out.ack(tup)
        self.got.clear()


class Puppets:
    """A factory of puppets: pass it as a bolt's logic."""

    def __init__(self) -> None:
        self.made: list[Puppet] = []

    def __call__(self) -> Puppet:
        self.made.append(Puppet())
        return self.made[-1]

    def __getitem__(self, index: int) -> Puppet:
        return self.made[index]

    @property
    def got(self) -> list[AnyTuple]:
        """What all of them got."""
        return [tup for puppet in self.made for tup in puppet.got]

    def ack_all(self) -> None:
        """Ack what they got since the last time."""
        for puppet in self.made:
            if puppet.got:
                puppet.ack_all()

    def of(self, value: object) -> AnyTuple:
        """The one tuple with this value."""
        (found,) = (tup for tup in self.got if tup.value == value)
        return found


def two_levels() -> tuple[Topology, Stream[Any], Puppets, Puppets]:
    """A bolt that the test acts for, and another one behind it."""
    topology, first, second = Topology("calls"), Puppets(), Puppets()
    feed = topology.spout("feed")
    topology.bolt("second", second, topology.bolt("first", first, feed.shuffle()).shuffle())
    return topology, feed, first, second


# Spouts.


class Script(Spout[Any]):
    """Emits what it is given, all of it in one ``next_tuple``; every value is its own message id. Takes note
    of what it is told, and when."""

    out: SpoutCollector[Any]

    def __init__(self, *values: object) -> None:
        self.values = list(values)
        self.reached: list[tuple[int, ...]] = []
        """What each emit returned."""
        self.acked: list[object] = []
        self.failed: dict[object, Failure] = {}
        self.told: list[tuple[float, str, object]] = []
        """When, "ack" or "fail", and which message, in order."""

    def __call__(self) -> Script:
        return self

    def open(self, context: TaskContext, out: SpoutCollector[Any]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        if not self.values:
            raise EndOfStream
        values, self.values = self.values, []
        self.reached += [out.emit(value, message_id=value) for value in values]

    def ack(self, message_id: object) -> None:
        self.acked.append(message_id)
        self.told.append((now(), "ack", message_id))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.failed[message_id] = failure
        self.told.append((now(), "fail", message_id))


def script(
    topology: Topology, *values: object, id: str = "script", **options: Any
) -> tuple[Script, Stream[Any]]:
    """Add such a spout, of one task."""
    spout = Script(*values)
    return spout, topology.spout(id, lambda: spout, **options)


# Threads.

Call: TypeAlias = Callable[[int], object]


@contextmanager
def threads(count: int, call: Call, times: int) -> Iterator[asyncio.Future[list[None]]]:
    """So many threads, each of which calls so often, with numbers of its own, and waits for nothing itself. Raises what
    they raise when they are awaited."""
    loop = asyncio.get_running_loop()

    def work(thread: int) -> None:
        for number in range(times):
            call(thread * times + number)

    with ThreadPoolExecutor(count) as pool:
        yield asyncio.gather(*(loop.run_in_executor(pool, work, thread) for thread in range(count)))


# What tasks send to the ackers.


def ackers(running: Running) -> list[AckerTask]:
    """The acker tasks: control messages and ledgers are no part of the public face."""
    return list(running._tasks.ackers)


def orphans(running: Running) -> int:
    """Of how many roots the ackers heard something, but not their init."""
    return sum(acker.ledger.orphans for acker in ackers(running))


def open_trees(running: Running) -> int:
    """How many trees are open."""
    return running.statistics().components["__acker"].pending


def outboxes(running: Running) -> list[Outbox]:
    """Those of all tasks that send to ackers."""
    tasks = running._tasks
    return [task.outbox for task in (*tasks.all_spouts, *tasks.all_bolts)]


def intercept(running: Running, handle: Callable[[Post, Control], None]) -> None:
    """From now on each control message is given to ``handle``, with the way to send it on."""
    for outbox in outboxes(running):
        outbox.posts = [partial(handle, post) for post in outbox.posts]


def leave_alone(running: Running) -> None:
    """The end of ``intercept``."""
    for outbox in outboxes(running):
        outbox.posts = [acker.post for acker in ackers(running)]


class Tap:
    """Takes note of all control messages, and sends them on."""

    def __init__(self, running: Running) -> None:
        self.sent: list[tuple[AckerTask, Control]] = []
        for outbox in outboxes(running):
            each = zip(ackers(running), outbox.posts, strict=True)
            outbox.posts = [partial(self._note, acker, post) for acker, post in each]

    def _note(self, acker: AckerTask, post: Post, control: Control) -> None:
        self.sent.append((acker, control))
        post(control)

    @property
    def acks(self) -> list[tuple[int, int]]:
        """Roots and values of all acks that were sent."""
        return [each for _, control in self.sent for each in control.acks]


def xor(values: Iterable[int]) -> int:
    """All of them, XORed."""
    total = 0
    for value in values:
        total ^= value
    return total
