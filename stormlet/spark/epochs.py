"""What the source and the exactly-once sinks of one run agree on: which attempt at which epoch counts, and what it
has brought.

An epoch is a fixed range of the source's rows. Its rows are emitted until an attempt fails nowhere; what the sinks
have kept of that attempt is then written as a whole, and what earlier attempts have brought is forgotten.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stormlet.errors import InvalidTopology, NotExactlyOnce, SparkFailed

if TYPE_CHECKING:
    from pyarrow import Table

logger = logging.getLogger(__name__)

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a write that failed is tried again, each time."""


@dataclass(frozen=True, slots=True)
class SourceKey:
    """What tells the epochs of one source from those of others, in every process."""

    name: str
    """Begins with a letter, so that Spark reads it as text."""
    cut: str = ""
    """How the source is cut into epochs, if that could be done in another way."""

    def __str__(self) -> str:
        return f"{self.name}-{self.cut}" if self.cut else self.name


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one epoch."""

    epoch: int | None
    """None before the first epoch."""
    number: int
    """From 1."""


class EpochTarget(Protocol):
    """Where one sink writes to."""

    @property
    def destination(self) -> str:
        """The place, in words, the same in every process."""
        ...

    async def check(self, source: SourceKey) -> None:
        """Raises :class:`~stormlet.errors.InvalidTopology` if the epochs of this source cannot be written here."""
        ...

    async def write(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """Have these rows, and no others, stand for this epoch. Raises :class:`~stormlet.errors.SparkFailed`."""
        ...


class Epochs:
    """Shared by the tasks of one run, as ``context.shared.one(Epochs)``, on the loop's thread alone."""

    def __init__(self) -> None:
        self.attempt = Attempt(None, 0)
        """The one that is under way."""
        self.spoilt = False
        """Whether something has reached a sink that belongs to no epoch: the run is crashing, and what is kept must
        not be written any more."""
        self._targets: dict[str, EpochTarget] = {}
        self._kept: dict[str, list[Table]] = {}

    def register(self, component: str, target: EpochTarget) -> None:
        """A sink will keep rows; its tasks share a target, and the last one's is used.

        Raises :class:`~stormlet.errors.InvalidTopology` if another sink writes to the same place.
        """
        for other, its in self._targets.items():
            if other != component and its.destination == target.destination:
                raise InvalidTopology(
                    f"bolts {other!r} and {component!r} both write exactly once to {target.destination}, and would "
                    f"replace each other's rows; give each a path of its own, or let one bolt consume both streams"
                )
        self._targets[component] = target

    @property
    def destinations(self) -> tuple[str, ...]:
        """Where the sinks write to."""
        return tuple(sorted(target.destination for target in self._targets.values()))

    async def check(self, source: SourceKey) -> None:
        """Raises :class:`~stormlet.errors.InvalidTopology` if a sink cannot write the epochs of this source."""
        for target in self._targets.values():
            await target.check(source)

    def begin(self, epoch: int) -> int:
        """Begin the next attempt at an epoch and return its number, from 1; forget what the last one brought."""
        self.attempt = Attempt(epoch, self.attempt.number + 1 if epoch == self.attempt.epoch else 1)
        self._kept.clear()
        return self.attempt.number

    def keep(self, component: str, table: Table) -> None:
        """Keep rows of the attempt that is under way."""
        self._kept.setdefault(component, []).append(table)

    async def commit(self, source: SourceKey) -> None:
        """Write what the attempt has brought, in each sink as a whole, and nothing where it brought nothing.

        A write that fails is tried again with growing pauses; nothing that is kept is lost by that. Raises
        :class:`~stormlet.errors.SparkFailed` if it does not help, and :class:`~stormlet.errors.NotExactlyOnce` if
        what is kept is not all that has come.
        """
        if self.spoilt:
            raise NotExactlyOnce(f"epoch {self.attempt.epoch} is not written, as a sink has refused a row")
        for component in self._targets:
            await self._write(component, source)

    async def _write(self, component: str, source: SourceKey) -> None:
        epoch, tables = self.attempt.epoch, self._kept.get(component, ())
        assert epoch is not None, "an epoch was begun"
        for pause in PAUSES:
            try:
                return await self._targets[component].write(source, epoch, tables)
            except SparkFailed as error:
                logger.warning("%s: epoch %d is written again in %g s: %s", component, epoch, pause, error)
                await asyncio.sleep(pause)
        return await self._targets[component].write(source, epoch, tables)
