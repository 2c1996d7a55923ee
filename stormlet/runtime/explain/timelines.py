"""The timeline of a recorded tree: its executions, as they are at the moment."""

from __future__ import annotations

from typing import Final

from stormlet.core.timeline import Ending, Execution, Timeline
from stormlet.core.tuples import ACKED, HELD, OPEN
from stormlet.runtime.explain.recorder import Edge, RecordedTree

MOST_KEPT: Final = 20
"""Executions that a failure keeps: there may be a hundred failures of one message, and many messages that fail."""


def timeline_of(tree: RecordedTree) -> Timeline:
    """Return the timeline of a running attempt."""
    executions = (_execution(edge, began) for edge in tree.executions if (began := edge.began) is not None)
    return Timeline(tree.began, tuple(sorted(executions, key=lambda each: each.began)), tree.left_out)


def _execution(edge: Edge, began: float) -> Execution:
    plan = edge.task.plan
    waited = max(0.0, began - edge.since)
    return Execution(plan.component, plan.task, plan.name, began, edge.ended, waited, _ending(edge))


def _ending(edge: Edge) -> Ending:
    state = edge.tup.state
    if state == OPEN:
        return Ending.RUNNING
    if state == HELD:  # again with user code, if its batch is executed
        return Ending.HELD if edge.ended is not None else Ending.RUNNING
    return Ending.ACKED if state == ACKED else Ending.FAILED
