"""What is measured: a function, its size, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias

Figures: TypeAlias = dict[str, float]
"""Figure -> value, each under a name that :data:`stormlet.bench.units.UNITS` has."""

Kind: TypeAlias = Literal["limit", "own", "peer", "spark"]


class WrongResult(Exception):
    """A workload has lost or doubled something: what it took means nothing."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing that is measured."""

    name: str
    label: str
    """What it is, in the words of a table."""
    measure: Callable[[int], Figures]
    """Does so much, and says what it took. Raises :class:`WrongResult` if the result is not right."""
    size: int
    """How much it does at a scale of 1: messages, sentences, rows."""
    kind: Kind = "own"
    needs: str = ""
    """The module that must be installed."""

    @property
    def available(self) -> bool:
        """Whether what it needs is installed; nothing is imported for it."""
        return not self.needs or find_spec(self.needs) is not None


def expect(found: object, expected: object, what: str) -> None:
    """Raises :class:`WrongResult` if they differ."""
    if found != expected:
        raise WrongResult(f"{what}: {found!r:.200} instead of {expected!r:.200}")
