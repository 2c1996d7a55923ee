"""The spouts and bolts that many tests share; the name of each says what it does.

A test takes one where the component is not its subject, and defines its own where it is. What needs arguments is bound:
``partial(Slow, 2)``, ``partial(Note, seen)``. ``given(component)`` hands out one object, for a test that looks inside.

======================  ========================================================================
never settle            ``Forget`` ``Hold``
settle later            ``HoldUntilFinished`` ``AckLater`` ``Slow`` ``Join``
settle at once          ``Ack`` ``Note`` ``Forward`` ``ForwardUnanchored`` ``Refuse``
settled by the engine   ``Ignore`` ``Count`` ``Burst`` ``Batches``
in the loop's time      ``Ticks``
functions               ``ignore`` ``same`` ``twice`` ``refuse`` ``raise_value_error``
                        ``take_a_second`` ``wait_for_ever``
spouts                  ``Counting`` ``NotesOutcomes`` ``Untracked`` ``Endless`` ``Silent`` ``Waiting`` ``Feeder``
======================  ========================================================================
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Failure,
    FailureKind,
    Spout,
    SpoutCollector,
    TaskContext,
    Tuple,
)
from stormlet.errors import EndOfStream, Reject

C = TypeVar("C")


def given(component: C) -> Callable[[], C]:
    """A factory that gives this object: for one task whose insides the test wants to see."""
    return lambda: component


# Bolts that never settle.


class Forget(Bolt[Any, Any]):
    """Neither acks nor fails nor keeps its inputs."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        """Return."""


class Hold(Bolt[Any, Any]):
    """Holds every input in ``held``, for the test to settle or to leave open."""

    def __init__(self) -> None:
        self.held: list[Tuple[Any]] = []
        self.out: Collector[Any] | None = None

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.out = out
        self.held.append(tup)

    def ack(self, *values: object) -> None:
        """Ack the held inputs with these values, or all of them."""
        self._settle("ack", [tup for tup in self.held if not values or tup.value in values])

    def ack_first(self) -> None:
        """Ack the input that is held longest."""
        self._settle("ack", self.held[:1])

    def fail(self, value: object) -> None:
        """Fail the held input with this value."""
        self._settle("fail", [next(tup for tup in self.held if tup.value == value)])

    def _settle(self, verb: str, tups: list[Tuple[Any]]) -> None:
        assert self.out is not None, "nothing was executed"
        for tup in tups:
            self.held.remove(tup)
            getattr(self.out, verb)(tup)


# Bolts that settle later.


class HoldUntilFinished(Hold):
    """Acks what it holds when nothing more comes."""

    def finish(self, out: Collector[Any]) -> None:
        while self.held:
            out.ack(self.held.pop(0))


class AckLater(Bolt[Any, Any]):
    """Holds each input, and acks it from a timer after some seconds, while it takes others."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        asyncio.get_running_loop().call_later(self.seconds, out.ack, tup)


class Slow(Bolt[Any, Any]):
    """Takes some seconds for each input, and acks it."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds

    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        await asyncio.sleep(self.seconds)
        out.ack(tup)


class Join(Bolt[Any, Any]):
    """Holds inputs; with every n-th it emits the list of their values, anchored to all n, and acks them."""

    def __init__(self, n: int = 2) -> None:
        self.n = n
        self.held: list[Tuple[Any]] = []

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.held.append(tup)
        if len(self.held) == self.n:
            out.emit([each.value for each in self.held], anchors=self.held)
            for each in self.held:
                out.ack(each)
            self.held = []


# Bolts that settle at once.


class Ack(Bolt[Any, Any]):
    """Acks each input."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.ack(tup)


class Note(Ack):
    """Notes the value of each input in ``seen``, and acks it."""

    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen: list[Any] = [] if seen is None else seen

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.seen.append(tup.value)
        out.ack(tup)


class Forward(Bolt[Any, Any]):
    """Emits each input, anchored, then acks it."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value, anchors=tup)
        out.ack(tup)


class ForwardUnanchored(Bolt[Any, Any]):
    """Emits each input and names no anchors, then acks it."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value)
        out.ack(tup)


class Refuse(Bolt[Any, Any]):
    """Fails each input, with this reason, for a replay or for good."""

    def __init__(self, reason: str = "", *, permanent: bool = False) -> None:
        self.reason = reason
        self.permanent = permanent

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.fail(tup, self.reason, permanent=self.permanent)


# Bolts that the engine settles for.


