"""The spans of one attempt at a message, and of the executions that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context as Variables
from time import time_ns
from typing import Any, cast

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, StatusCode, Tracer, set_span_in_context

from stormlet.core.outcomes import Failure
from stormlet.core.shortened import cut, shortened
from stormlet.core.tuples import FAILED, LOST, Lineage, Tuple
from stormlet.exports.opentelemetry.contexts import with_current
from stormlet.model.plan import TaskPlan
from stormlet.runtime.tracing import TracedRun
from stormlet.runtime.wire.collector import BoltCollector

NANOSECONDS = 1_000_000_000


class Spans:
    """Makes the spans of one run, with times by its own clock."""

    def __init__(self, run: TracedRun, tracer: Tracer) -> None:
        self.clock = run.clock
        self._run = run
        self._tracer = tracer
        self._zero = time_ns() - int(run.clock() * NANOSECONDS)

    def wall(self, time: float) -> int:
        """Return the nanoseconds since 1970 of a time by the run's clock."""
        return self._zero + int(time * NANOSECONDS)

    def begin(
        self,
        task: TaskPlan,
        stream: str,
        lineage: Lineage,
        parent: Context,
        now: float,
        links: Sequence[Link] = (),
        **more: str | float,
    ) -> Span:
        """Begin the span of an attempt or of an execution."""
        attributes = {
            "stormlet.topology": self._run.name,
            "stormlet.component": task.component,
            "stormlet.task": task.task,
            "stormlet.stream": stream,
            "stormlet.attempt": lineage.attempt,
            **{f"stormlet.{name}": value for name, value in more.items()},
        }
        return self._tracer.start_span(
            task.component, parent, attributes=attributes, links=links, start_time=self.wall(now)
        )

    def variables(self, lineage: Lineage) -> Variables:
        """Return the context variables of a lineage."""
        return self._run.context if lineage.context is None else lineage.context

    def lineage(self, lineage: Lineage, span: Span, edge: Edge) -> Lineage:
        """Return the lineage of what comes of a span."""
        variables = with_current(self.variables(lineage), span)
        return Lineage(lineage.attempt, lineage.origin, variables, (edge,))


class Attempt:
    """One attempt at a message."""

    def __init__(self, spans: Spans, span: Span, parent: Context | None) -> None:
        """``parent`` is the span that the message continues."""
        self.spans = spans
        self.parent_of_replays = below(span) if parent is None else parent
        self.over = False
        self._span = span
        self._executions: list[TracedExecution] = []

    def add(self, execution: TracedExecution) -> None:
        """An execution of what comes of it begins."""
        self._executions.append(execution)

    def settle(self, failure: Failure | None) -> None:
        """End all spans: it is acked, or has failed."""
        now = self.spans.wall(self.spans.clock())
        if failure is not None:
            reason = cut(str(failure))
            self._span.add_event("failed", {"stormlet.failure": failure.kind.name}, now)
            self._span.set_status(StatusCode.ERROR, reason)
        self._end(now)

    def leave_over(self) -> None:
        """End all spans: the topology has stopped before there was an outcome."""
        self._span.set_status(StatusCode.ERROR, "left over")
        self._end(self.spans.wall(self.spans.clock()))

    def _end(self, now: int) -> None:
        self.over = True
        for execution in self._executions:
            execution.end(now)
        self._executions.clear()
        self._span.end(now)


class Edge:
    """Deliveries of what a span has emitted (see :class:`~stormlet.runtime.tracing.TracedEdge`)."""

    __slots__ = ("attempt", "since", "span")

    def __init__(self, attempt: Attempt, span: Span, since: float | None) -> None:
        self.attempt = attempt
        self.span = span
        self.since = since
        """The time of the delivery, if it is known."""

    def execute(self, task: TaskPlan, tup: Tuple[Any]) -> TracedExecution:
        """The execution of such an input begins."""
        return TracedExecution(self, task, tup)


class TracedExecution:
    """An execution of an input that is traced (see :class:`~stormlet.runtime.tracing.Execution`)."""

    def __init__(self, edge: Edge, task: TaskPlan, tup: Tuple[Any]) -> None:
        self._attempt, self._spans, self._tup = edge.attempt, edge.attempt.spans, tup
        self._ended: int | None = None
        lineage, now = tup.lineage, self._spans.clock()
        edges = cast("tuple[Edge, ...]", lineage.trace)
        others = {
            each.span: Link(each.span.get_span_context()) for each in edges if each.span is not edge.span
        }
        waits = [now - each.since for each in edges if each.since is not None]
        # Where it was joined, it was delivered after the last of its inputs.
        wait = {"queue_wait": max(0.0, min(waits))} if waits else {}
        stream, parent = f"{tup.component}/{tup.stream}", below(edge.span)
        self._span = self._spans.begin(task, stream, lineage, parent, now, list(others.values()), **wait)
        tup.lineage = self._spans.lineage(lineage, self._span, Edge(self._attempt, self._span, None))
        self._attempt.add(self)

    def out(self, out: BoltCollector) -> BoltCollector:
        """Return a collector that notes when something is emitted."""
        return cast("BoltCollector", TracedOut(out, self))

    def emits(self, since: float | None) -> None:
        """Have what is emitted from now on be delivered at this time."""
        lineage = self._tup.lineage
        edge = Edge(self._attempt, self._span, since)
        self._tup.lineage = Lineage(lineage.attempt, lineage.origin, lineage.context, (edge,))

    def emits_at_once(self) -> None:
        """Have what is emitted next be delivered now."""
        self.emits(self._spans.clock())

    def over(self, error: BaseException | None, *, emits_now: bool = False) -> None:
        """The call has returned, or has raised this."""
        now = self._spans.clock()
        self._ended = self._spans.wall(now)
        if error is not None:
            _record(self._span, error, self._ended)
        self.emits(now if emits_now else None)  # at another time, if it holds its input
        if self._attempt.over:  # it has timed out meanwhile
            self.end(self._ended)

    def end(self, now: int) -> None:
        """End its span, at the time at which the call has returned."""
        if self._tup.state in (FAILED, LOST):
            self._span.set_status(StatusCode.ERROR)
        self._span.end(now if self._ended is None else self._ended)


class TracedOut:
    """The collector of one execution, which notes when something is emitted."""

    def __init__(self, out: BoltCollector, execution: TracedExecution) -> None:
        self._out = out
        self._execution = execution
        self.ack = out.ack
        self.fail = out.fail
        self.reset_timeout = out.reset_timeout
        self.emit_threadsafe = out.emit_threadsafe
        self.ack_threadsafe = out.ack_threadsafe
        self.fail_threadsafe = out.fail_threadsafe
        self.for_call = out.for_call
        self.threads = out.threads

    @property
    def default_anchors(self) -> Any:
        """The anchors of an emit that names none."""
        return self._out.default_anchors

    @default_anchors.setter
    def default_anchors(self, anchors: Any) -> None:
        self._out.default_anchors = anchors

    def emit(self, value: object, **options: Any) -> tuple[int, ...]:
        """See :meth:`stormlet.model.components.Collector.emit`."""
        self._execution.emits_at_once()
        return self._out.emit(value, **options)


def _record(span: Span, error: BaseException, now: int) -> None:
    try:
        span.record_exception(error, timestamp=now)
    except Exception:  # one that lets nobody look at it (law N1)
        said = {"exception.type": type(error).__qualname__, "exception.message": shortened(error)}
        span.add_event("exception", said, now)


def below(span: Span) -> Context:
    """Return a context in which this span is the current one, and nothing else."""
    return set_span_in_context(span, Context())
