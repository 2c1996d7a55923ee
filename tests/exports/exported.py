"""What the SDK of OpenTelemetry has exported, and a look at its spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stormlet import Topology
from stormlet.exports.opentelemetry import Traces
from tests.cast import Forward, same
from tests.helpers import run_to_end

SECOND = 1_000_000_000


class Exported:
    """What was exported."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def traces(self, share: float = 1.0) -> Traces:
        return Traces(share, tracer_provider=self.provider)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def of(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        (span,) = self.all_of(name)
        return span

    def all_of(self, name: str) -> list[ReadableSpan]:
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("stormlet."): value for name, value in (span.attributes or {}).items()}


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / SECOND


def is_below(span: ReadableSpan, other: ReadableSpan) -> bool:
    assert span.context is not None
    assert other.context is not None
    return span.parent is not None and (span.parent.span_id, span.context.trace_id) == (
        other.context.span_id, other.context.trace_id,
    )  # fmt: skip


async def five_in_two_bolts(exported: Exported, options: dict[str, Any]) -> None:
    topology = Topology("kinds")
    stream = topology.bolt("first", Forward, topology.spout("spout", range(5)).shuffle(), **options)
    topology.bolt("second", same, stream.shuffle())
    await run_to_end(topology, traces=exported.traces())
    assert len(exported.all_of("first")) == len(exported.all_of("second")) == 5
    assert all(
        any(is_below(span, each) for each in exported.all_of("first")) for span in exported.all_of("second")
    )
