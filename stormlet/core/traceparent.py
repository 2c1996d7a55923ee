"""The ``traceparent`` that a message was delivered with (W3C trace context)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

TRACEPARENT: Final[ContextVar[str]] = ContextVar("stormlet.traceparent", default="")
"""Set in the context that a message is emitted in: its trace goes on, if messages are traced."""