class Ignore(BasicBolt[Any, Any]):
    """Does nothing with its inputs, which are acked."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        """Return."""


class Count(BasicBolt[Hashable, int]):
    """Counts each value, and emits how often this task has seen it."""

    def __init__(self) -> None:
        self.counts = Counter[Hashable]()

    def execute(self, tup: Tuple[Hashable], out: Collector[int]) -> None:
        self.counts[tup.value] += 1
        out.emit(self.counts[tup.value])


class Burst(BasicBolt[Any, int]):
    """Emits 0, 1, … below ``count`` for each input."""

    def __init__(self, count: int = 50) -> None:
        self.count = count

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        for number in range(self.count):
            out.emit(number)


class Batches(BatchBolt[Any, Any]):
    """Notes the values of each batch in ``batches``; one is complete by its size, or some seconds after its first."""

    def __init__(self, size: int = 2, within: float = 1.0) -> None:
        self.size = size
        self.within = within
        self.batches: list[list[Any]] = []

    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[Any]) -> None:
        self.batches.append([tup.value for tup in tups])


# A bolt that has a clock.


class Ticks(Ack):
    """Notes in ``ticks`` when it ticks; acks its inputs."""

    def __init__(self, ticks: list[float] | None = None) -> None:
        self.ticks: list[float] = [] if ticks is None else ticks

    def tick(self, out: Collector[Any]) -> None:
        self.ticks.append(asyncio.get_running_loop().time())


# Functions as bolts.


def ignore(value: object) -> None:
    """Emit nothing; the input is acked."""


def same(value: object) -> object:
    """Emit the input."""
    return value


def twice(value: object) -> Iterator[object]:
    """Emit the input two times."""
    yield value
    yield value


def refuse(value: object) -> None:
    """Fail for good."""
    raise Reject("refused")


def raise_value_error(value: object) -> None:
    """Fail, so that the message is replayed."""
    raise ValueError(value)


async def take_a_second(value: object) -> None:
    """Ack after a second."""
    await asyncio.sleep(1)


async def wait_for_ever(value: object) -> None:
    """Never be done with an input."""
    await asyncio.Event().wait()


# Spouts.


class Counting(Spout[int]):
    """Emits 0, 1, … below ``count``, each under its own number as message id, then ends."""

    count = 3

    def __init__(self) -> None:
        self.next = 0

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == self.count:
            raise EndOfStream
        self.next += 1
        out.emit(self.next - 1, message_id=self.next - 1)


class NotesOutcomes(Counting):
    """Notes the outcome of each message in ``heard``: its id, and the kind of its failure or None."""

    def __init__(self, heard: list[tuple[object, FailureKind | None]] | None = None) -> None:
        super().__init__()
        self.heard: list[tuple[object, FailureKind | None]] = [] if heard is None else heard

    def ack(self, message_id: object) -> None:
        self.heard.append((message_id, None))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.heard.append((message_id, failure.kind))


class Untracked(Spout[int]):
    """Emits 0, 1, … below ``count`` without message ids, all in one call, then ends."""

    count = 3

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        for number in range(self.count):
            out.emit(number)
        raise EndOfStream


class Endless(Spout[int]):
    """Emits 0, 1, … under the same ids, one whenever it is asked."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        number = next(self.numbers)
        out.emit(number, message_id=number)


class Silent(Spout[Any]):
    """Never emits anything, and never ends."""

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        """Return."""


class Waiting(Spout[Any]):
    """Waits for what never comes."""

    async def next_tuple(self, out: SpoutCollector[Any]) -> None:
        await asyncio.Event().wait()


class Feeder(Spout[Any]):
    """Storm's FeederSpout: emits what the test feeds it, one value a call, and notes every outcome and its moment."""

    def __init__(self) -> None:
        self.acked: list[object] = []
        self.failed: list[object] = []
        self.outcomes: list[tuple[str, object]] = []
        """Acks and fails in their order, as ``("ack", message_id)``."""
        self.failures: dict[object, Failure] = {}
        self.settled_at: dict[object, float] = {}
        self.asked: list[float] = []
        """The moment of every ``next_tuple``."""
        self.out: SpoutCollector[Any] | None = None
        self._fed = deque[tuple[object, object, str]]()

    def feed(self, value: object, message_id: object = None, stream: str = "default") -> None:
        """Have this emitted as soon as the topology asks for it; without an id it is untracked."""
        self._fed.append((value, message_id, stream))
        if self.out is not None:
            self.out.wake()

    def take_acked(self) -> int:
        """The number of messages that were acked since the last call."""
        taken, self.acked = len(self.acked), []
        return taken

    def causes(self) -> dict[object, FailureKind]:
        """Why each message failed, by id."""
        return {message_id: failure.kind for message_id, failure in self.failures.items()}

    def open(self, context: TaskContext, out: SpoutCollector[Any]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        self.asked.append(asyncio.get_running_loop().time())
        if self._fed:
            value, message_id, stream = self._fed.popleft()
            out.emit(value, message_id=message_id, stream=stream)

    def ack(self, message_id: object) -> None:
        self.acked.append(message_id)
        self._settled("ack", message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.failed.append(message_id)
        self.failures[message_id] = failure
        self._settled("fail", message_id)

    def _settled(self, verb: str, message_id: object) -> None:
        self.outcomes.append((verb, message_id))
        self.settled_at[message_id] = asyncio.get_running_loop().time()
