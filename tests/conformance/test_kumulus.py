"""Cases of Kumulus, Storm in one JVM process: KU-1 to KU-10, with exact counts and moments."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    Failure,
    InvalidTopology,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Ack, Feeder, ForwardUnanchored, Slow, given
from tests.conformance.kit import Numbers, collect, settle, until
from tests.helpers import now, run_to_end

# KU-1: validation.


def test_KU1_missing_bolt() -> None:
    """A bolt cannot subscribe to a component of another topology, which is all that can be missing."""
    topology, other = Topology("KU-1"), Topology("other")
    with pytest.raises(
        InvalidTopology, match="bolt 'bolt': stream 'default' of 'missing' belongs to another topology"
    ):
        topology.bolt("bolt", Ack, other.spout("missing").none())


def test_KU1_missing_stream() -> None:
    """An undeclared stream is refused."""
    with pytest.raises(InvalidTopology, match="'spout' declares no stream 'missing-stream', only 'default'"):
        Topology("KU-1").spout("spout").named("missing-stream")


def test_KU1_missing_field() -> None:
    """Of several fields one that is missing is refused, and named."""
    topology = Topology("KU-1")
    bolt = topology.bolt("bolt", Ack, topology.spout("spout").none(), outputs={"stream": ["num"]})
    with pytest.raises(
        InvalidTopology, match=r"stream 'stream' of 'bolt': no field 'non-existing-field' in \(num\)"
    ):
        bolt.named("stream").fields("num", "non-existing-field")


def test_KU1_okay() -> None:
    """With the field alone the topology is valid."""
    topology = Topology("KU-1")
    bolt = topology.bolt("bolt", Ack, topology.spout("spout").none(), outputs={"stream": ["num"]})
    topology.bolt("bolt2", Ack, bolt.named("stream").fields("num"))
    assert topology.describe().in_order() == [["spout"], ["bolt"], ["bolt2"]]


# KU-2: starts that fail.


class Prepares(Ack):
    """Waits for so many seconds in ``prepare``, then raises; notes its cleanup."""

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.seconds = seconds
        self.error = error
        self.cleaned_up = False

    async def prepare(self, context: TaskContext) -> None:
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error

    def cleanup(self) -> None:
        self.cleaned_up = True


def prepared(*bolts: Prepares) -> tuple[Topology, Feeder]:
    topology, feeder = Topology("KU-2"), Feeder()
    numbers = topology.spout("spout", given(feeder))
    for number, bolt in enumerate(bolts, 1):
        topology.bolt(f"bolt{number}", given(bolt), numbers.none())
    return topology, feeder


@pytest.mark.simulated_time
async def test_KU2_the_host_sets_the_deadline_of_the_start() -> None:
    """A bolt that takes 30 s to prepare, where the host waits for 2 s: its timeout cancels the start, no spout was
    asked, and what was prepared is cleaned up."""
    ready, slow = Prepares(), Prepares(seconds=30)
    topology, feeder = prepared(ready, slow)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await run_to_end(topology)
    assert now() == 2
    assert (ready.cleaned_up, feeder.asked) == (True, [])


# KU-3: crashes.


def broken(value: object) -> None:
    raise RuntimeError("this exception should be thrown")


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["next_tuple", "ack", "fail"])
async def test_KU3_exceptions_of_a_spout_surface(method: str) -> None:
    """What a spout raises, in whatever method, crashes the topology where no restarts are allowed, and finished()
    raises it too."""

    class Broken(Feeder):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, method, lambda *arguments: broken(arguments))

    topology, feeder = Topology("KU-3", max_restarts=0), Broken()
    topology.bolt("bolt", broken if method == "fail" else Ack, topology.spout("spout", given(feeder)).none())
    feeder.feed("a", 1)
    with pytest.raises(TopologyCrashed, match=rf"{method} of spout\[0\] raised RuntimeError"):
        await run_to_end(topology)


# KU-4: one outcome for each message.


class Mixed(Bolt[int, int]):
    """Acks, fails, raises, delays or forgets its input, by its number."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        match tup.value % 5:
            case 0:
                out.ack(tup)
            case 1:
                out.fail(tup)
            case 2:
                raise ValueError(tup.value)
            case 3:
                loop = asyncio.get_running_loop()
                loop.call_later(0.37, out.ack, tup)
            case _:
                pass


