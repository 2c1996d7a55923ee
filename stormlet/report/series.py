"""The charts of a run: a point for each step of an hour and of a day, in columns of fixed length."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from stormlet.report.figures import ComponentFigures, Figures

NAN: Final = math.nan


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one step; rates are per second. Of a spout, the messages that it has emitted count; of a bolt and
    the ackers, what they have executed; of the topology, the messages that were acked."""

    at: float
    """Seconds from the start of the run to the end of the step."""
    throughput: float
    failed: float
    pending: float
    """At the end of the step."""
    p50: float | None
    """Seconds: latency of ``execute``, or from the emit of a message to its ack; None if there was none."""
    p99: float | None


class Series:
    """The points of a topology and of each component, the last ``most`` of them."""

    COLUMNS = 5

    def __init__(self, most: int) -> None:
        self._most = most
        self._at = array("d")
        self._columns: dict[str, array[float]] = {}

    def add(self, at: float, points: Mapping[str, Sequence[float]]) -> None:
        """Add the points of a step, which :func:`points_of` has made."""
        self._at.append(at)
        for id, each in points.items():
            self._add(id, each)
        del self._at[: -self._most]

    def _add(self, name: str, values: Sequence[float]) -> None:
        column = self._columns.setdefault(name, array("f"))
        column.extend(values)
        del column[: -self._most * self.COLUMNS]

    def points(self, component: str = "") -> Sequence[Point]:
        """Return the points of a component, oldest first; without a name those of the topology. Raises
        :class:`KeyError` for one that there is not."""
        if not self._at:
            return ()
        return tuple(self._points(self._columns[component]))

    def _points(self, column: Sequence[float]) -> Iterator[Point]:
        for number, at in enumerate(self._at):
            throughput, failed, pending, p50, p99 = column[
                number * self.COLUMNS : (number + 1) * self.COLUMNS
            ]
            yield Point(
                at=at, throughput=throughput, failed=failed, pending=pending, p50=_known(p50), p99=_known(p99)
            )


def points_of(figures: Figures, spouts: Collection[str]) -> Mapping[str, Sequence[float]]:
    """Return the columns of each component, and of the topology below the empty name."""
    components = figures.components
    of_spouts = [each for id, each in components.items() if id in spouts]
    return {"": _of_topology(of_spouts), **{id: _of_component(each) for id, each in components.items()}}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _of_topology(spouts: Sequence[ComponentFigures]) -> Sequence[float]:
    times = [each.complete for each in spouts if each.complete is not None]
    # A percentile of several spouts together is not known from theirs; the largest is the safe one to show.
    p50, p99 = (max((getattr(each, name) for each in times), default=NAN) for name in ("p50", "p99"))
    acked, failed, pending = (
        sum(getattr(each, name) for each in spouts) for name in ("acked", "failed", "pending")
    )
    return acked, failed, pending, p50, p99


def _of_component(each: ComponentFigures) -> Sequence[float]:
    times = each.complete or each.execute
    p50, p99 = (NAN, NAN) if times is None else (times.p50, times.p99)
    return each.executed or each.emitted, each.failed, each.pending, p50, p99
