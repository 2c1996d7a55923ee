from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import DynamicSource, FixedPartitionedSource
from bytewax.outputs import DynamicSink

X = TypeVar("X")
Y = TypeVar("Y")
V = TypeVar("V")
W = TypeVar("W")
S = TypeVar("S")

class StatefulBatchLogic(Generic[V, W, S]):
    def on_batch(self, values: list[V]) -> tuple[Iterable[W], bool]: ...
    def snapshot(self) -> S: ...

def input(
    step_id: str, flow: Dataflow, source: DynamicSource[X] | FixedPartitionedSource[X, Any]
) -> Stream[X]: ...
def output(step_id: str, up: Stream[X], sink: DynamicSink[X]) -> None: ...
def map(step_id: str, up: Stream[X], mapper: Callable[[X], Y]) -> Stream[Y]: ...
def flat_map(step_id: str, up: Stream[X], mapper: Callable[[X], Iterable[Y]]) -> Stream[Y]: ...
def stateful_batch(
    step_id: str,
    up: Stream[tuple[str, V]],
    builder: Callable[[S | None], StatefulBatchLogic[V, W, S]],
) -> Stream[tuple[str, W]]: ...
