"""Families of metrics: a name, a kind and a unit, and what was measured under which labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from stormlet.core.histogram import Histogram

PREFIX: Final = "stormlet"

Labels: TypeAlias = tuple[str, ...]
Value: TypeAlias = float | Histogram


class Kind(Enum):
    """The kinds of metrics, by Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(msgspec.Struct, frozen=True):
    """A metric that there is, whether anything was measured or not."""

    name: str
    """With its unit, and without the prefix and the ending of counters."""
    about: str
    kind: Kind
    labels: Labels
    """The names of its labels, after that of the topology."""

    @property
    def full_name(self) -> str:
        """The name by Prometheus's conventions."""
        return f"{PREFIX}_{self.name}{'_total' if self.kind is Kind.COUNTER else ''}"

    @property
    def is_time(self) -> bool:
        """True if it is in seconds."""
        return self.name.endswith("_seconds")


class Family(msgspec.Struct, frozen=True):
    """The measurements of one metric."""

    metric: Metric
    samples: list[tuple[Labels, Value]]
    """The values of the labels, that of the topology first, each with what was measured."""


BOUNDS: Final = tuple(2.0**power for power in range(-14, 7))
"""Upper bounds of the buckets that are exported, in seconds, from 61 µs to 64 s: each is one of a histogram's own, so
that the counts are exact."""


def cumulative(histogram: Histogram) -> Iterator[tuple[float, int]]:
    """Give the number of times up to each bound of :data:`BOUNDS`, and at last that of all, up to infinity."""
    buckets, seen = list(histogram.buckets()), 0
    for bound in BOUNDS:
        while buckets and buckets[0][0] <= bound:
            seen += buckets.pop(0)[1]
        yield bound, seen
    yield float("inf"), histogram.count


def grouped(metrics: Iterable[Metric], found: Iterable[tuple[Metric, Labels, Value]]) -> Sequence[Family]:
    """Return a family for each metric, those without samples too, in the order of the metrics."""
    families: Mapping[Metric, Family] = {metric: Family(metric, []) for metric in metrics}
    for metric, labels, value in found:
        families[metric].samples.append((labels, value))
    return list(families.values())