@pytest.mark.simulated_time
async def test_KU4_each_message_has_one_outcome() -> None:
    """Of 500 messages to two bolts that ack, fail, raise, delay and forget, each gets exactly one outcome."""
    topology, spout = Topology("KU-4", max_spout_pending=5, message_timeout=0.5), Numbers(last=499)
    numbers = topology.spout("spout", given(spout))
    topology.bolt("bolt1", Mixed, numbers.none())
    topology.bolt("bolt2", Mixed, numbers.none(), parallelism=3)
    await run_to_end(topology)
    assert sorted(message_id for _, message_id in spout.outcomes) == list(range(500))
    assert Counter((verb, message_id % 5) for verb, message_id in spout.outcomes) == {
        ("ack", 0): 100,
        ("fail", 1): 100,
        ("fail", 2): 100,
        ("ack", 3): 100,
        ("fail", 4): 100,
    }


# KU-6: unanchored branches.


async def delay(value: object) -> object:
    await asyncio.sleep(5)
    return value


@pytest.mark.simulated_time
async def test_KU6_a_slow_unanchored_branch_delays_no_ack() -> None:
    """A bolt that sleeps 5 s behind an unanchored emit is no part of the tree: every ack comes at once."""
    topology, feeder = Topology("KU-6", max_spout_pending=1), Feeder()
    numbers = topology.spout("spout", given(feeder))
    delayed = topology.bolt(
        "delay", delay, topology.bolt("unanchoring", ForwardUnanchored, numbers.none()).none()
    )
    seen = collect(topology, numbers, delayed)
    moments = [0.25 * step for step in range(20)]
    async with topology.run():
        for moment in moments:
            await until(moment)
            feeder.feed(moment, moment)
        await settle()
        assert feeder.settled_at == {moment: moment for moment in moments}
        await until(101)
    assert seen[:20] == seen[20:] == moments


# KU-7: emits inside ack and fail.


class EmitsInAck(Feeder):
    """Emits a new message in next_tuple and in every ack and fail."""

    def __init__(self) -> None:
        super().__init__()
        self.emitted = 0

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        self.out = out
        self._emit()

    def ack(self, message_id: object) -> None:
        super().ack(message_id)
        self._emit()

    def fail(self, message_id: object, failure: Failure) -> None:
        super().fail(message_id, failure)
        self._emit()

    def _emit(self) -> None:
        assert self.out is not None, "nothing was asked for"
        self.out.emit(self.emitted, message_id=self.emitted)
        self.emitted += 1


class Sleeping(BasicBolt[int, int]):
    """Takes a tenth of a second, raises on every third input, and counts how many inputs are executed at a
    time, in all tasks."""

    running = 0
    most = 0

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        Sleeping.running += 1
        Sleeping.most = max(Sleeping.most, Sleeping.running)
        await asyncio.sleep(0.1)
        Sleeping.running -= 1
        if tup.value % 3 == 2:
            raise ValueError(tup.value)


@pytest.mark.simulated_time
async def test_KU7_a_spout_may_emit_inside_ack_and_fail() -> None:
    """With one message pending at most, it goes on from outcome to outcome, 50 times in 5 s, one input at a
    time."""
    Sleeping.running = Sleeping.most = 0
    topology, spout = Topology("KU-7", max_spout_pending=1), EmitsInAck()
    topology.bolt("bolt", Sleeping, topology.spout("spout", given(spout)).shuffle(), parallelism=4)
    async with topology.run() as running:
        await until(5.05)
        assert running.statistics().components["spout"].pending == 1
        assert (spout.emitted, len(spout.outcomes), Sleeping.most) == (51, 50, 1)
    assert [message_id for _, message_id in spout.outcomes] == list(range(51))


