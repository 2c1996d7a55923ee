"""The dashboard of Grafana, by the names of the metrics and a parser of Prometheus's queries."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import promql_parser
import pytest

from stormlet.exports.families import Kind
from stormlet.exports.grafana import WIDTH, dashboard
from stormlet.exports.metrics import METRICS

PANELS: list[dict[str, Any]] = dashboard()["panels"]
ENDINGS = ("_bucket", "_sum", "_count")


def exported() -> dict[str, set[str]]:
    """The labels of each series, by its name."""
    found: dict[str, set[str]] = {}
    for metric in METRICS:
        labels = {"topology", *metric.labels}
        if metric.kind is Kind.HISTOGRAM:
            found.update({metric.full_name + ending: labels | {"le"} for ending in ENDINGS})
        else:
            found[metric.full_name] = labels
    return found


def queries() -> Iterator[tuple[str, str]]:
    """The queries and their legends, with times in place of Grafana's own."""
    for panel in PANELS:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "1m"), target["legendFormat"]


@pytest.mark.parametrize(("query", "legend"), list(queries()))
def test_queries_are_of_metrics_that_there_are(query: str, legend: str) -> None:
    """Each query can be parsed; its metrics exist, and have the labels that it and its legend name."""
    promql_parser.parse(query)
    there = exported()
    names = re.findall(r"stormlet_\w+", query)
    assert set(names) <= there.keys()
    labels = set.intersection(*(there[name] for name in names))
    grouped = [
        name.strip() for group in re.findall(r"by \(([^)]*)\)", query) for name in group.split(",") if name
    ]
    matched = [name for group in re.findall(r"\{([^}]*)\}", query) for name in re.findall(r"(\w+)=", group)]
    assert {*grouped, *matched, *re.findall(r"\{\{(\w+)\}\}", legend)} <= labels


def test_panels_stand_beside_each_other() -> None:
    """Each has its own number and place, within the width, and says what it shows."""
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] + place["w"] <= WIDTH for place in places)
    assert not any(overlap(one, other) for one, other in combinations(places, 2))
    assert all(panel["title"] and (panel["type"] == "row" or panel["description"]) for panel in PANELS)


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (beside or below)


def test_the_command_prints_the_dashboard() -> None:
    """What it prints is what Grafana imports."""
    command = [sys.executable, "-m", "stormlet.exports.grafana"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == dashboard()
