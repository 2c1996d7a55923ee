"""The OpenAPI document, made of the types of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec

from stormlet.ui.answers import Problem
from stormlet.ui.changes import Change
from stormlet.ui.controls import OPERATIONS
from stormlet.ui.page_api import PageLine
from stormlet.ui.snapshot import Snapshot
from stormlet.ui.storm.shapes import (
    ClusterSummary,
    ComponentPage,
    Node,
    Operation,
    SpoutLag,
    TopologyMetrics,
    TopologyPage,
    TopologySummary,
)
from stormlet.ui.views.graph import Graph
from stormlet.ui.views.trees import Trees
from stormlet.ui.views.view import KINDS
from stormlet.ui.windows import STORMS_ALL, WINDOWS


class Path(msgspec.Struct, frozen=True):
    """One address, and its answer."""

    path: str
    summary: str
    type: Any
    query: tuple[str, ...] = ()
    method: str = "get"


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """True if every topology takes messages, and there is one."""

    ready: bool


class Healthy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """True, as it answers."""

    healthy: bool


TOPOLOGY: Final = "/api/v1/topology/{id}"
PATHS: Final = (
    Path("/healthz", "The process answers", Healthy),
    Path("/ready", "Every topology takes messages; 503 if not", Ready),
    Path("/api/v1/cluster/summary", "This process", ClusterSummary),
    Path("/api/v1/topology/summary", "All topologies", TopologySummary),
    Path(TOPOLOGY, "One topology", TopologyPage, ("window", "sys")),
    Path(f"{TOPOLOGY}/component/{{component}}", "One component", ComponentPage, ("window",)),
    Path(f"{TOPOLOGY}/visualization", "Components with what they subscribe to", dict[str, Node], ("window",)),
    Path(f"{TOPOLOGY}/metrics", "The numbers of all components by stream", TopologyMetrics, ("window",)),
    Path(f"{TOPOLOGY}/lag", "How far spouts are behind their brokers", list[SpoutLag]),
    *(
        Path(f"{TOPOLOGY}/{name}", f"{name.capitalize()} a topology", Operation, method="post")
        for name in OPERATIONS
    ),
    Path(f"{TOPOLOGY}/dead-letters/{{number}}/replay", "Emit a dead letter again", Operation, method="post"),
    Path("/api/v1/pages", "All topologies, for the page's choice", list[PageLine]),
    Path("/api/v1/pages/{id}/graph", "The places of components and subscriptions", Graph),
    Path("/api/v1/pages/{id}/trees", "Messages that are pending for longest, with their timelines", Trees),
    Path(
        "/api/v1/pages/{id}/changes",
        "The values of a page that have changed since a revision",
        Change,
        ("since", "view", "component", "window"),
    ),
    Path("/api/v1/snapshot.json", "All that the page shows, for stormlet view", Snapshot),
)
QUERIES: Final[dict[str, dict[str, Any]]] = {
    "window": {
        "description": "Seconds, or a name; since the start by default",
        "schema": {
            "enum": [STORMS_ALL, *(str(each) for each in WINDOWS.values() if each is not None), *WINDOWS]
        },
    },
    "sys": {"description": "With the ackers, as __acker", "schema": {"enum": ["true", "false"]}},
    "since": {
        "description": "The revision of the last answer; all values without it",
        "schema": {"type": "string"},
    },
    "view": {"description": "The page", "schema": {"enum": list(KINDS)}},
    "component": {"description": "The component of the view component", "schema": {"type": "string"}},
}


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    schemas, parts = msgspec.json.schema_components(
        [each.type for each in PATHS] + [Problem], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for path, schema in zip(PATHS, schemas, strict=False):
        paths.setdefault(path.path, {})[path.method] = _operation(path, schema, schemas[-1])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "stormlet",
            "version": version("stormlet"),
            "description": "Running topologies, in the names and shapes of Storm's UI as far as Storm has them.",
        },
        "servers": [{"url": "../.."}],
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(path: Path, schema: dict[str, Any], problem: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": path.summary,
        "parameters": [
            *_in_path(path.path),
            *({"name": each, "in": "query", **QUERIES[each]} for each in path.query),
        ],
        "responses": {"200": _response("The answer", schema), "default": _response("What is wrong", problem)},
    }


def _in_path(path: str) -> Sequence[dict[str, Any]]:
    names = [each[1:-1] for each in path.split("/") if each.startswith("{")]
    return [
        {
            "name": each,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if each == "number" else "string"},
        }
        for each in names
    ]


def _response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