@pytest.mark.simulated_time
async def test_KU7_several_spouts_that_emit_inside_ack() -> None:
    """Three such spouts broadcast to one bolt for as long as they are let, without a deadlock."""
    topology, spouts = Topology("KU-7", max_spout_pending=1), [EmitsInAck(), EmitsInAck(), EmitsInAck()]
    inputs = [topology.spout(f"spout{number}", given(spout)).all() for number, spout in enumerate(spouts)]
    topology.bolt("bolt", partial(Slow, 0.01), *inputs)
    async with topology.run():
        await until(3.005)
    assert sum(len(spout.acked) for spout in spouts) == 303
    assert {len(spout.acked) for spout in spouts} == {101}


# KU-10: context.


REQUEST: ContextVar[str | None] = ContextVar("request", default=None)


class SetsContext(Spout[str]):
    """Sets the variable for its first message and not for the second; notes what it finds at each call."""

    def __init__(self) -> None:
        self.found: list[str | None] = []

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.found.append(REQUEST.get())
        if len(self.found) == 1:
            REQUEST.set("req-999")
        if len(self.found) <= 2:
            out.emit(f"message {len(self.found)}", message_id=len(self.found))


class AsyncSetsContext(SetsContext):
    """The asynchronous twin."""

    async def next_tuple(self, out: SpoutCollector[str]) -> None:
        super().next_tuple(out)
        await asyncio.sleep(0.01)


def note_context(value: str) -> str:
    found = f"{value}, {REQUEST.get()}"
    REQUEST.set("of the bolt")
    return found


async def note_context_async(value: str) -> str:
    await asyncio.sleep(0.01)
    return note_context(value)


class NotesContext(Bolt[str, str]):
    """The same as a class."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(note_context(tup.value), anchors=tup)
        out.ack(tup)


@pytest.mark.simulated_time
@pytest.mark.parametrize("spout", [SetsContext, AsyncSetsContext])
@pytest.mark.parametrize("bolt", [note_context, note_context_async, NotesContext])
async def test_KU10_context_travels_with_the_tuple(
    spout: type[SetsContext], bolt: Callable[..., Any]
) -> None:
    """A variable set in next_tuple is seen by both bolts of the chain for this message and for no other, nor
    by the next call of next_tuple; what the first bolt sets does not reach the second."""
    topology, source = Topology("KU-10"), spout()
    first = topology.bolt("first", bolt, topology.spout("spout", given(source)).shuffle())
    seen = collect(topology, topology.bolt("second", bolt, first.shuffle()))
    async with topology.run():
        await until(1)
    assert seen == ["message 1, req-999, req-999", "message 2, None, None"]
    assert len(source.found) > 2
    assert set(source.found) == {None}
    assert REQUEST.get() is None


class NotesItsPlace(BasicBolt[str, str]):
    """Emits what a log line would say: component, index, stream and message."""

    def prepare(self, context: TaskContext) -> None:
        self._context = context

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(
            f"{self._context.component} {self._context.task_index} {tup.stream} {tup.origin} {tup.value}"
        )


@pytest.mark.simulated_time
async def test_KU10_what_a_log_line_needs_is_at_hand() -> None:
    """Component and index are in the task's context; stream and the origin of the message on the tuple."""
    topology = Topology("KU-10")
    lines = topology.spout("my-spout")
    seen = collect(topology, topology.bolt("my-bolt", NotesItsPlace, lines.none()))
    async with topology.run() as running:
        await (await running.emit(lines, "data", origin="msg-42"))
    assert seen == ["my-bolt 0 default msg-42 data"]
