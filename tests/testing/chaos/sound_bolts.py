"""Sound code that looks like a bug, each in a small topology: nobody may be accused of it."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Epoch,
    EpochBolt,
    Failure,
    KeyedBolt,
    Reject,
    Spout,
    SpoutCollector,
    SqliteTable,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from tests.cast import ignore

Logic = Callable[..., Any]


def around(bolt: Logic, below: Logic = ignore, source: object = range(10), **options: Any) -> Topology:
    """A spout, the bolt, and another one below it."""
    topology = Topology("sound", max_attempts=10_000)
    stream = topology.bolt("bolt", bolt, topology.spout("numbers", source).shuffle(), **options)
    topology.bolt("below", below, stream.global_())
    return topology


async def now_and_then(number: int) -> int:
    """The later ones are often done first."""
    await asyncio.sleep(number % 3)
    return number


@asynccontextmanager
async def connection() -> AsyncIterator[None]:
    """One that takes a while to close."""
    yield
    await asyncio.sleep(0.1)


# Acks that are followed by an await.


def acks_before_a_connection_is_closed() -> Topology:
    class Saves(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            async with connection():
                await asyncio.sleep(0.1)
                out.ack(tup)

    return around(Saves)


def acks_before_a_finally() -> Topology:
    class Saves(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            try:
                await asyncio.sleep(0.1)
                out.ack(tup)
            finally:
                await self.release()

        async def release(self) -> None:
            await asyncio.sleep(0.1)

    return around(Saves)


def pauses_in_the_end() -> Topology:
    class Paced(Bolt[int, int]):
        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value, anchors=tup)
            out.ack(tup)
            if tup.value % 2:
                await asyncio.sleep(0.1)
                return
            await asyncio.sleep(0)

    return around(Paced)


class Gathers(Bolt[int, None]):
    """Holds five inputs, and works on one after another."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        self.held.insert(0, tup)
        if len(self.held) == 5:
            await self.flush(out)

    async def flush(self, out: Collector[None]) -> None:
        while self.held:
            await asyncio.sleep(0.1)
            out.ack(self.held.pop(0))


def works_on_others_when_it_has_acked() -> Topology:
    return around(Gathers)


def pauses_after_each_of_several() -> Topology:
    class Paced(Gathers):
        async def flush(self, out: Collector[None]) -> None:
            for each in reversed(self.held):
                out.ack(each)
                await asyncio.sleep(0.1)
            self.held.clear()

    return around(Paced)


def acks_in_a_task_of_its_own() -> Topology:
    class Hands(Bolt[int, None]):
        async def prepare(self, context: TaskContext) -> None:
            self.queue = asyncio.Queue[tuple[Tuple[int], Collector[None], asyncio.Future[None]]]()
            self.working = asyncio.create_task(self.work())

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.queue.put_nowait((tup, out, done))
            await done

        async def work(self) -> None:
            while True:
                tup, out, done = await self.queue.get()
                await asyncio.sleep(0.1)
                out.ack(tup)
                await asyncio.sleep(0.1)
                done.set_result(None)

        async def cleanup(self) -> None:
            self.working.cancel()
            with suppress(asyncio.CancelledError):
                await self.working

    return around(Hands)


