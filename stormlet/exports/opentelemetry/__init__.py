"""OpenTelemetry: traces of some messages, and metrics (``stormlet[otel]``).

Only the API is used. The SDK, its exporters and its providers are the host's; without them nothing is recorded.
"""

from __future__ import annotations

from stormlet.exports.opentelemetry.metrics import TopologyMetrics
from stormlet.exports.opentelemetry.traces import Traces

__all__ = ["TopologyMetrics", "Traces"]
