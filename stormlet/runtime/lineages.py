"""What a message that is emitted now hands down to its tuples."""

from __future__ import annotations

from contextvars import Context, copy_context

from stormlet.core.tuples import PLAIN, Lineage


def lineage_now(topology: Context, origin: object, attempt: int) -> Lineage:
    """Its attempt, its origin, and context variables that are not the topology's (law B10)."""
    context = copy_context()
    if context == topology:
        return PLAIN if origin is None and attempt == 1 else Lineage(attempt, origin)
    return Lineage(attempt, origin, context)
