"""What bolts emit, and when."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    Reject,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
)
from tests.cast import ignore
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Later(BasicBolt[int, int]):
    """Emits from a callback of the loop, a second after its call."""

    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Ask for the callback."""
        asyncio.get_running_loop().call_later(1.0, self.emit, out)

    def emit(self, out: Collector[int]) -> None:
        """Emit without saying of anchors."""
        try:
            out.emit(2)
        except Exception as error:
            self.problems.append(error)


class AsyncLater(Later):
    """The same from an asynchronous call."""

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:  # type: ignore[override]
        """Ask for the callback."""
        await asyncio.sleep(0.5)
        super().execute(tup, out)


@pytest.mark.parametrize("kind", [Later, AsyncLater])
@pytest.mark.parametrize("origin", [None, "somebody"])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_an_emit_after_the_call_is_unanchored(
    kind: type[Later], origin: object, concurrency: int
) -> None:
    """What a BasicBolt emits when its call is over belongs to no tree, however the call was made (B1, L8)."""
    bolt, seen = kind(), list[tuple[int, float]]()
    topology = Topology("later")
    spout = topology.spout("spout")
    stream = topology.bolt("later", lambda: bolt, spout.shuffle(), concurrency=concurrency)
    topology.bolt("see", lambda value: seen.append((value, now())), stream.shuffle())
    async with topology.run() as running:
        await (await running.emit(spout, 1, origin=origin))
        await asyncio.sleep(5)
    assert bolt.problems == []
    assert seen == [(2, 1.5 if kind is AsyncLater else 1.0)]


class Unanchored(Bolt[int, int]):
    """Says that its output belongs to no tree."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Emit."""
        out.emit(tup.value, anchors=None)
        out.ack(tup)


@pytest.mark.parametrize("options", [{}, {"executor": "thread"}])
async def test_no_anchors_may_be_none(options: dict[str, Any]) -> None:
    """anchors=None is the same as no anchors (L8)."""
    seen = list[int]()
    topology = Topology("none", max_attempts=1)
    stream = topology.bolt("bolt", Unanchored, topology.spout("spout", [1, 2]).shuffle(), **options)
    topology.bolt("see", seen.append, stream.shuffle())
    running = await run_to_end(topology)
    assert (seen, running.dead_letters) == ([1, 2], ())


class Aside(BasicBolt[int, int]):
    """Anchors by default, and says that this output belongs to no tree."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Emit."""
        out.emit(tup.value, anchors=None)


async def test_no_anchors_are_none_of_a_basic_bolt_either() -> None:
    """What fails below fails no message."""

    def fail(value: int) -> None:
        raise Reject("none of them")

    topology = Topology("none")
    stream = topology.bolt("bolt", Aside, topology.spout("spout", [1, 2]).shuffle())
    topology.bolt("fail", fail, stream.shuffle())
    running = await run_to_end(topology)
    assert running.dead_letters == ()


class FailsBy(Bolt[int, None]):
    """Fails its input with this; notes what is refused, and acks it then, if it is to."""

    def __init__(self, *arguments: object, acks: bool = False, **options: object) -> None:
        self.arguments, self.options, self.acks = arguments, options, acks
        self.refused: list[str] = []

    def execute(self, tup: Tuple[int], out: Any) -> None:
        """Fail it."""
        try:
            out.fail(tup, *self.arguments, **self.options)
        except TypeError as error:
            self.refused.append(str(error))
            if not self.acks:
                raise
            out.ack(tup)


WRONG = [
    (("no",), {"exception": "disk full"}, "exception='disk full', which is no exception"),
    (("no",), {"exception": OSError}, "exception=<class 'OSError'>, which is no exception"),
    ((OSError("disk"),), {}, "reason=OSError('disk'), which is no text; an exception is given as exception="),
    ((None,), {}, "reason=None, which is no text"),
]


@pytest.mark.parametrize(("arguments", "named", "said"), WRONG)
@pytest.mark.parametrize("options", [{}, {"executor": "thread"}, {"concurrency": 2}])
@pytest.mark.parametrize("acks", [True, False])
async def test_a_failure_without_a_cause_is_refused_at_the_call(
    arguments: Any, named: Any, said: str, options: dict[str, Any], *, acks: bool
) -> None:
    """By name; the input is open still: it may be acked, and fails by that error if nobody catches it (B4)."""
    bolt = FailsBy(*arguments, acks=acks, **named)
    topology = Topology("fails", max_attempts=1)
    topology.bolt("bolt", lambda: bolt, topology.spout("spout", [1]).shuffle(), **options)
    running = await run_to_end(topology)
    (refused,) = bolt.refused
    assert refused.startswith(f"a failure in bolt[0] has {said}")
    assert [str(letter.failure.exception) for letter in running.dead_letters] == ([] if acks else [refused])


@pytest.mark.parametrize(("arguments", "named", "said"), WRONG)
async def test_so_it_is_from_another_thread(arguments: Any, named: Any, said: str) -> None:
    """Where it is called, as many never look at the future."""

    class InThread(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Any) -> None:
            with pytest.raises(TypeError, match=re.escape(said)):
                await asyncio.to_thread(out.fail_threadsafe, tup, *arguments, **named)
            out.ack(tup)

    topology = Topology("fails")
    topology.bolt("bolt", InThread, topology.spout("spout", [1]).shuffle())
    assert (await run_to_end(topology)).statistics().components["spout"].acked == 1


@pytest.mark.parametrize(
    ("failure", "history", "said"),
    [
        ("no", (), "dead_letter of spout[0] was given 'no', which is no Failure"),
        (OSError("disk"), (), "was given OSError('disk'), which is no Failure"),
        (FailureKind.FAILED, (), "which is no Failure"),
        (Failure(FailureKind.FAILED), ("no",), "was given 'no', which is no Failure"),
    ],
)
async def test_a_dead_letter_needs_a_failure(failure: Any, history: Any, said: str) -> None:
    """Refused at the call, and no letter is counted."""
    refused: list[str] = []

    class Gives(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            try:
                await out.dead_letter(1, failure, history=history)
            except TypeError as error:
                refused.append(str(error))
            raise EndOfStream

    topology = Topology("letters")
    topology.bolt("bolt", ignore, topology.spout("spout", Gives).shuffle())
    running = await run_to_end(topology)
    assert said in refused[0]
    assert running.statistics().components["spout"].dead_letters == 0


class Astray(BasicBolt[int, int]):
    """Emits on a stream that it has not declared."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Emit."""
        out.emit(tup.value, stream="nowhere")


async def test_a_stream_that_is_not_declared_is_refused() -> None:
    """The input fails, and the message names the streams that there are."""
    topology = Topology("astray", max_attempts=1)
    topology.bolt("bolt", Astray, topology.spout("spout", [1]).shuffle())
    running = await run_to_end(topology)
    (failure,) = running.failures()
    assert failure.kind == "InvalidEmit"
    assert "emits on stream 'nowhere', which it does not declare; it declares 'default'" in failure.error
