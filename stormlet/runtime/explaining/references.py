"""Which inputs a bolt has forgotten: held, as it has not settled them, while nothing refers to them any more.

CPython counts references. Those of the engine are known; if there is no other one, no code can settle the tuple. A
reference that is not known of, such as one in the traceback of an exception, only keeps it from being found.
"""

from __future__ import annotations

from collections.abc import Collection
from sys import getrefcount
from typing import Any

from stormlet.runtime.bolts import BoltTask
from stormlet.runtime.collectors import AnyTuple
from stormlet.runtime.explaining.recorder import Edge, EdgeRecorder


def forgotten(task: BoltTask, recorder: EdgeRecorder) -> Collection[AnyTuple]:
    """The inputs that a task holds and that only the engine refers to. To be called where nothing else does, such as
    a variable."""
    held = list(task.account.held)
    counts = _references(held)
    return {
        tup
        for tup, count in zip(held, counts, strict=True)
        if count - _OWN <= _of_engine(task, tup, recorder) and not task.worker.why_held(tup)
    }


def is_forgotten(edge: Edge, recorder: EdgeRecorder) -> bool:
    """Whether this is so of one that is recorded, and held."""
    count = _references_of(edge)
    task = edge.task
    return count - _OWN_OF_EDGE <= _of_engine(task, edge.tup, recorder) and not task.worker.why_held(edge.tup)


def _of_engine(task: BoltTask, tup: AnyTuple, recorder: EdgeRecorder) -> int:
    return task.references(tup) + recorder.references(tup)


def _references(things: list[Any]) -> list[int]:
    return [getrefcount(thing) for thing in things]


def _references_of(edge: Any) -> int:
    return getrefcount(edge.tup)


class _Sample:
    def __init__(self) -> None:
        self.tup = object()


_OWN = _references([object()])[0]
"""The references that counting takes; that differs between versions of Python."""
_OWN_OF_EDGE = _references_of(_Sample()) - 1
