"""A bolt that keeps what it is given."""

from __future__ import annotations

from typing import Generic, TypeVar

from stormlet.core.tuples import Tuple
from stormlet.model.components import BasicBolt, Collector

T = TypeVar("T")


class CollectingBolt(Generic[T]):
    """The logic of a bolt: ``topology.bolt("seen", seen, counts.shuffle())`` acks each input and keeps it, in
    the order of execution, those of all tasks together."""

    def __init__(self) -> None:
        self.tuples: list[Tuple[T]] = []
        """Every input."""

    @property
    def values(self) -> list[T]:
        """The value of every input."""
        return [each.value for each in self.tuples]

    def __call__(self) -> BasicBolt[T, None]:
        """A bolt for one task."""
        return _Keeps(self.tuples)


class _Keeps(BasicBolt[T, None]):
    def __init__(self, tuples: list[Tuple[T]]) -> None:
        self._tuples = tuples

    def execute(self, tup: Tuple[T], out: Collector[None]) -> None:
        self._tuples.append(tup)
