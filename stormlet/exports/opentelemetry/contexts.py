"""Contexts of OpenTelemetry: the span that is current in a message's context variables, and the one it is to have."""

from __future__ import annotations

from contextvars import Context as Variables

from opentelemetry import context as api
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from stormlet.core.traceparent import TRACEPARENT

_PROPAGATOR = TraceContextTextMapPropagator()


def parent_in(variables: Variables) -> SpanContext | None:
    """Return the span that a message continues: that of the ``traceparent`` it came with, or the one that is current
    where it was emitted; None if there is none."""
    traceparent = variables.get(TRACEPARENT)
    if traceparent:
        carried = _PROPAGATOR.extract({"traceparent": traceparent}, Context())
        span = get_current_span(carried)
    else:
        span = variables.run(get_current_span)
    found = span.get_span_context()
    return found if found.is_valid else None


def with_current(variables: Variables, span: Span) -> Variables:
    """Return a copy of context variables in which a span is current, so that those of user code become its children."""
    copied = variables.copy()
    copied.run(_make_current, span)
    return copied


def _make_current(span: Span) -> None:
    TRACEPARENT.set("")  # which has been continued
    api.attach(set_span_in_context(span))
