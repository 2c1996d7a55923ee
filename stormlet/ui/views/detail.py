"""The page of a component: its streams, errors and connections."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from stormlet.drawing.drawing import grouping_words, node_of
from stormlet.report.connections import Connection
from stormlet.report.failures import RepeatedFailure
from stormlet.ui.watched import Watched

MOST_FAILURES: Final = 50
"""Kinds of failures that are shown of one component."""


class FailureRow(msgspec.Struct, frozen=True):
    """A kind of failures."""

    component: str
    task: str
    what: str
    kind: str
    error: str
    place: str
    count: int
    last: datetime
    traceback: str
    value: str | None
    """The value that it last happened on; None where values are not shown."""


class InputRow(msgspec.Struct, frozen=True):
    """A subscription of a bolt."""

    component: str
    stream: str
    grouping: str


class Facts(msgspec.Struct, frozen=True):
    """The part of a component that does not change."""

    inputs: list[InputRow]
    streams: list[str]
    details: tuple[str, ...]


def failures_of(watched: Watched, component: str | None, *, values: bool) -> list[FailureRow]:
    """Return the last failures of a component, or of all, the latest first."""
    found = [each for each in watched.running.failures() if component in (None, each.component)]
    return [_failure(watched, each, values=values) for each in found[: -MOST_FAILURES - 1 : -1]]


def _failure(watched: Watched, failure: RepeatedFailure, *, values: bool) -> FailureRow:
    return FailureRow(
        failure.component,
        failure.task,
        failure.what,
        failure.kind,
        failure.error,
        failure.place,
        failure.count,
        watched.when(failure.at).replace(microsecond=0),
        failure.traceback,
        failure.value if values else None,
    )


def facts_of(watched: Watched, id: str) -> Facts:
    """Return what does not change of a component."""
    description = watched.running.plan.description
    spec = description.components.get(id)
    if spec is None:
        return Facts([], [], ("follow the trees of messages",))
    bolt = description.bolts.get(id)
    inputs = () if bolt is None else bolt.inputs
    details = node_of(spec).details
    return Facts(
        [
            InputRow(each.source.component, each.source.stream, grouping_words(each.grouping))
            for each in inputs
        ],
        list(spec.outputs),
        details,
    )


def connections_of(watched: Watched, id: str) -> dict[str, Connection]:
    """Return the connections of its tasks to their brokers, by the names of the tasks."""
    found = watched.statistics().components[id].connections or {}
    return {each.name: found[each.task] for each in watched.tasks(id) if each.task in found}
