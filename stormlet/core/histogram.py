"""Histograms of seconds, small and fast enough to be always on.

A bucket is the sixteenth part of an octave, which is at most 6.3 % wide, so that a quantile is at most that much too
large. The buckets lie the same in every histogram: two can be added, and the difference of an earlier and a later one
is what came between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil, frexp, ldexp
from typing import TYPE_CHECKING, Final

from stormlet.core.directives import is_extension

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # a function of C: the declarations beside this file have it
    bound_above: Callable[[float], float]

FIRST_BOUND: Final = 2.0**-24
"""The upper bound of the first bucket, which has all that is shorter: 60 ns."""
LAST_BOUND: Final = 2.0**22
"""The upper bound of the last one, which has all that is longer, too: 48 days."""


@dataclass(repr=False)
class Histogram:
    """A distribution of times in log buckets. Equal to another one that has as many times in each bucket."""

    # A dict, as a task uses few of the 737 buckets: to copy and to add those of hundreds of tasks takes milliseconds.
    counts: dict[float, int] = field(default_factory=dict[float, int])
    """The number of times in each bucket that is in use, by its upper bound in seconds."""
    total: float = field(default=0.0, compare=False)
    """The sum of the times in seconds, which is exact."""

    def add(self, seconds: float, count: int = 1) -> None:
        """Add a time, as often as ``count`` says."""
        # Numbers as such: compiled, they cost nothing, and the names above would cost most of the call.
        if seconds < 5.9604644775390625e-08:  # a clock that was set back counts as one that stood still
            bound = 5.9604644775390625e-08
        elif seconds >= 4194304.0:
            bound = 4194304.0
        else:
            bound = bound_above(seconds) if cython.compiled else _bound_above(seconds)  # noqa: F821
        self.counts[bound] = self.counts.get(bound, 0) + count
        self.total += seconds * count

    def copy(self) -> Histogram:
        """Return another one with the same times."""
        return Histogram(self.counts.copy(), self.total)

    @property
    def count(self) -> int:
        """The number of times in it."""
        return sum(self.counts.values())

    @property
    def largest(self) -> float | None:
        """The upper bound of the highest bucket in use, in seconds; None if nothing was added."""
        return max(self.counts, default=None)

    @property
    def mean(self) -> float | None:
        """The mean in seconds, which is exact; None if nothing was added."""
        return self.total / self.count if self.counts else None

    def quantile(self, q: float) -> float | None:
        """Return the upper bound, in seconds, of the bucket of the quantile ``q``: 0.99 gives a time that 99 % do not
        exceed; None if nothing was added.

        Raises :class:`ValueError` for a ``q`` that is not from 0 to 1.
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"a quantile is a number from 0 to 1, not {q!r}")
        wanted, seen = max(1, ceil(q * self.count)), 0
        for bound, count in self.buckets():
            seen += count
            if seen >= wanted:
                return bound
        return None

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Iterate over the buckets in use: the upper bound of each in seconds, and its count; in ascending order."""
        return iter(sorted(self.counts.items()))

    def __add__(self, other: Histogram) -> Histogram:
        counts = self.counts.copy()
        for bound, count in other.counts.items():
            counts[bound] = counts.get(bound, 0) + count
        return Histogram(counts, self.total + other.total)

    def __sub__(self, earlier: Histogram) -> Histogram:
        """The times that have come since an earlier copy. Raises :class:`ValueError` for any other histogram."""
        counts = self.counts.copy()
        for bound, count in earlier.counts.items():
            counts[bound] = counts.get(bound, 0) - count
            if counts[bound] < 0:
                raise ValueError("only an earlier copy of a histogram can be taken from it")
            if not counts[bound]:
                del counts[bound]
        return Histogram(counts, max(0.0, self.total - earlier.total) if counts else 0.0)

    def __repr__(self) -> str:
        if not self.counts:
            return "Histogram()"
        parts = ", ".join(f"{name} {self.quantile(q):.3g} s" for name, q in (("p50", 0.5), ("p99", 0.99)))
        return f"<Histogram of {self.count}: {parts}, largest {self.largest:.3g} s>"


def _bound_above(seconds: float) -> float:
    """Return the upper bound of the bucket of a time; what ``bound_above`` does in C."""
    fraction, octave = frexp(seconds)
    # The fraction is from 0.5 to 1; a time that is a bound itself belongs to the bucket that begins there.
    return ldexp(int(fraction * 32.0) + 1.0, octave - 5)


def merged(one: Histogram | None, other: Histogram | None) -> Histogram | None:
    """Return the sum of two, of which any may be missing."""
    if one is None:
        return other
    return one if other is None else one + other
