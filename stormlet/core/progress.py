"""The steps of a run once nothing in it moves by itself: flush, resume, finish, done (law B8, C2, S5).

Theory of operation
-------------------
No single task can see that a run is over. A bolt that holds inputs waits for more of them, a spout that has reached
``max_spout_pending`` waits for those inputs to be acked, and neither knows that the other one waits as well. So one
observer, the conductor of the runtime, looks for moments of *rest*: every inbox is empty, no user code runs, and no
task has anything left to send. It describes such a moment by a :class:`Survey`, asks :func:`next_step`, takes the step,
and asks again when the run has come to rest again.

The rules, the first that applies:

1. A spout that may emit by itself: WAIT. There is nothing to decide before its input has come.
2. Bolts that hold inputs: FLUSH. Held inputs keep their trees open, so no later step could help them; a batch that can
   never fill is thereby written instead of timed out. Upstream first, as the output of a flush may fill a batch below.
3. A spout that pauses until everything is settled, and no message pending: RESUME.
4. A spout that has not ended, or a message that waits for its replay: WAIT. A timeout or the replay will bring more.
5. Bolts with inputs since their last ``finish``: FINISH, one component at a time and upstream first, so that what a
   ``finish`` emits is processed before the components below finish. The components of a cycle are each upstream of the
   other and finish together.
6. Messages pending: WAIT. Nothing holds their tuples any more, so their timeouts will settle them.
7. An epoch with work of its own: END_EPOCH. What the run ends with is committed, too (law X1).
8. Otherwise the run is DONE.

Where messages belong to epochs, one rule comes after the third: an epoch that is closing, of which nothing is pending:
END_EPOCH. Its sources wait for that.

Every step needs something new: a bolt counts as flushable only if it has executed or settled inputs since its last
``flush``, as unfinished only if it has executed inputs since its last ``finish``. A bolt that keeps what it holds is
therefore not asked for ever, and a replay that brings new input causes another ``finish``.

The rules are a function of a record, so that tests can try all of their cases without a clock or a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec


class Step(Enum):
    """The next thing that the conductor does."""

    WAIT = "wait"
    """Nothing now: a source, a replay or a timeout will bring something."""
    FLUSH = "flush"
    """Call ``flush`` on those tasks of the named components that hold inputs."""
    RESUME = "resume"
    """Ask the paused spouts for tuples again: all messages that they have waited for are settled."""
    FINISH = "finish"
    """Call ``finish`` on the tasks of the named components."""
    END_EPOCH = "end epoch"
    """Commit the open epoch, or have it tried again if it is spoilt (law X1, X7)."""
    DONE = "done"
    """Nothing any more: the topology is quiescent (law S5)."""


class BoltState(msgspec.Struct, frozen=True):
    """One bolt in a moment of rest."""

    flushable: bool
    """True if a task holds inputs, and has executed or settled some since its last ``flush``."""
    unfinished: bool
    """True if a task has executed inputs since its last ``finish``, or was never finished."""


class EpochState(Enum):
    """The open epoch in a moment of rest."""

    NONE = "none"
    """Messages belong to no epochs, or nothing has happened in the open one."""
    OPEN = "open"
    """It has messages or changes, and takes more."""
    CLOSING = "closing"
    """It is to end as soon as nothing is pending."""


class Survey(msgspec.Struct, frozen=True):
    """A moment in which every inbox is empty and no user code runs."""

    spouts_still: bool
    """True if every spout has ended, or is paused by ``max_spout_pending`` or until everything is settled."""
    spouts_ended: bool
    replays_waiting: bool
    pending: int
    """Messages without an outcome."""
    bolts: Mapping[str, BoltState]
    pausing: bool = False
    """True if a spout that has not ended pauses until everything is settled."""
    epoch: EpochState = EpochState.NONE


def next_step(survey: Survey, order: Sequence[Sequence[str]]) -> tuple[Step, Sequence[str]]:
    """Return the next step, and the components that it is for.

    ``order`` has all components upstream first, those of a cycle together. Held inputs are flushed before anything is
    finished (B8), and a component is finished after its upstreams (C2).
    """
    if not survey.spouts_still:
        return Step.WAIT, ()  # rule 1
    for group in order:
        flushable = [each for each in group if each in survey.bolts and survey.bolts[each].flushable]
        if flushable:
            return Step.FLUSH, flushable  # rule 2
    if survey.pausing and not survey.pending:
        return Step.RESUME, ()  # rule 3
    if survey.epoch is EpochState.CLOSING and not survey.pending:
        return Step.END_EPOCH, ()
    if not survey.spouts_ended or survey.replays_waiting:
        return Step.WAIT, ()  # rule 4
    for group in order:
        bolts = [each for each in group if each in survey.bolts]
        if any(survey.bolts[each].unfinished for each in bolts):
            return Step.FINISH, bolts  # rule 5
    if survey.pending:
        return Step.WAIT, ()  # rule 6
    return (Step.DONE if survey.epoch is EpochState.NONE else Step.END_EPOCH), ()  # rules 7 and 8
