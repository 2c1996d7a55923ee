"""A dashboard of Grafana over the metrics for Prometheus: ``python -m stormlet.exports.grafana > stormlet.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

WIDTH: Final = 24
"""Columns of a dashboard."""
HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
HERE: Final = 'topology=~"$topology"'
CHOSEN: Final = f'{HERE},component=~"$component"'
TOPOLOGY: Final = "{{topology}}"
BY_COMPONENT: Final = "{{component}}"
TIME: Final = "stormlet_task_seconds_total"


class Panel(msgspec.Struct, frozen=True):
    """A panel: what it shows, each line with its legend."""

    title: str
    about: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    is_stacked: bool = False
    most: float | None = None
    """The end of its scale."""


def _rate(metric: str, *by: str, labels: str = CHOSEN) -> str:
    return f"sum by ({', '.join(by)}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def _quantile(metric: str, quantile: float) -> str:
    return f"histogram_quantile({quantile}, {_rate(f'{metric}_bucket', 'le', 'component')})"


def _latency(title: str, about: str, metric: str) -> Panel:
    queries = [(_quantile(metric, each), f"{{{{component}}}} p{each * 100:g}") for each in (0.5, 0.99)]
    return Panel(title, about, queries, "s")


def _throughput(title: str, about: str, metric: str) -> Panel:
    return Panel(title, about, [(_rate(metric, "component"), BY_COMPONENT)], "ops")


def _of_loop(metric: str) -> str:
    return _rate(f"stormlet_loop_{metric}_total", "topology", labels=HERE)


BY_EDGE: Final = "{{producer}} → {{consumer}}"

ROWS: Final[dict[str, Sequence[Panel]]] = {
    "Is it well?": [
        Panel(
            "State", "The stage of the run.", [(f"stormlet_run_state{{{HERE}}} == 1", "{{topology}}: {{state}}")],
            kind="stat", width=4,
        ),
        Panel(
            "Pending", "Messages of spouts without an outcome.",
            [(f"sum by (topology) (stormlet_pending_messages{{{HERE}}})", TOPOLOGY)],
            kind="stat", width=5,
        ),
        Panel(
            "Oldest tree", "The age of the message that has waited longest.",
            [(f"max by (topology) (stormlet_oldest_tree_age_seconds{{{HERE}}})", TOPOLOGY)], "s", "stat", 5,
        ),
        Panel(
            "Dead letters in the last hour", "Messages given up.",
            [(f"sum by (topology) (increase(stormlet_dead_letters_total{{{HERE}}}[1h]))", TOPOLOGY)],
            kind="stat", width=5,
        ),
        Panel(
            "Lag", "Messages that brokers have, and that are not settled.",
            [(f"sum by (topology) (stormlet_lag_messages{{{HERE}}})", TOPOLOGY)], kind="stat", width=5,
        ),
    ],
    "Work": [
        _throughput("Executed", "Inputs executed, a second.", "stormlet_executed_tuples_total"),
        _throughput("Acked", "Messages and inputs acked, a second.", "stormlet_acked_total"),
        _throughput("Failed", "Attempts and inputs failed, a second.", "stormlet_failed_total"),
        _latency("Complete latency", "From the emit of a message to its ack.", "stormlet_complete_seconds"),
        _latency("Execute latency", "Of one execution.", "stormlet_execute_seconds"),
        _latency("Process latency", "From an execution to the ack of its input.", "stormlet_process_seconds"),
    ],
    "What holds it up": [
        Panel(
            "Time of tasks", "What tasks of the chosen components do; blocked is a wait for room further on.",
            [(f"{_rate(TIME, 'activity')} / on () group_left () {_rate(TIME)}", "{{activity}}")],
            "percentunit", is_stacked=True, most=1,
        ),
        Panel(
            "Queues", "The fill of the fullest queue of each consumer.",
            [(f"max by (producer, consumer) (stormlet_edge_fill_ratio{{{HERE}}})", BY_EDGE)], "percentunit", most=1,
        ),
        Panel(
            "Waits for room", "The part of the time in which a producer waited.",
            [(_rate("stormlet_edge_waited_seconds_total", "producer", "consumer", labels=HERE), BY_EDGE)],
            "percentunit", most=1,
        ),
        Panel(
            "Event loop", "The part of the time in which it is busy, and that of the topology's own tasks.",
            [
                (f"{_of_loop('late_probes')} / {_of_loop('probes')}", "{{topology}} busy"),
                (_of_loop("own_seconds"), "{{topology}} own"),
            ],
            "percentunit", most=1,
        ),
        Panel(
            "Queued", "Tuples in queues.",
            [(f"sum by (component) (stormlet_queued_tuples{{{CHOSEN}}})", BY_COMPONENT)],
        ),
        Panel(
            "Restarts and errors", "Of tasks, and exceptions that failed no tuple; a second.",
            [
                (_rate("stormlet_restarts_total", "component"), "{{component}} restarts"),
                (_rate("stormlet_errors_total", "component"), "{{component}} errors"),
            ],
            "ops",
        ),
    ],
    "State": [
        Panel(
            "Age of the durable epoch", "Time since its commit.",
            [(f"stormlet_durable_epoch_age_seconds{{{HERE}}}", TOPOLOGY)], "s",
        ),
        Panel(
            "Size of states", "Of each state of a bolt, about.",
            [(f"stormlet_state_bytes{{{HERE}}}", "{{state}}")], "bytes",
        ),
        Panel(
            "Withheld", "Messages that wait for their epoch.",
            [(f"stormlet_withheld_messages{{{HERE}}}", TOPOLOGY)],
        ),
    ],
}  # fmt: skip


def dashboard() -> dict[str, Any]:
    """Return the dashboard, as Grafana imports it."""
    return {
        "uid": "stormlet",
        "title": "stormlet",
        "tags": ["stormlet"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}
    for name, within in (("topology", ""), ("component", f"{{{HERE}}}")):
        query = f"label_values(stormlet_tasks{within}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, top, WIDTH, 1), "panels": []}
        left, top = 0, top + 1
        for panel in panels:
            if left + panel.width > WIDTH:
                left, top = 0, top + HEIGHT
            number += 1
            yield _panel(number, panel, _place(left, top, panel.width, HEIGHT))
            left += panel.width
        top += HEIGHT


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 40} if panel.is_stacked else {}
    limits = {"min": 0} if panel.most is None else {"min": 0, "max": panel.most}
    options = {"textMode": "value_and_name"} if panel.kind == "stat" else {}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": custom, **limits}, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=2, ensure_ascii=False)
    print()