def acks_in_a_task_group() -> Topology:
    class Groups(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.work(tup, out))
                group.create_task(asyncio.sleep(0.2))

        async def work(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(0.1)
            out.ack(tup)

    return around(Groups)


def acks_first_what_nobody_tracks() -> Topology:
    class Saves(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            out.ack(tup)
            await asyncio.sleep(0.1)
            self.last = tup.value

    return around(Saves, source=Untracked)


# Outputs without anchors.


def says_that_no_anchors_are_meant() -> Topology:
    class Tells(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value, anchors=())
            out.emit(tup.value, anchors=None)
            out.ack(tup)

    return around(Tells)


class Untied(Bolt[int, int]):
    """Names no anchors."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)
        out.ack(tup)


def emits_to_nobody() -> Topology:
    topology = Topology("sound")
    topology.bolt("bolt", Untied, topology.spout("numbers", range(10)).shuffle())
    return topology


class Untracked(Spout[int]):
    """Emits numbers that nobody tracks."""

    def __init__(self) -> None:
        self.left = list(range(10))

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        out.emit(self.left.pop())


def has_untracked_inputs() -> Topology:
    return around(Untied, source=Untracked)


# Results that differ.


def takes_a_sample() -> Topology:
    async def sample(number: int) -> int | None:
        await asyncio.sleep(0.01)
        return number if random.random() < 0.5 else None

    return around(sample, Sums, concurrency=4)


class Sums(BasicBolt[int, int]):
    """Emits what it has so far, and in the end everything."""

    def __init__(self) -> None:
        self.total = 0
        self.last = -1

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += tup.value
        self.last = tup.value
        out.emit(self.total)

    def finish(self, out: Collector[int]) -> None:
        out.emit(self.total)


def adds_up_what_comes_in_any_order() -> Topology:
    return around(now_and_then, Sums, concurrency=4)


def tells_the_time() -> Topology:
    class Clock(BasicBolt[int, object]):
        def __init__(self) -> None:
            self.began = self.last = asyncio.get_running_loop().time()

        async def execute(self, tup: Tuple[int], out: Collector[object]) -> None:
            await asyncio.sleep(0.01)
            self.last = asyncio.get_running_loop().time()
            out.emit((uuid.uuid4(), self.last))

        def finish(self, out: Collector[object]) -> None:
            out.emit(self.last - self.began)

    return around(Clock, concurrency=4)


def numbers_what_comes() -> Topology:
    class Ids(BasicBolt[int, tuple[int, int]]):
        def __init__(self) -> None:
            self.ids: dict[int, int] = {}
            self.recent = deque[int](maxlen=3)

        def execute(self, tup: Tuple[int], out: Collector[tuple[int, int]]) -> None:
            self.recent.append(tup.value)
            out.emit((tup.value, self.ids.setdefault(tup.value, len(self.ids))))

    return around(now_and_then, Ids, concurrency=4)


def counts_its_calls() -> Topology:
    class Peak(BasicBolt[int, dict[str, int]]):
        def __init__(self) -> None:
            self.now = self.peak = 0

        async def execute(self, tup: Tuple[int], out: Collector[dict[str, int]]) -> None:
            self.now += 1
            self.peak = max(self.peak, self.now)
            await asyncio.sleep(0.1)
            self.now -= 1

        def finish(self, out: Collector[dict[str, int]]) -> None:
            out.emit({"peak": self.peak})

    return around(Peak, concurrency=4)


def counts_hits_and_misses() -> Topology:
    class Cache(BasicBolt[int, Any]):
        def __init__(self) -> None:
            self.known: dict[int, int] = {}
            self.hits = self.misses = 0

        async def execute(self, tup: Tuple[int], out: Collector[Any]) -> None:
            key = tup.value % 2
            if key in self.known:
                self.hits += 1
            else:
                self.misses += 1
                await asyncio.sleep(0.1)
                self.known[key] = key
            out.emit(self.known[key])

        def finish(self, out: Collector[Any]) -> None:
            out.emit({"hits": self.hits, "misses": self.misses})

    return around(Cache, concurrency=4)


def has_a_pool() -> Topology:
    class Connection:
        def __init__(self) -> None:
            self.calls = 0

    class Pools(BasicBolt[int, None]):
        def __init__(self) -> None:
            self.free: list[Connection] = []
            self.made: list[Connection] = []

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if not self.free:
                self.free.append(Connection())
                self.made.append(self.free[-1])
            mine = self.free.pop()
            await asyncio.sleep(0.1)
            self.free.append(mine)

    return around(Pools, concurrency=4)


def adds_under_a_lock() -> Topology:
    class Adds(BasicBolt[int, int]):
        def __init__(self) -> None:
            self.lock = asyncio.Lock()
            self.total = 0

        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            async with self.lock:
                total = self.total
                await asyncio.sleep(0.1)
                self.total = total + tup.value

        def finish(self, out: Collector[int]) -> None:
            out.emit(self.total)

    return around(Adds, concurrency=4)


def adds_floats_in_any_order() -> Topology:
    class Adds(BasicBolt[int, float]):
        total = 0.0

        def execute(self, tup: Tuple[int], out: Collector[float]) -> None:
            self.total += tup.value / 10

        def finish(self, out: Collector[float]) -> None:
            out.emit(self.total)

    return around(now_and_then, Adds, concurrency=4)


def waits_for_another_call() -> Topology:
    events: dict[int, asyncio.Event] = {}

    class Waits(BasicBolt[int, int]):
        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            done = events.setdefault(tup.value, asyncio.Event())
            out.emit(tup.value)
            await asyncio.wait_for(done.wait(), 20.0)

    def tell(number: int) -> None:
        events.setdefault(number, asyncio.Event()).set()

    return around(Waits, tell, concurrency=3)


def adds_up_windows() -> Topology:
    class Windows(Bolt[int, int]):
        def __init__(self) -> None:
            self.window: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.window.append(tup)
            if len(self.window) == 3:
                self.flush(out)

        def flush(self, out: Collector[int]) -> None:
            if self.window:
                out.emit(sum(tup.value for tup in self.window), anchors=self.window)
            for tup in self.window:
                out.ack(tup)
            self.window = []

        finish = flush

    return around(now_and_then, Windows, concurrency=4)


def writes_batches() -> Topology:
    class Batches(BatchBolt[int, list[int]]):
        size = 4
        within = 100.0

        async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[list[int]]) -> None:
            await asyncio.sleep(0.1)
            out.emit([tup.value for tup in tups])

    return around(now_and_then, Batches, concurrency=4)


# A spout.


class GivesUp(Spout[int]):
    """Emits each number twice at the most."""

    def __init__(self) -> None:
        self.left: Iterable[tuple[int, int]] = [(number, 1) for number in range(10)]
        self.pending: dict[object, tuple[int, int]] = {}

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.left:
            (number, attempt), *self.left = self.left
            message_id = object()
            self.pending[message_id] = number, attempt
            out.emit(number, message_id=message_id, attempt=attempt)
        elif self.pending:
            out.pause_until_settled()
        else:
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        self.pending.pop(message_id, None)

    def fail(self, message_id: object, failure: Failure) -> None:
        number, attempt = self.pending.pop(message_id, (0, 2))
        if attempt == 1:
            self.left = [*self.left, (number, 2)]


def gives_up_after_two_attempts() -> Topology:
    return around(ignore, source=GivesUp)


class Last(KeyedBolt[int, int, int]):
    """Keeps the last number of each parity."""

    last = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.last = tup.value
        out.emit(tup.value)


class Timed(Last):
    """Counts how often its timers have come."""

    rung = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.set_timer(self.now + tup.value)

    def on_timer(self, at: float, out: Collector[int]) -> None:
        self.rung += 1


class Sizes(EpochBolt[int, int]):
    """Counts what an epoch has."""

    def __init__(self) -> None:
        self.inputs = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.inputs += 1

    def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
        out.emit(self.inputs)


def parity(number: int) -> int:
    return number % 2


def keeping(bolt: Logic, below: Logic = ignore) -> Topology:
    """A spout, a bolt whose state is in a file, and another one below it."""
    topology = Topology("sound", state="sound.state", max_attempts=10_000, epoch_messages=3)
    numbers = topology.bolt(
        "pause", now_and_then, topology.spout("numbers", range(10)).shuffle(), concurrency=5
    )
    kept = topology.bolt("keep", bolt, numbers.fields(parity))
    topology.bolt("below", below, kept.shuffle())
    topology.bolt("sizes", SqliteTable("sizes", int), topology.bolt("size", Sizes, kept.shuffle()).global_())
    return topology


def keeps_the_last_one() -> Topology:
    return keeping(Last)


def has_timers() -> Topology:
    return keeping(Timed)


def reject_some(number: int) -> None:
    if random.random() < 0.05:
        raise Reject("bad luck")


def rejects_what_fails() -> Topology:
    return keeping(Count, reject_some)


class Count(Last):
    """Counts numbers by their parity."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.last += 1
        out.emit(tup.value)


def counts_in_a_file() -> Topology:
    return keeping(Count)
