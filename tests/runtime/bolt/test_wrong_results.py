"""What user code returns that nobody can have meant: bolts where values are due, and values that nothing takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Committer,
    DeadLetter,
    Epoch,
    InvalidTopology,
    Spout,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.model.components import BoltBase
from stormlet.state.memory import MemoryStore
from tests.cast import Counting
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time


class Add(BasicBolt[int, int]):
    """Adds what it was made with."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value + self.number)


async def make_later(number: Any = 1) -> Any:
    return Add(number)


# Factories that are called with a value.


@pytest.mark.parametrize(
    ("factory", "made"),
    [
        (lambda number=1: Add(number), "a bolt, Add"),
        (lambda cls=Add: Add, "a bolt, Add"),
        (lambda number=1: Counting(), "a spout, Counting"),
        (lambda number=1: Counting, "a spout, Counting"),
        (make_later, "a bolt, Add"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"concurrency": 2}, {"on_error": "restart"}])
async def test_a_factory_that_is_called_with_a_value_ends_the_run(
    factory: Callable[..., object], made: str, options: dict[str, Any]
) -> None:
    """At the first value, by name and with the way out; there are no restarts, replays or dead letters before."""
    buried: list[DeadLetter] = []
    topology = Topology("factories")
    topology.bolt("add", factory, topology.spout("numbers", [1, 2, 3]).shuffle(), **options)
    with pytest.raises(TopologyCrashed, match=rf"'add' has a parameter .* makes {made}.*partial") as raised:
        await run_to_end(topology, dead_letters=buried.append)
    assert isinstance(raised.value.__cause__, InvalidTopology)
    assert (raised.value.restarts, buried, now()) == ("", [], 0.0)


async def test_the_ways_out_lead_out() -> None:
    """What the message proposes works; and a function of the value may have a parameter with a default."""
    seen: list[int] = []
    topology = Topology("factories")
    numbers = topology.spout("numbers", [1])
    for logic in (partial(Add, 1), lambda: Add(1), lambda *, number=1: Add(number), lambda v, n=1: v + n):
        added = topology.bolt(f"add {len(topology.describe().bolts)}", logic, numbers.shuffle())
        topology.bolt(f"see {added.component}", seen.append, added.shuffle())
    await run_to_end(topology)
    assert seen == [2, 2, 2, 2]


async def test_a_factory_of_spouts_may_have_defaults() -> None:
    """It is called without a value in any case."""
    spouts: list[Counting] = []

    def make(made: list[Counting] = spouts) -> Counting:
        made.append(Counting())
        return made[-1]

    topology = Topology("factories")
    topology.bolt("add", Add, topology.spout("numbers", make).shuffle())
    assert (await run_to_end(topology)).statistics().components["numbers"].acked == 3
    assert len(spouts) == 1


@pytest.mark.parametrize(
    ("logic", "way_out"),
    [
        (lambda: Add, "pass Add itself"),
        (lambda: Counting, "pass Counting itself"),
        (lambda: Counting(), "topology.spout"),
        (lambda: 5, "a function of the value takes one argument"),
    ],
)
async def test_a_factory_that_makes_no_bolt_is_told_what_to_do(logic: Any, way_out: str) -> None:
    """The start is refused, and the message says what to pass instead."""
    topology = Topology("factories")
    topology.bolt("add", logic, topology.spout("numbers", [1]).shuffle())
    with pytest.raises(InvalidTopology, match=rf"bolt 'add': the factory made .*{way_out}"):
        await run_to_end(topology)


@pytest.mark.parametrize(
    ("source", "way_out"),
    [
        (lambda count=3: Counting, "pass Counting itself"),
        (lambda count=3: Add(count), "topology.bolt"),
        (lambda: iter([1]), "let the function yield its values"),
    ],
)
async def test_a_factory_that_makes_no_spout_is_told_what_to_do(source: Any, way_out: str) -> None:
    """The same."""
    topology = Topology("factories")
    topology.bolt("add", Add, topology.spout("numbers", source).shuffle())
    with pytest.raises(InvalidTopology, match=rf"spout 'numbers': the factory made .*{way_out}"):
        await run_to_end(topology)


# Results that nothing takes.


class Returns(BasicBolt[int, int]):
    """Returns what it should emit."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
        return tup.value * 10


class ReturnsLater(BasicBolt[int, int]):
    """The same after a second."""

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
        await asyncio.sleep(1)
        return tup.value * 10


class ReturnsByHand(Bolt[int, int]):
    """The same, and forgets its input."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
        return tup.value * 10


class ReturnsBatch(BatchBolt[int, int]):
    """The same with batches of one."""

    size = 1

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> Any:
        return tups[0].value * 10


class ReturnsBatchLater(BatchBolt[int, int]):
    """The same after a second."""

    size = 1

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> Any:
        await asyncio.sleep(1)
        return tups[0].value * 10


