"""Metrics for Prometheus, as the parsers of its client read them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from stormlet import Running, Topology
from stormlet.core.histogram import Histogram
from stormlet.exports.families import BOUNDS, cumulative
from stormlet.exports.metrics import METRICS
from stormlet.exports.prometheus import TopologyCollector, exposition, metrics_app
from tests.cast import Hold, Slow, raise_value_error, same
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def chain(name: str, *bolts: Any, count: int = 3, **options: Any) -> Topology:
    topology = Topology(name, **options)
    stream: Any = topology.spout("spout", range(count))
    for id, bolt in zip(("first", "second"), bolts, strict=False):
        stream = topology.bolt(id, bolt, stream.shuffle(), parallelism=2)
    return topology


def read(collector: Any) -> dict[str, Metric]:
    body, _ = exposition(collector)
    return {family.name: family for family in read_text(body.decode())}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """The only sample of this name that has these labels."""
    samples: Iterable[Any] = (sample for family in families.values() for sample in family.samples)
    (found,) = (each for each in samples if each.name == name and labels.items() <= each.labels.items())
    return float(found.value)


async def test_counts_are_those_of_the_statistics() -> None:
    """What a scrape says of each component is what ``statistics()`` says."""
    running = await run_to_end(chain("counted", same, same, count=5))
    families = read(TopologyCollector(running))
    for id, counted in running.statistics().components.items():
        labels = {"topology": "counted", "component": id}
        assert value(families, "stormlet_executed_tuples_total", **labels) == counted.executed
        assert value(families, "stormlet_acked_total", **labels) == counted.acked
        assert value(families, "stormlet_tasks", **labels) == len(counted.tasks or ())


async def test_failures_and_dead_letters_are_counted() -> None:
    """A message that is given up is one of the dead letters, after its attempts have failed."""
    running = await run_to_end(chain("failing", raise_value_error, count=1, max_attempts=2, replay_delay=0.1))
    families = read(TopologyCollector(running))
    assert value(families, "stormlet_dead_letters_total", component="spout") == 1
    assert value(families, "stormlet_replayed_messages_total", component="spout") == 1
    assert value(families, "stormlet_failed_total", component="spout") == 2


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_every_metric_has_its_name_and_its_help(accept: str) -> None:
    """Both formats are valid, and have a family for each metric, with labels that are bounded."""
    running = await run_to_end(chain("named", same))
    body, content_type = exposition(TopologyCollector(running), accept)
    parsed = list((read_openmetrics if accept else read_text)(body.decode()))
    assert content_type.startswith("application/openmetrics-text" if accept else "text/plain")
    assert [each.name for each in parsed] == [f"stormlet_{each.name}" for each in METRICS]
    assert all(each.documentation for each in parsed)
    names = {name for each in parsed for sample in each.samples for name in sample.labels}
    assert names <= {"topology", "component", "stream", "activity", "state", "le", "producer", "consumer"}


async def test_tasks_are_told_apart_only_if_asked_for() -> None:
    """With ``by_task`` each task has samples, whose sum is that of the component."""
    running = await run_to_end(chain("tasks", same, count=8))
    families = read(TopologyCollector(running, by_task=True))
    samples = [
        each for each in families["stormlet_executed_tuples"].samples if each.labels["component"] == "first"
    ]
    assert len({each.labels["task"] for each in samples}) == 2
    assert sum(each.value for each in samples) == 8


async def test_several_topologies_share_a_registry() -> None:
    """One collector has all topologies of a service, of which some begin later; a second one is refused."""
    registry = CollectorRegistry()
    async with chain("one", Hold, drain_timeout=1).run() as one, chain("two", same).run() as two:
        collector = TopologyCollector(one)
        registry.register(collector)
        collector.add(two)
        await asyncio.sleep(1)
        families = read(registry)
        assert value(families, "stormlet_pending", topology="one", component="spout") == 3
        assert value(families, "stormlet_pending", topology="two", component="spout") == 0
        collector.remove(one)
        assert {each.labels["topology"] for each in read(registry)["stormlet_pending"].samples} == {"two"}
        with pytest.raises(ValueError, match="Duplicated timeseries"):
            registry.register(TopologyCollector(two))


async def test_two_topologies_of_one_name_are_told_apart() -> None:
    """The second has a number until it goes: no two samples have a name and all labels in common."""
    one, two = await run_to_end(chain("twin", same)), await run_to_end(chain("twin", same, same))
    collector = TopologyCollector(one, two)
    body, _ = exposition(collector, OPENMETRICS)
    samples = [sample for each in read_openmetrics(body.decode()) for sample in each.samples]
    assert len({(each.name, *sorted(each.labels.items())) for each in samples}) == len(samples)
    assert {each.labels["topology"] for each in samples} == {"twin", "twin-2"}
    collector.add(two)  # once more: it is the same
    assert value(read(collector), "stormlet_tasks", topology="twin-2", component="second") == 2
    collector.remove(one)
    collector.add(one)
    assert value(read(collector), "stormlet_pending_messages", topology="twin") == 0


async def test_the_state_of_the_run_is_told() -> None:
    """Exactly one state is 1, and it is that of ``health()``."""
    states: list[set[str]] = []

    def note(running: Running) -> None:
        samples = read(TopologyCollector(running))["stormlet_run_state"].samples
        states.append({each.labels["state"] for each in samples if each.value})

    async with chain("states", same).run(active=False) as running:
        note(running)
        running.activate()
        note(running)
    note(running)
    assert states == [{"inactive"}, {"running"}, {"stopped"}]


def test_buckets_are_cumulative_and_exact() -> None:
    """Each bound has all times that are below it, the last one all there are."""
    times = Histogram()
    for seconds in (0.00001, 0.001, 0.24, 0.26, 3.0, 500.0):
        times.add(seconds)
    found = dict(cumulative(times))
    assert (found[2.0**-14], found[0.25], found[0.5], found[4.0], found[float("inf")]) == (1, 3, 4, 5, 6)
    assert len(BOUNDS) == 21


async def test_the_app_answers_as_prometheus_asks() -> None:
    """Mounted under ``/metrics``, it gives the format that is asked for."""
    running = await run_to_end(chain("asked", same))
    transport = httpx.ASGITransport(app=metrics_app(TopologyCollector(running)))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        plain = await client.get("/metrics")
        open_ = await client.get("/metrics", headers={"accept": OPENMETRICS})
    assert plain.headers["content-type"].startswith("text/plain")
    assert open_.text.endswith("# EOF\n")
    assert len(list(read_openmetrics(open_.text))) == len(list(read_text(plain.text)))


async def test_a_collector_is_made_on_the_loop() -> None:
    """In another thread it is refused: it would not know which loop it is about."""
    running = await run_to_end(chain("elsewhere", Slow))
    with pytest.raises(RuntimeError, match="no running event loop"):
        await asyncio.to_thread(TopologyCollector, running)
