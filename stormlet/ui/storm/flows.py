"""Everything that runs between components: visualization, metrics, lag."""

from __future__ import annotations

from collections.abc import Sequence

from stormlet.drawing.drawing import grouping_words
from stormlet.model.description import BoltSpec
from stormlet.model.plan import ACKER
from stormlet.report.connections import lag_by_place
from stormlet.ui.storm.components import outputs
from stormlet.ui.storm.rows import capacity, input_rows, window_words
from stormlet.ui.storm.shapes import (
    BoltMetrics,
    InputValue,
    Node,
    NodeInput,
    NodeStats,
    SpoutLag,
    SpoutMetrics,
    StreamValue,
    TopologyMetrics,
)
from stormlet.ui.storm.words import in_url, sanitized
from stormlet.ui.watched import Reading, Watched
from stormlet.ui.windows import storms_name


def visualization(watched: Watched, window: str) -> dict[str, Node]:
    """Return the components, with what they subscribe to."""
    reading = watched.reading(window)
    return {id: _node(watched, id, reading, window) for id in watched.components if id != ACKER}


def _node(watched: Watched, id: str, reading: Reading, window: str) -> Node:
    span, is_spout = reading.component(id), watched.is_spout(id)
    spec = watched.running.plan.description.components[id]
    latency = span.complete if is_spout else span.execute
    return Node(
        type="spout" if is_spout else "bolt",
        capacity=0.0 if is_spout else float(capacity(span)),
        latency=(latency or 0.0) * 1000,
        transferred=span.count("transferred"),
        stats=[
            NodeStats(
                "localhost",
                0,
                int(watched.uptime),
                {storms_name(window): {"default": each.count("transferred")}},
            )
            for each in reading.tasks(id).values()
        ],
        link=f"../../?topology={in_url(watched.id)}&component={in_url(id)}",
        inputs=_inputs(spec) if isinstance(spec, BoltSpec) else [],
    )


def _inputs(bolt: BoltSpec) -> list[NodeInput]:
    return [
        NodeInput(
            each.source.component,
            each.source.stream,
            sanitized(each.source.stream),
            grouping_words(each.grouping),
        )
        for each in bolt.inputs
    ]


def metrics(watched: Watched, window: str) -> TopologyMetrics:
    """Return the numbers of all components, by stream as far as they are known so."""
    reading = watched.reading(window)
    description = watched.running.plan.description
    return TopologyMetrics(
        window=storms_name(window),
        window_hint=window_words(window),
        spouts=[_spout(watched, id, reading) for id in description.spouts],
        bolts=[_bolt(watched, spec, reading) for spec in description.bolts.values()],
    )


def _spout(watched: Watched, id: str, reading: Reading) -> SpoutMetrics:
    span = reading.component(id)
    emitted, transferred = _streams(watched, id, reading)
    streams = [each.stream_id for each in emitted][:1]
    return SpoutMetrics(
        id=id,
        emitted=emitted,
        transferred=transferred,
        acked=[StreamValue(each, span.count("acked")) for each in streams],
        failed=[StreamValue(each, span.count("failed")) for each in streams],
        complete_ms_avg=[StreamValue(each, (span.complete or 0.0) * 1000) for each in streams],
    )


def _bolt(watched: Watched, spec: BoltSpec, reading: Reading) -> BoltMetrics:
    span = reading.component(spec.id)
    emitted, transferred = _streams(watched, spec.id, reading)
    rows = [each for each in input_rows(spec, span) if each.executed is not None]

    def values(value: float) -> list[InputValue]:
        return [InputValue(each.component, each.stream, value) for each in rows]

    return BoltMetrics(
        id=spec.id,
        emitted=emitted,
        transferred=transferred,
        acked=values(span.count("acked")),
        failed=values(span.count("failed")),
        process_ms_avg=values((span.process or 0.0) * 1000),
        executed=values(span.count("executed")),
        executed_ms_avg=values((span.execute or 0.0) * 1000),
    )


def _streams(watched: Watched, id: str, reading: Reading) -> tuple[list[StreamValue], list[StreamValue]]:
    rows = outputs(watched, id, reading)
    return (
        [StreamValue(each.stream, each.emitted) for each in rows],
        [StreamValue(each.stream, each.transferred) for each in rows],
    )


def lag(watched: Watched) -> Sequence[SpoutLag]:
    """Return how far each spout is behind its broker; those that do not know are left out."""
    found: list[SpoutLag] = []
    for id in watched.running.plan.description.spouts:
        connections = (watched.statistics().components[id].connections or {}).values()
        places = lag_by_place(connections)
        if places:
            scheme = next(iter(connections)).address.partition(":")[0].upper()
            found.append(SpoutLag(id, scheme, dict(places)))
    return found
