"""Prometheus: a collector for prometheus-client (``stormlet[prometheus]``), and its text for a page of the host's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from math import inf
from typing import Any, TypeAlias, cast

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from stormlet.core.histogram import Histogram
from stormlet.exports.families import PREFIX, Family, Kind, Labels, Value, cumulative
from stormlet.exports.look import Looks
from stormlet.runtime.run.handle import Running

__all__ = ["TopologyCollector", "exposition", "metrics_app"]


class TopologyCollector(Collector):
    """Collects the metrics of running topologies whenever a registry is asked for them::

        async with topology.run() as running:
            REGISTRY.register(TopologyCollector(running))

    Nothing is done for it in between. With ``by_task`` there is a label for each task, instead of the sum over a
    component. It is to be made on the loop of its topologies, and may be asked from any thread. A topology that is over
    stays as it was last, until it is removed. A registry takes one collector, to which topologies can be added.
    """

    def __init__(self, *runs: Running, by_task: bool = False) -> None:
        self._looks = Looks(runs, by_task=by_task)
        self.add = self._looks.add
        self.remove = self._looks.remove

    def describe(self) -> Iterator[Metric]:
        """The names of all metrics, for the registry to refuse a second collector."""
        for metric in self._looks.metrics:
            yield _family(Family(metric, []))

    def collect(self) -> Iterator[Metric]:
        """All metrics, with what is measured now."""
        yield from map(_family, self._looks.families())


def _family(family: Family) -> Metric:
    metric = family.metric
    name, labels = f"{PREFIX}_{metric.name}", ("topology", *metric.labels)
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, metric.about, labels=labels)
        for values, value in family.samples:
            _add(histogram, values, cast("Histogram", value))
        return histogram
    make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    numbers = make(name, metric.about, labels=labels)
    for values, value in family.samples:
        numbers.add_metric(values, _number(value))
    return numbers


def _number(value: Value) -> float:
    return float(cast("float", value))


def _add(family: HistogramMetricFamily, labels: Labels, times: Histogram) -> None:
    buckets = [("+Inf" if bound == inf else repr(bound), float(count)) for bound, count in cumulative(times)]
    family.add_metric(labels, buckets, sum_value=times.total)


def exposition(collector: Collector, accept: str = "") -> tuple[bytes, str]:
    """Return the text of a collector or a registry, and its content type, in the format that the header ``Accept`` asks
    for. On the loop it is better called by ``asyncio.to_thread``: of a large topology it takes a while."""
    encode, content_type = choose_encoder(accept)
    return encode(collector), content_type


Message: TypeAlias = MutableMapping[str, Any]


def metrics_app(collector: Collector) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application that gives the text of a collector or a registry, to be mounted as ``/metrics``. The
    text is put together in a thread."""

    async def app(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        headers = dict[bytes, bytes](scope["headers"])
        accept = headers.get(b"accept", b"").decode("latin-1")
        body, content_type = await asyncio.to_thread(exposition, collector, accept)
        named = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": named})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return app
