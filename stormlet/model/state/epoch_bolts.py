"""Bolts that work on whole epochs (law X5, X7)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, TypeVar

from stormlet.core.state.outgoing import Epoch
from stormlet.core.tuples import Tuple
from stormlet.model.components import BoltBase, Collector

T = TypeVar("T")
U = TypeVar("U")


class EpochBolt(BoltBase[T, U]):
    """A bolt that emits once it has all inputs of an epoch (Storm's batch bolts).

    ::

        class Sum(EpochBolt[Sale, int]):
            def __init__(self):
                self.cents = 0

            def execute(self, tup, out):
                self.cents += tup.value.cents

            def end_epoch(self, epoch, out):
                out.emit(self.cents)

    An instance works on one attempt at one epoch. For the next one another instance is made and prepared, so that what
    it gathers in its attributes is neither kept nor to be undone. Inputs are acked on return. An ``execute`` that
    raises spoils the attempt, as it may have changed the instance (law X6).
    """

    needs_acks: ClassVar[bool] = True

    def execute(self, tup: Tuple[T], out: Collector[U]) -> Awaitable[None] | None:
        """Process one input."""
        raise NotImplementedError(f"{type(self).__name__} must define execute(self, tup, out)")

    def end_epoch(self, epoch: Epoch, out: Collector[U]) -> Awaitable[None] | None:
        """Act on the end of the epoch, of which no more inputs come. It is called in each task, upstream first; what is
        emitted belongs to the epoch itself."""
