"""The numbers of components, tasks and subscriptions, from the figures of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormlet.drawing.drawing import Edge
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.plan import ACKER
from stormlet.report.figures import EdgeFigures, Percentiles
from stormlet.report.health import Health
from stormlet.report.statistics import TaskStatistics
from stormlet.report.steps import Steps, each_of
from stormlet.ui.views.graph import edge_id
from stormlet.ui.views.moods import mood_of
from stormlet.ui.views.numbers import EdgeNumbers, Numbers, rounded
from stormlet.ui.watched import Reading, Span, Watched


def component_rows(watched: Watched, reading: Reading, health: Health) -> Steps[Mapping[str, Numbers]]:
    """Return the numbers of all components, by id, with a step for each."""
    restarting = {each.rpartition("[")[0] for each in health.restarting}
    lost = {name.rpartition("[")[0] for name, each in health.connections.items() if not each.is_ready}
    return each_of(
        ((id, reading.component(id)) for id in watched.components),
        lambda id, span: _row(
            watched,
            id,
            span,
            reading.now.components[id],
            id=id,
            tasks=len(watched.tasks(id)),
            restarting=id in restarting,
            lost=id in lost,
            queued=[each.figures.queued for each in reading.tasks(id).values()],
            lag=reading.figures.components[id].lag,
        ),
    )


def task_rows(watched: Watched, id: str, reading: Reading, health: Health) -> Mapping[int, Numbers]:
    """Return the numbers of the tasks of a component."""
    spans = reading.tasks(id)
    return {
        plan.task: _row(
            watched,
            id,
            spans[plan.task],
            reading.now.components[id],
            id=plan.name,
            tasks=1,
            restarting=plan.name in health.restarting,
            lost=plan.name in health.connections and not health.connections[plan.name].is_ready,
            queued=[spans[plan.task].figures.queued],
            lag=None,
        )
        for plan in watched.tasks(id)
        if plan.task in spans
    }


def _row(
    watched: Watched,
    component: str,
    span: Span,
    now: TaskStatistics,
    *,
    id: str,
    tasks: int,
    restarting: bool,
    lost: bool,
    queued: list[int],
    lag: int | None,
) -> Numbers:
    figures = span.figures
    kind = "spout" if watched.is_spout(component) else "acker" if component == ACKER else "bolt"
    rate = span.rate("emitted" if kind == "spout" else "executed")
    # Those of a bolt that fail no tuple count too; of the ackers, that a tree has failed is no fault.
    failed_rate = 0.0 if kind == "acker" else span.rate("failed") + figures.errors / max(span.seconds, 1e-9)
    fill = watched.fill(component, queued or [0])
    shares = figures.shares if now.uptime else None
    return Numbers(
        id=id,
        kind=kind,
        tasks=tasks,
        mood=mood_of(
            restarting=restarting,
            lost=lost,
            failed_rate=failed_rate,
            rate=rate,
            fill=fill,
            capacity=figures.capacity,
            blocked=None if shares is None else shares.blocked,
        ),
        rate=rounded(rate) or 0.0,
        acked_rate=rounded(span.rate("acked")) or 0.0,
        failed_rate=rounded(failed_rate) or 0.0,
        emitted=span.count("emitted"),
        transferred=span.count("transferred"),
        executed=span.count("executed"),
        acked=span.count("acked"),
        failed=span.count("failed"),
        dead_letters=span.count("dead_letters"),
        restarts=figures.restarts,
        errors=figures.errors,
        pending=figures.pending,
        queued=figures.queued,
        fill=rounded(fill),
        capacity=rounded(figures.capacity) if shares is not None else None,
        executing=None if shares is None else rounded(shares.executing),
        awaiting=None if shares is None else rounded(shares.awaiting),
        blocked=None if shares is None else rounded(shares.blocked),
        limited=None if shares is None else rounded(shares.limited),
        idle=None if shares is None else rounded(shares.idle),
        lag=lag,
        **_times("execute", figures.execute),
        **_times("process", figures.process),
        **_times("complete", figures.complete),
        complete_samples=None if figures.complete is None else figures.complete.count,
    )


def _times(name: str, times: Percentiles | None) -> dict[str, Any]:
    if times is None:
        return {}
    return {f"{name}_{each}": rounded(getattr(times, each)) for each in ("mean", "p50", "p90", "p99", "max")}


def edge_rows(watched: Watched, reading: Reading, rows: Mapping[str, Numbers]) -> Mapping[str, EdgeNumbers]:
    """Return the numbers of all subscriptions, by the name of each in the picture; none where there is no picture.
    ``rows`` are those of the components."""
    if not watched.has_picture:
        return {}
    found = {
        (each.producer, each.stream, each.consumer, each.grouping): each for each in reading.figures.edges
    }
    return {
        edge_id(each.source, each.target, each.label): _edge(found.get(_key(each)), rows[each.target])
        for each in watched.drawing.edges
    }


def _key(edge: Edge) -> tuple[str, str, str, str]:
    return (edge.source, edge.stream or DEFAULT_STREAM, edge.target, edge.grouping.partition(" ")[0])


def _edge(figures: EdgeFigures | None, consumer: Numbers) -> EdgeNumbers:
    if figures is None:
        return EdgeNumbers(fill=consumer.fill)
    return EdgeNumbers(
        rate=rounded(figures.rate),
        queued=figures.queued,
        capacity=figures.capacity,
        fill=rounded(min(figures.fullest, 1.0)),
        waited=rounded(figures.waited),
    )
