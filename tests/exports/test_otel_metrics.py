"""Metrics for OpenTelemetry, as a reader of its SDK collects them."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from stormlet import Topology
from stormlet.exports import look
from stormlet.exports.opentelemetry import TopologyMetrics, metrics
from tests.cast import same
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    assert data is not None
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "stormlet"
    return {metric.name: metric for metric in scope.metrics}


async def metrics_of_a_run(count: int) -> dict[str, Any]:
    topology, reader = Topology("metrics"), InMemoryMetricReader()
    topology.bolt("first", same, topology.spout("spout", range(count)).shuffle())
    running = await run_to_end(topology)
    TopologyMetrics(running, meter_provider=MeterProvider([reader]))
    return collected(reader)


def value(metric: Any, component: str) -> float:
    (point,) = (
        each
        for each in metric.data.data_points
        if each.attributes["stormlet.component"] == component
        and each.attributes["stormlet.topology"] == "metrics"
    )
    return float(point.value)


async def test_counters_and_gauges_have_their_units() -> None:
    """Counters are monotonic sums, gauges are none; both are those of the statistics."""
    found = await metrics_of_a_run(5)
    executed, tasks = found["stormlet.executed.tuples"], found["stormlet.tasks"]
    assert (executed.unit, executed.data.is_monotonic, value(executed, "first")) == ("{tuple}", True, 5)
    assert (tasks.unit, hasattr(tasks.data, "is_monotonic"), value(tasks, "first")) == ("1", False, 1)
    assert found["stormlet.task.seconds"].unit == "s"


async def test_one_look_serves_all_instruments(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many instruments are asked, the statistics are taken once."""
    looks: list[object] = []
    take = look.Look.take
    monkeypatch.setattr(metrics, "FRESH", 60.0)
    monkeypatch.setattr(look.Look, "take", lambda self: looks.append(self) or take(self))
    await metrics_of_a_run(1)
    assert len(looks) == 1
