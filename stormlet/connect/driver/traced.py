"""Messages that were delivered with a header ``traceparent``, where messages are traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from itertools import groupby
from typing import cast

from stormlet.connect.driver.held import Held
from stormlet.core.traceparent import TRACEPARENT

HEADER = "traceparent"
LONGEST = 100
"""Characters; it has 55, and whoever publishes may write anything."""


def traceparent_of(headers: Mapping[str, str | bytes]) -> str:
    """Return the header; empty if there is none that could be one."""
    found = cast("object", headers.get(HEADER, ""))
    text = found.decode("ascii", "replace") if isinstance(found, bytes) else found
    return text if isinstance(text, str) and len(text) <= LONGEST else ""


def emit_traced(messages: Sequence[Held], emit: Callable[[Sequence[Held]], None]) -> None:
    """Emit messages in their order, each in a context that has its ``traceparent`` (law B10)."""
    for traceparent, group in groupby(messages, key=lambda message: message.traceparent):
        if traceparent:
            copy_context().run(_emit, traceparent, list(group), emit)
        else:
            emit(list(group))


def _emit(traceparent: str, group: Sequence[Held], emit: Callable[[Sequence[Held]], None]) -> None:
    TRACEPARENT.set(traceparent)
    emit(group)
