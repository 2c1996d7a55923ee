"""What is to be done when nothing moves any more: flush, finish, or nothing at all (law B8, C2, S5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec


class Step(Enum):
    """What to do next."""

    WAIT = "wait"
    """A source, a replay or a timeout will bring something."""
    FLUSH = "flush"
    """Call ``flush`` on the named components' tasks that hold inputs."""
    RESUME = "resume"
    """Everything is settled that the spouts which pause for that have waited for."""
    FINISH = "finish"
    """Call ``finish`` on the tasks of the named components."""
    DONE = "done"
    """The topology is quiescent."""


class BoltState(msgspec.Struct, frozen=True):
    """What matters of one bolt in a moment of calm."""

    flushable: bool
    """A task holds inputs, and has executed or settled some since its last ``flush``."""
    unfinished: bool
    """A task has executed inputs since its last ``finish``, or was never finished."""


class Calm(msgspec.Struct, frozen=True):
    """A moment in which every inbox is empty and nothing runs."""

    spouts_still: bool
    """Every spout has ended, or is paused by ``max_spout_pending`` or until everything is settled."""
    spouts_ended: bool
    replays_waiting: bool
    pending: int
    """Messages without an outcome."""
    bolts: Mapping[str, BoltState]
    pausing: bool = False
    """A spout that has not ended pauses until everything is settled."""


def next_step(calm: Calm, order: Sequence[Sequence[str]]) -> tuple[Step, Sequence[str]]:
    """Decide. ``order`` has the components upstream first, those of a cycle together; the answer names some
    of them.

    Held inputs are flushed before anything is finished, so that a batch which can never fill is written, not
    timed out (B8). A component is finished when its upstreams are (C2).
    """
    if not calm.spouts_still:
        return Step.WAIT, ()
    for group in order:
        flushable = [each for each in group if each in calm.bolts and calm.bolts[each].flushable]
        if flushable:
            return Step.FLUSH, flushable
    if calm.pausing and not calm.pending:
        return Step.RESUME, ()
    if not calm.spouts_ended or calm.replays_waiting:
        return Step.WAIT, ()
    for group in order:
        bolts = [each for each in group if each in calm.bolts]
        if any(calm.bolts[each].unfinished for each in bolts):
            return Step.FINISH, bolts
    return (Step.WAIT, ()) if calm.pending else (Step.DONE, ())
