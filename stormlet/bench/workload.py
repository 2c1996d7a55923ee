"""A workload: a function, its size, what it needs, and the event loop that it runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Figures: TypeAlias = dict[str, float]
"""Figure -> value; the unit of each is in :data:`stormlet.bench.report.UNITS`, or in the report of ``benchmarks``."""

Kind: TypeAlias = Literal["limit", "own", "peer", "spark", "state", "watched"]

LoopName: TypeAlias = Literal["asyncio", "uvloop"]

LOOP: ContextVar[LoopName] = ContextVar("LOOP", default="asyncio")
"""The kind of loop that :func:`run` makes."""


class WrongResult(Exception):
    """A workload has lost or doubled something: its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing that is measured."""

    name: str
    label: str
    """Its row in a table."""
    measure: Callable[[int], Figures]
    """Does so much, and returns its figures. Raises :class:`WrongResult` if the result is not right."""
    size: int
    """The amount at a scale of 1: messages, sentences, rows."""
    kind: Kind = "own"
    needs: str = ""
    """The module that must be installed."""

    @property
    def available(self) -> bool:
        """True if the module that it needs is installed; nothing is imported for this."""
        return not self.needs or find_spec(self.needs) is not None


def expect(found: object, expected: object, what: str) -> None:
    """Raise :class:`WrongResult` if they differ."""
    if found != expected:
        raise WrongResult(f"{what}: {found!r:.200} instead of {expected!r:.200}")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run this coroutine on a new loop of the kind that was asked for."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of all values is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if LOOP.get() == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop
