"""The numbers of components, tasks and subscriptions, from the readings of a run."""

from __future__ import annotations

from collections.abc import Mapping

from stormlet.model.plan import ACKER
from stormlet.report.health import Health
from stormlet.report.statistics import Statistics
from stormlet.ui.views.graph import edge_id
from stormlet.ui.views.moods import mood_of
from stormlet.ui.views.numbers import EdgeNumbers, Numbers, rounded
from stormlet.ui.watched import Reading, Span, Watched


def component_rows(watched: Watched, reading: Reading, health: Health) -> Mapping[str, Numbers]:
    """Return the numbers of all components, by id."""
    restarting = {each.rpartition("[")[0] for each in health.restarting}
    lost = {name.rpartition("[")[0] for name, each in health.connections.items() if not each.is_ready}
    return {
        id: _row(watched, id, str(id), watched.tasks(id), reading.component(id), restarting=id in restarting,
                 lost=id in lost, fill=watched.fill(id), lag=reading.now.components[id].lag)
        for id in watched.components
    }  # fmt: skip


def task_rows(watched: Watched, id: str, reading: Reading, health: Health) -> Mapping[int, Numbers]:
    """Return the numbers of the tasks of a component."""
    return {
        task: _row(watched, id, name, 1, span, restarting=name in health.restarting,
                   lost=name in health.connections and not health.connections[name].is_ready,
                   fill=watched.fill_of(id, span.now.queued))
        for (task, span), name in zip(reading.tasks(id).items(), watched.task_names(id), strict=True)
    }  # fmt: skip


def _row(
    watched: Watched, id: str, name: str, tasks: int, span: Span, *,
    restarting: bool, lost: bool, fill: float | None, lag: int | None = None,
) -> Numbers:  # fmt: skip
    kind = "spout" if watched.is_spout(id) else "acker" if id == ACKER else "bolt"
    now = span.now
    rate = span.rate("emitted" if kind == "spout" else "executed")
    failed_rate = span.rate("failed") + span.rate("errors")
    return Numbers(
        id=name,
        kind=kind,
        tasks=tasks,
        mood=mood_of(restarting=restarting, lost=lost, failed_rate=failed_rate, rate=rate, fill=fill,
                     capacity=None, blocked=None),
        rate=rounded(rate) or 0.0,
        failed_rate=rounded(failed_rate) or 0.0,
        emitted=span.count("emitted"),
        transferred=span.count("transferred"),
        executed=span.count("executed"),
        acked=span.count("acked"),
        failed=span.count("failed"),
        dead_letters=span.count("dead_letters"),
        restarts=now.restarts,
        errors=span.count("errors"),
        pending=now.pending,
        queued=now.queued,
        fill=rounded(fill),
        execute_mean=rounded(span.execute_latency),
        complete_mean=rounded(span.complete_latency),
        lag=lag,
    )  # fmt: skip


def edge_rows(watched: Watched, statistics: Statistics) -> Mapping[str, EdgeNumbers]:
    """Return the numbers of all subscriptions, by the name of each in the graph."""
    return {
        edge_id(each.source, each.target, each.label): EdgeNumbers(
            queued=statistics.components[each.target].queued, fill=rounded(watched.fill(each.target))
        )
        for each in watched.drawing.edges
    }
