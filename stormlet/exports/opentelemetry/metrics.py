"""Metrics of topologies as observable instruments of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from math import inf
from time import monotonic
from typing import Final, cast

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter

from stormlet.core.histogram import Histogram
from stormlet.exports.families import PREFIX, Family, Kind, Metric
from stormlet.exports.look import Looks
from stormlet.runtime.run.handle import Running

FRESH: Final = 0.5
"""Seconds for which one look serves: each instrument is asked by itself."""


class TopologyMetrics:
    """The metrics of running topologies, as a reader of the SDK asks for them::

        async with topology.run() as running:
            TopologyMetrics(running)

    The names are those for Prometheus with dots, such as ``stormlet.executed.tuples``, and units in units. There are no
    observable histograms: of times there are the number and the sum, ``stormlet.execute.count`` and
    ``stormlet.execute.time``. Instruments cannot be taken back, so that a service makes one object, to which topologies
    are added. It is to be made on their loop.
    """

    def __init__(
        self, *runs: Running, by_task: bool = False, meter_provider: MeterProvider | None = None
    ) -> None:
        self._looks = Looks(runs, by_task=by_task)
        self.add = self._looks.add
        self.remove = self._looks.remove
        self._families: Mapping[str, Family] = {}
        self._taken = -inf
        meter = get_meter("stormlet", version("stormlet"), meter_provider)
        for metric in self._looks.metrics:
            if metric.kind is Kind.HISTOGRAM:
                name, about = _dotted(metric.name.removesuffix("_seconds")), metric.about
                self._observe(meter.create_observable_counter, f"{name}.time", "s", about, metric, _total)
                self._observe(meter.create_observable_counter, f"{name}.count", "1", about, metric, _count)
            else:
                is_counter = metric.kind is Kind.COUNTER
                make = meter.create_observable_counter if is_counter else meter.create_observable_gauge
                self._observe(make, _dotted(metric.name), _unit(metric), metric.about, metric, _number)

    def _observe(
        self,
        make: Callable[..., object],
        name: str,
        unit: str,
        about: str,
        metric: Metric,
        value: Callable[[object], float],
    ) -> None:
        def observed(options: CallbackOptions) -> Iterable[Observation]:
            names = ("stormlet.topology", *(f"stormlet.{label}" for label in metric.labels))
            for labels, measured in self._family(metric.name).samples:
                yield Observation(value(measured), dict(zip(names, labels, strict=True)))

        make(name, callbacks=[observed], unit=unit, description=about)

    def _family(self, name: str) -> Family:
        if monotonic() - self._taken >= FRESH:
            self._families = {family.metric.name: family for family in self._looks.families()}
            self._taken = monotonic()
        return self._families[name]


def _dotted(name: str) -> str:
    return f"{PREFIX}.{name.replace('_', '.')}"


UNITS: Final = {
    "tuples": "{tuple}",
    "messages": "{message}",
    "values": "{value}",
    "seconds": "s",
    "bytes": "By",
}


def _unit(metric: Metric) -> str:
    return UNITS.get(metric.name.rpartition("_")[2], "1")


def _number(value: object) -> float:
    return cast("float", value)


def _total(value: object) -> float:
    return cast("Histogram", value).total


def _count(value: object) -> float:
    return cast("Histogram", value).count
