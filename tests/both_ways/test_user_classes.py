"""Classes of users are what Python makes of them, whether the engine that calls them is compiled or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    CustomGrouping,
    EndOfStream,
    ReliableSpout,
    Spout,
    SpoutCollector,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.helpers import run_to_end

N = TypeVar("N", int, float)


class Slotted(Bolt[int, int]):
    __slots__ = ("factor",)

    def __init__(self) -> None:
        self.factor = 2

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(self.factor * tup.value, anchors=tup)
        out.ack(tup)


class WithProperties(BasicBolt[int, int]):
    @property
    def factor(self) -> int:
        return 2

    @cached_property
    def doubled(self) -> Callable[[int], int]:
        return lambda number: self.factor * number

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(self.doubled(tup.value))


@dataclass
class Data(Bolt[int, int]):
    factor: int = 2
    seen: list[int] = field(default_factory=list)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.seen.append(tup.value)
        out.emit(self.factor * self.seen[-1], anchors=tup)
        out.ack(tup)


class Twice(BasicBolt[N, N], Generic[N]):
    def execute(self, tup: Tuple[N], out: Collector[N]) -> None:
        out.emit(tup.value + tup.value)


class Integers(Twice[int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        super().execute(tup, out)


class Asynchronous(Bolt[int, int]):
    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(2 * tup.value, anchors=tup)
        out.ack(tup)


class Batched(BatchBolt[int, int]):
    size = 2

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        for tup in tups:
            out.emit(2 * tup.value)


class MadeByMetaclass(type):
    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        made.factor = 2
        return made


class Made(BasicBolt[int, int], metaclass=MadeByMetaclass):
    factor: int

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(self.factor * tup.value)


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "kind",
    [Slotted, WithProperties, Data, Twice, Integers, Asynchronous, Batched, Made],
    ids=lambda kind: kind.__name__,
)
async def test_bolts(kind: type[Bolt[int, int]]) -> None:
    """Slots, properties, dataclasses, generic classes, coroutines, batches and metaclasses."""
    doubled: list[int] = []
    topology = Topology("numbers")
    twice = topology.bolt("twice", kind, topology.spout("numbers", range(4)).shuffle(), outputs=int)
    topology.bolt("doubled", doubled.append, twice.shuffle())
    running = await run_to_end(topology)
    assert doubled == [0, 2, 4, 6]
    assert running.statistics().components["numbers"].acked == 4


class SlottedSpout(Spout[int]):
    __slots__ = ("acked", "next")

    def __init__(self) -> None:
        self.next = 0

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 3:
            raise EndOfStream
        out.emit(self.next, message_id=self.next)
        self.next += 1


@dataclass
class DataSpout(ReliableSpout[int]):
    left: list[int] = field(default_factory=lambda: [2, 1, 0])

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        out.emit(self.left.pop(), message_id=object())


class AsynchronousSpout(SlottedSpout):
    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        super().next_tuple(out)


class GenericSpout(Spout[N], Generic[N]):
    numbers: Sequence[N] = ()

    def next_tuple(self, out: SpoutCollector[N]) -> None:
        out.emit_many(self.numbers, message_ids=self.numbers)
        raise EndOfStream


class IntegerSpout(GenericSpout[int]):
    @property
    def numbers(self) -> Sequence[int]:  # type: ignore[override]
        return range(3)


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "kind", [SlottedSpout, DataSpout, AsynchronousSpout, IntegerSpout], ids=lambda kind: kind.__name__
)
async def test_spouts(kind: type[Spout[int]]) -> None:
    """Slots, dataclasses, coroutines, generic classes and properties."""
    seen: list[int] = []
    topology = Topology("numbers")
    topology.bolt("seen", seen.append, topology.spout("numbers", kind, outputs=int).shuffle())
    await run_to_end(topology)
    assert seen == [0, 1, 2]


class Declared(CustomGrouping):
    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        return self.targets


class Alike:
    __slots__ = ("targets",)

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        return self.targets


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", [Declared, Alike])
async def test_groupings(kind: type[CustomGrouping]) -> None:
    """Subclasses of the protocol, and objects that merely have its methods."""
    seen: list[int] = []
    topology = Topology("numbers")
    topology.bolt("seen", seen.append, topology.spout("numbers", range(2)).custom(kind()), parallelism=2)
    await run_to_end(topology)
    assert sorted(seen) == [0, 0, 1, 1]


class Name(str):
    """A name of a stream."""

    __slots__ = ()


class Naming(Spout[str]):
    """Emits one value on a stream that it names in its own way."""

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        out.emit("spout", message_id=1, stream=Name("named"))
        raise EndOfStream


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [Naming, [To("spout", stream=Name("named"))]])
async def test_stream_names_may_be_of_a_subclass_of_str(source: Any) -> None:
    """In what sources and bolts emit, and in what functions return."""
    got = list[str]()

    def name(value: str) -> To[str]:
        return To(value + ", function", stream=Name("named"))

    class Naming(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.emit(tup.value + ", bolt", stream=Name("named"))

    topology = Topology("named")
    stream = topology.spout("source", source, outputs={"named": str}).named("named")
    for component, logic in {"function": name, "bolt": Naming}.items():
        stream = topology.bolt(component, logic, stream.shuffle(), outputs={"named": str}).named("named")
    topology.bolt("last", got.append, stream.shuffle())
    await run_to_end(topology)
    assert got == ["spout, function, bolt"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("stream", ["unknown", 5, None, b"default"])
async def test_a_value_for_no_stream_is_not_passed_over(stream: Any) -> None:
    """The run crashes and says so; it does not end without it."""
    topology = Topology("lost")
    source = topology.spout("source", [To("lost", stream=stream), To("next")])
    topology.bolt("last", print, source.shuffle())
    with pytest.raises(TopologyCrashed, match="does not declare"):
        await run_to_end(topology)
