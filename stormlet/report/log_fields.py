"""The extra fields of log records: the topology, component, task and message that a record comes from."""

from __future__ import annotations


def log_fields(
    topology: str, component: str | None = None, task: int | None = None, message_id: object = None
) -> dict[str, object]:
    """Return the extra fields that every log record of the engine has."""
    return {"topology": topology, "component": component, "task": task, "message_id": message_id}
