"""The rows of tables: a component, a task, a stream, an error."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from stormlet.model.description import BoltSpec
from stormlet.report.failures import RepeatedFailure
from stormlet.ui.storm.shapes import (
    BoltRow,
    ComponentError,
    ComponentStatsRow,
    ExecutorStats,
    InputStats,
    SpoutRow,
)
from stormlet.ui.storm.words import in_url, milliseconds, pretty
from stormlet.ui.watched import Reading, Span, Watched
from stormlet.ui.windows import ALL, WINDOWS, storms_name


def capacity(span: Span) -> str:
    """The part of the window in which its busiest task was in user code: Storm's measure of what needs more tasks."""
    return f"{span.figures.capacity or 0.0:.3f}"


def spout_row(watched: Watched, id: str, span: Span) -> SpoutRow:
    """A spout."""
    return SpoutRow(
        spout_id=id,
        encoded_spout_id=in_url(id),
        complete_latency=milliseconds(span.complete),
        **_common(watched, id, span),
    )


def bolt_row(watched: Watched, id: str, span: Span) -> BoltRow:
    """A bolt, or the ackers."""
    return BoltRow(
        bolt_id=id,
        encoded_bolt_id=in_url(id),
        capacity=capacity(span),
        execute_latency=milliseconds(span.execute),
        executed=span.count("executed"),
        process_latency=milliseconds(span.process),
        **_common(watched, id, span),
    )


def _common(watched: Watched, id: str, span: Span) -> dict[str, Any]:
    last = next((each for each in reversed(watched.running.failures()) if each.component == id), None)
    error = None if last is None else error_of(watched, last)
    return {
        "executors": len(watched.tasks(id)),
        "tasks": len(watched.tasks(id)),
        "emitted": span.count("emitted"),
        "transferred": span.count("transferred"),
        "acked": span.count("acked"),
        "failed": span.count("failed"),
        "last_error": "" if last is None else last.error,
        "error_time": None if error is None else error.error_time,
        "error_lapsed_secs": None if error is None else error.error_lapsed_secs,
    }


def error_of(watched: Watched, failure: RepeatedFailure) -> ComponentError:
    """A kind of failures."""
    when = watched.when(failure.at)
    lapsed = max(0, int((datetime.now(UTC) - when).total_seconds()))
    text = "\n".join(each for each in (failure.error, failure.traceback) if each)
    return ComponentError(text, int(when.timestamp()), lapsed, failure.count)


def window_row(watched: Watched, id: str, window: str) -> ComponentStatsRow:
    """A component in a window."""
    span = watched.reading(window).component(id)
    return ComponentStatsRow(
        window_pretty=window_words(window),
        window=storms_name(window),
        emitted=span.count("emitted"),
        transferred=span.count("transferred"),
        acked=span.count("acked"),
        failed=span.count("failed"),
        **_by_kind(watched, id, span),
    )


def _by_kind(watched: Watched, id: str, span: Span) -> dict[str, Any]:
    if watched.is_spout(id):
        return {"complete_latency": milliseconds(span.complete)}
    return {
        "capacity": capacity(span),
        "execute_latency": milliseconds(span.execute),
        "executed": span.count("executed"),
        "process_latency": milliseconds(span.process),
    }


def window_words(window: str) -> str:
    """``10m 0s``, ``All time``."""
    seconds = WINDOWS[window]
    return "All time" if seconds is None or window == ALL else pretty(seconds)


def executor_rows(watched: Watched, id: str, reading: Reading) -> Sequence[ExecutorStats]:
    """The tasks of a component."""
    return [
        ExecutorStats(
            id=f"[{task}-{task}]",
            uptime=pretty(watched.uptime),
            uptime_seconds=int(watched.uptime),
            emitted=span.count("emitted"),
            transferred=span.count("transferred"),
            acked=span.count("acked"),
            failed=span.count("failed"),
            **_by_kind(watched, id, span),
        )
        for task, span in reading.tasks(id).items()
    ]


def input_rows(bolt: BoltSpec, span: Span) -> list[InputStats]:
    """The subscriptions of a bolt."""
    alone = len(bolt.inputs) == 1
    return [
        InputStats(
            component=each.source.component,
            encoded_component_id=in_url(each.source.component),
            stream=each.source.stream,
            execute_latency=milliseconds(span.execute) if alone else None,
            process_latency=milliseconds(span.process) if alone else None,
            executed=span.count("executed") if alone else None,
            acked=span.count("acked") if alone else None,
            failed=span.count("failed") if alone else None,
        )
        for each in bolt.inputs
    ]