@pytest.mark.parametrize("bolt", [Returns, ReturnsLater, ReturnsByHand, ReturnsBatch, ReturnsBatchLater])
@pytest.mark.parametrize("options", [{}, {"concurrency": 2}])
async def test_what_execute_returns_is_refused(
    bolt: type[BoltBase[int, int]], options: dict[str, Any]
) -> None:
    """Its input fails, by name and with the way out, and the bolt goes on with the next one (law B4)."""
    topology = Topology("returns", max_attempts=1)
    topology.bolt("ten", bolt, topology.spout("numbers", [1, 2]).shuffle(), **options)
    running = await run_to_end(topology)
    reasons = sorted(str(letter.failure.exception) for letter in running.dead_letters)
    method = "execute_batch" if issubclass(bolt, BatchBolt) else "execute"
    said = "which nothing takes: emit it with out.emit(...), and return nothing"
    assert reasons == [f"{method} of ten[0] returned {number}, {said}" for number in (10, 20)]


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
async def test_what_is_returned_after_an_ack_is_counted_as_an_error() -> None:
    """The first outcome stands (law L15), and the log says what is wrong."""

    class AcksFirst(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
            out.ack(tup)
            return tup.value

    topology = Topology("returns")
    topology.bolt("acks", AcksFirst, topology.spout("numbers", [1]).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].acked == 1
    assert running.statistics().components["acks"].errors == 1
    (failure,) = running.failures()
    assert (failure.kind, failure.what) == ("TypeError", "execute")


def returning(base: type[Any], method: str, *, later: bool) -> type[Any]:
    """A class of bolts, one method of which returns 5."""

    def give(self: object, out: object) -> int:
        return 5

    async def give_later(self: object, out: object) -> int:
        return 5

    def take(self: object, given: object, out: object) -> None:
        """Hold it."""

    needed = "execute_batch" if base is BatchBolt else "execute"
    return type("Returning", (base,), {needed: take, method: give_later if later else give})


@pytest.mark.parametrize("base", [Bolt, BatchBolt])
@pytest.mark.parametrize("method", ["tick", "flush", "finish"])
@pytest.mark.parametrize("later", [False, True])
async def test_what_other_methods_return_is_refused(base: type[Any], method: str, *, later: bool) -> None:
    """Those that are there to emit: no tuple answers for it, so the task dies of it (law C5)."""
    topology = Topology("returns", max_restarts=0, message_timeout=None)
    spout = topology.spout("numbers", [1], max_spout_pending=1)
    tick = {"tick": 1.0} if method == "tick" else {}
    topology.bolt("five", returning(base, method, later=later), spout.shuffle(), **tick)
    with pytest.raises(TopologyCrashed, match=rf"{method} of five\[0\] returned 5, which nothing"):
        async with topology.run():
            await asyncio.sleep(10)


class ReturnsNext(Spout[int]):
    """Returns what it should emit."""

    def next_tuple(self, out: SpoutCollector[int]) -> Any:
        return 5


class ReturnsNextLater(Spout[int]):
    """The same."""

    async def next_tuple(self, out: SpoutCollector[int]) -> Any:
        return 5


@pytest.mark.parametrize("spout", [ReturnsNext, ReturnsNextLater])
async def test_what_next_tuple_returns_is_refused(spout: type[Spout[int]]) -> None:
    """It would be asked for ever and emit nothing; it dies of that as of any exception of its own (law C5)."""
    topology = Topology("returns", max_restarts=1)
    topology.bolt("add", Add, topology.spout("numbers", spout).shuffle())
    said = r"next_tuple of numbers\[0\] returned 5, which nothing .* after 1 restart"
    with pytest.raises(TopologyCrashed, match=said):
        await run_to_end(topology)


async def test_what_callbacks_return_is_nobodys_affair() -> None:
    """``prepare``, ``open``, ``ack``, ``close`` and their like emit nothing: many end with a call that returns
    something."""

    class Chatty(Counting):
        def open(self, context: object, out: object) -> Any:
            return 1

        def ack(self, message_id: object) -> Any:
            return 1

        def activate(self) -> Any:
            return 1

        def close(self) -> Any:
            return 1

    class ChattyBolt(Add):
        def prepare(self, context: object) -> Any:
            return 1

        def cleanup(self) -> Any:
            return 1

    topology = Topology("returns")
    topology.bolt("add", ChattyBolt, topology.spout("numbers", Chatty).shuffle())
    running = await run_to_end(topology)
    assert (running.statistics().components["numbers"].acked, running.failures()) == (3, ())


async def test_a_class_is_a_value_like_others() -> None:
    """Unless it is one of bolts or spouts."""
    seen: list[object] = []
    topology = Topology("classes")
    kinds = topology.bolt("kind", type, topology.spout("values", [1, "a"]).shuffle())
    topology.bolt("see", seen.append, kinds.shuffle())
    await run_to_end(topology)
    assert seen == [int, str]


async def test_what_a_commit_returns_is_refused() -> None:
    """A future of a thread, for example: nobody would hear of its error (law X9)."""

    class CommitsElsewhere(Committer[int]):
        def commit(self, epoch: Epoch, rows: Sequence[int]) -> Any:
            return "a future"

    topology = Topology("returns", max_restarts=0)
    topology.bolt("write", CommitsElsewhere, topology.spout("numbers", [1]).shuffle())
    with pytest.raises(
        TopologyCrashed,
        match=r"commit of write\[0\] returned 'a future', which nothing takes: let it return nothing, when the rows",
    ):
        await run_to_end(topology, state=MemoryStore())
